//! A policy in a phase of the rising load.

use rheostat_measure::record::{Column, TableRow, or_dash};
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

/// Microseconds, without digits behind the point.
fn us(time: Option<f64>) -> String {
    or_dash(time, |us| format!("{us:.0} us"))
}

impl TableRow for SloRow {
    const COLUMNS: &'static [Column<SloRow>] = &[
        Column::name("policy", 14, |row| &row.policy),
        Column::number("Gb/s", 6, 1, |row| row.phase),
        Column::number("lanes", 6, 2, |row| row.lanes),
        Column::number("offload", 8, 2, |row| row.offloading),
        Column::text("priority p995", 13, |row| us(row.priority_p995_us)),
        Column::text("regular p995", 12, |row| us(row.regular_p995_us)),
        Column::text("predicted", 10, |row| us(row.predicted_us)),
        Column::text("met", 4, |row| if row.slo_met { "yes" } else { "no" }.to_owned()),
        Column::count("moves", 6, |row| row.migrations),
        Column::count("flows", 6, |row| row.offloaded),
        Column::count("dropped", 8, |row| row.dropped),
    ];

    fn remarks(&self) -> String {
        match self.faults {
            0 => String::new(),
            faults => format!("  FAULTS: {faults}"),
        }
    }
}
