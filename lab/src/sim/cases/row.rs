//! A policy in a case, and how far `auto` is from the best of the others.

use rheostat_measure::record::{Column, TableRow, or_dash};
use serde::Serialize;

/// A policy in a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseRow {
    /// Always: nothing here was measured on lanes.
    pub simulated: bool,
    /// What arrived.
    pub case: String,
    /// The policy.
    pub policy: String,
    /// Shards.
    pub shards: usize,
    /// Packets that left ÷ packets that arrived.
    pub delivered: f64,
    /// Packets per microsecond that left.
    pub mpps: f64,
    /// From arrival to departure, 99.5 % of packets.
    pub p995_us: Option<f64>,
    /// Shards that moved, the first two seconds left out.
    pub migrations: u64,
    /// Flows that were handed to an offloading lane.
    pub offloaded: u64,
    /// Packets that were lost, doubled or overtaken; anything but 0 is a fault of the simulation.
    pub faults: u64,
}

/// `auto` beside the best other policy of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The case.
    pub case: String,
    /// The other policy.
    pub best: String,
    /// What `auto` delivers ÷ what that one does.
    pub ratio: f64,
}

/// For each case with `auto` and another policy, how far the one is from the best of the others.
pub fn gaps(rows: &[CaseRow]) -> Vec<Gap> {
    let gap = |auto: &CaseRow| {
        let others = rows.iter().filter(|row| row.case == auto.case && row.policy != auto.policy);
        let best = others.max_by(|a, b| a.delivered.total_cmp(&b.delivered))?;
        let ratio = auto.delivered / best.delivered;
        Some(Gap { case: auto.case.clone(), best: best.policy.clone(), ratio })
    };
    rows.iter().filter(|row| row.policy == "auto").filter_map(gap).collect()
}

impl TableRow for CaseRow {
    const COLUMNS: &'static [Column<CaseRow>] = &[
        Column::name("case", 20, |row| &row.case),
        Column::name("policy", 13, |row| &row.policy),
        Column::count("shards", 6, |row| row.shards as u64),
        Column::percent("delivered", 9, 2, |row| row.delivered),
        Column::number("Mpps", 8, 4, |row| row.mpps),
        Column::text("p99.5", 10, |row| or_dash(row.p995_us, |us| format!("{us:.0} us"))),
        Column::count("moves", 6, |row| row.migrations),
        Column::count("flows", 7, |row| row.offloaded),
    ];
}
