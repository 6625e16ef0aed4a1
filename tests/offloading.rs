//! Single flows leave their lanes and come home while packets arrive. Whatever the schedule: nothing is lost but what is counted as
//! dropped, nothing leaves twice, flows keep their order, and every figure is that of a run in which no flow leaves.

mod equivalence;
mod planned;
mod sabotage;
mod transitions;
