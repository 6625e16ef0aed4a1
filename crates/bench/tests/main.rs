//! Benchmarks run, and are sound.

mod idle;
mod migrate;
mod real;
mod rows;
mod sharing;
mod txn;
mod vacation;
