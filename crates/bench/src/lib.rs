//! Benchmark scenarios: what is measured, from which source, against which baseline.
//!
//! Every figure stands beside that of the same loop without the thing measured: see [`nf`].

pub mod ab;
pub mod advice;
mod calibration;
mod confidence;
pub mod contention;
pub mod costs;
mod datagrams;
mod disturbance;
mod dut;
pub mod error;
pub mod idle;
pub mod live;
pub mod machine;
pub mod memory;
pub mod migrate;
pub mod nf;
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
mod rounding;
pub mod sampling;
pub mod scenario;
pub mod sched;
pub mod shared;
pub mod sharing;
pub mod sim;
pub mod solver;
pub mod tcp;
pub mod throughput;
pub mod timers;
pub mod txn;
pub mod vacation;
mod witness;
mod worker_time;

pub use error::BenchError;
