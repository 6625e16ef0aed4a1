//! A test for each clause of `docs/tcp.md`: its name is what it asserts.

mod attacks;
mod closing;
mod loss;
mod memory;
mod opening;
mod path;
mod receiving;
mod sending;
mod timers;
mod urgent;
