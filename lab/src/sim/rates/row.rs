//! A policy under a rate of packets.

use rheostat_measure::record::{Column, TableRow, or_dash};
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

/// Microseconds, without digits behind the point.
fn us(time: Option<f64>) -> String {
    or_dash(time, |us| format!("{us:.0} us"))
}

impl TableRow for RateRow {
    const COLUMNS: &'static [Column<RateRow>] = &[
        Column::name("policy", 8, |row| &row.policy),
        Column::number("offered", 9, 2, |row| row.offered_mpps),
        Column::number("Mpps", 7, 3, |row| row.mpps),
        Column::percent("dropped", 8, 2, |row| row.dropped),
        Column::text("priority p995", 13, |row| us(row.priority_p995_us)),
        Column::text("regular p995", 12, |row| us(row.regular_p995_us)),
        Column::count("moves", 6, |row| row.migrations),
        Column::count("flows", 7, |row| row.offloaded),
    ];
}
