//! A device that does wrong on purpose, by seed.
//!
//! Two uses: traffic that is lost, doubled, late or out of order, as networks do it; and sabotage, to
//! see that the checkers of the invariants catch what they claim to. The layer lies *behind* the
//! device's counters, so each fault breaks an account or an order that a layer above checks.

mod device;
mod receive;

pub use device::with_faults;
pub use receive::FaultyRx;

use std::time::Duration;

use rheostat_base::Counter;

/// What to do to packets: each value is the probability that a packet meets that fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultConfig {
    /// Names the sequence of faults; the same seed gives the same faults to the same packets.
    pub seed: u64,
    /// Lose the packet and return its buffer.
    pub drop: f64,
    /// Lose the packet and its buffer too, for good.
    pub leak: f64,
    /// Deliver the packet twice.
    pub duplicate: f64,
    /// Deliver the packet behind the one that follows it in this queue.
    pub swap: f64,
    /// Deliver the packet, and all behind it, later by this much.
    pub delay: Option<(f64, Duration)>,
    /// Faults to inject at most; 1 for a sabotage that must be noticed.
    pub limit: Option<u64>,
}

/// How many faults of each kind there were.
#[derive(Debug, Default)]
pub struct FaultCounters {
    /// Packets lost.
    pub dropped: Counter,
    /// Packets lost with their buffers.
    pub leaked: Counter,
    /// Packets delivered twice.
    pub duplicated: Counter,
    /// Packets delivered behind their successor.
    pub swapped: Counter,
    /// Packets delivered late.
    pub delayed: Counter,
}
