//! Shards change lanes while packets arrive. Whatever the schedule: nothing is lost but what is counted
//! as dropped, nothing leaves twice, flows keep their order, and each shard has one owner.

#[path = "../world/mod.rs"]
mod world;

mod equivalence;
mod journal;
mod late_table;
mod pauses;
mod schedule;
mod simulation;
