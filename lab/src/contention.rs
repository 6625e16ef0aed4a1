//! What functions do with shared objects, without their packets: on real lanes, and on as many simulated ones as one
//! likes.
//!
//! A [`Pattern`] is a function's objects with the operations on them that a packet takes, in the function's order.
//! Both kinds of lanes run it in real transactions on real objects, a sub-burst at a time, as the runtime does, so
//! conflicts, their causes and their count are the engine's own in either case. What differs is time: real lanes are
//! threads, and simulated ones take turns on one thread, in virtual time. Compare their abort rates where both can
//! be had.

mod antiddos;
mod bridge;
mod cost;
mod nat;
mod pattern;
mod real;
mod simulated;
mod sub_burst;
#[cfg(test)]
mod tests;

pub use antiddos::AntiDdos;
pub use bridge::Bridge;
pub use cost::Cost;
pub use nat::Nat;
pub use pattern::Pattern;
pub use real::{ContentionMeasurement, RealLanes};
pub use simulated::{Simulated, SimulatedLanes};
