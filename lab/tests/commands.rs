//! The commands of `rheo-lab`.

mod bench_sched;
mod bench_solver;
mod bench_timers;
mod migrate;
mod recorded_load;
mod report;
mod reproduce;
mod request_scenario;
mod sim_queues;
mod sim_sched;
mod vacation;
