//! How a run went on, interval by interval.

use serde::{Deserialize, Serialize};

/// Figures of equal intervals, the warm-up included. Every list has one entry per interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The length of an interval, in seconds.
    pub interval: f64,
    /// How long the warm-up was, in seconds.
    pub warm_up: f64,
    /// By lane: its busy time as a share of the interval.
    pub load: Vec<Vec<f32>>,
    /// Packets per second that arrived.
    pub offered: Vec<f64>,
    /// Packets that left.
    pub delivered: Vec<u64>,
    /// Packets dropped for want of room.
    pub dropped: Vec<u64>,
    /// Shards that arrived at their new lane.
    pub migrations: Vec<u64>,
    /// Lanes that own shards.
    pub active: Vec<u16>,
}
