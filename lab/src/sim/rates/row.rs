//! A policy under a rate of packets.

use serde::Serialize;

/// A policy under a rate of packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRow {
    /// Always: nothing here was measured on lanes.
    pub simulated: bool,
    /// `rsspp` or `dyssect`.
    pub policy: String,
    /// Packets per microsecond that arrived.
    pub offered_mpps: f64,
    /// Packets per microsecond that left.
    pub mpps: f64,
    /// Packets that were dropped ÷ packets that arrived.
    pub dropped: f64,
    /// From arrival to departure, 99.5 % of packets of the priority class.
    pub priority_p995_us: Option<f64>,
    /// The same of all others.
    pub regular_p995_us: Option<f64>,
    /// Shards that moved, the time before the measurement left out.
    pub migrations: u64,
    /// Flows that were handed to an offloading lane.
    pub offloaded: u64,
    /// Packets that were lost, doubled or overtaken; anything but 0 is a fault of the simulation.
    pub faults: u64,
}

/// Rows as a table.
#[derive(Debug)]
pub struct RateTable;

impl RateTable {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<8} {:>9} {:>7} {:>8} {:>13} {:>12} {:>6} {:>7}",
            "policy",
            "offered",
            "Mpps",
            "dropped",
            "priority p995",
            "regular p995",
            "moves",
            "flows"
        )
    }

    /// A row.
    pub fn line(row: &RateRow) -> String {
        let micros =
            |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |us| format!("{us:.0} us"));
        format!(
            "{:<8} {:>9.2} {:>7.3} {:>6.2} % {:>13} {:>12} {:>6} {:>7}",
            row.policy,
            row.offered_mpps,
            row.mpps,
            100.0 * row.dropped,
            micros(row.priority_p995_us),
            micros(row.regular_p995_us),
            row.migrations,
            row.offloaded
        )
    }
}
