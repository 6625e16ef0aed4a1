//! Experiments run, and are sound, and commands are as their users meet them.

mod commands;
mod idle;
mod migrate;
mod real;
mod sharing;
mod txn;
mod vacation;
