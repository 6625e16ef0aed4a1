//! A policy in a phase of the rising load.

use std::fmt::Write;

use serde::Serialize;

/// A policy in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SloRow {
    /// Always: nothing here was measured on lanes.
    pub simulated: bool,
    /// The policy.
    pub policy: String,
    /// Offered load in Gb/s.
    pub phase: f64,
    /// Lanes that worked or offloaded, on average.
    pub lanes: f64,
    /// Of these, lanes that offloaded.
    pub offloading: f64,
    /// From arrival to departure, 99.5 % of packets of the priority class.
    pub priority_p995_us: Option<f64>,
    /// The same of all others.
    pub regular_p995_us: Option<f64>,
    /// What the policy predicted for the percentile of the objectives of the priority class, averaged over its lanes and plans
    /// by the packets that then came.
    pub predicted_us: Option<f64>,
    /// Whether both classes were within their objectives, at the percentile of these.
    pub slo_met: bool,
    /// Shards that moved.
    pub migrations: u64,
    /// Flows that were handed to an offloading lane.
    pub offloaded: u64,
    /// Packets that found a queue full.
    pub dropped: u64,
    /// Packets that were lost, doubled or overtaken in the whole run; anything but 0 is a fault of the simulation.
    pub faults: u64,
}

/// Rows as a table.
#[derive(Debug)]
pub struct SloTable;

impl SloTable {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<14} {:>6} {:>6} {:>8} {:>13} {:>12} {:>10} {:>4} {:>6} {:>6} {:>8}",
            "policy",
            "Gb/s",
            "lanes",
            "offload",
            "priority p995",
            "regular p995",
            "predicted",
            "met",
            "moves",
            "flows",
            "dropped"
        )
    }

    /// A row.
    pub fn line(row: &SloRow) -> String {
        let micros =
            |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |us| format!("{us:.0} us"));
        let met = if row.slo_met { "yes" } else { "no" };
        let mut line = format!(
            "{:<14} {:>6.1} {:>6.2} {:>8.2} {:>13} {:>12} {:>10} {met:>4} {:>6} {:>6} {:>8}",
            row.policy,
            row.phase,
            row.lanes,
            row.offloading,
            micros(row.priority_p995_us),
            micros(row.regular_p995_us),
            micros(row.predicted_us),
            row.migrations,
            row.offloaded,
            row.dropped
        );
        if row.faults > 0 {
            let _ = write!(line, "  FAULTS: {}", row.faults);
        }
        line
    }
}
