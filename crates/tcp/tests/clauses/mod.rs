//! A test for each clause of `docs/tcp.md`: its name is what it asserts.

mod attacks;
mod closing;
mod half_open;
mod loss;
mod memory;
mod opening;
mod path;
mod receiving;
mod sending;
mod syn_cookies;
mod timers;
mod urgent;
