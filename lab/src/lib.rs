//! The laboratory, `rheo-lab`: experiments, scenarios on real lanes and in simulation, reports of their results.

#[macro_use(err, out)]
extern crate rheostat_app;

pub mod advice;
pub mod claims;
mod commands;
pub mod contention;
pub mod costs;
mod datagrams;
mod delays;
mod disturbance;
pub mod error;
mod event_queue;
pub mod idle;
pub mod live;
pub mod migrate;
pub mod noise;
pub mod offered_load;
pub mod offload;
mod pace;
mod plans;
pub mod polling;
pub mod pump;
pub mod real;
pub mod record;
pub mod report;
pub mod sampling;
pub mod scenario;
pub mod sched;
pub mod shared;
pub mod sharing;
pub mod sim;
pub mod solver;
pub mod tcp;
mod testbed;
pub mod throughput;
pub mod timers;
pub mod txn;
pub mod vacation;
mod witness;
mod worker_time;

pub use error::BenchError;
pub use testbed::TestbedError;

pub use commands::main;
