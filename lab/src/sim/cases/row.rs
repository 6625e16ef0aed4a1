//! A policy in a case, and how far `auto` is from the best of the others.

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

/// Rows as a table.
#[derive(Debug)]
pub struct CaseTable;

impl CaseTable {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<20} {:<13} {:>6} {:>9} {:>8} {:>10} {:>6} {:>7}",
            "case", "policy", "shards", "delivered", "Mpps", "p99.5", "moves", "flows"
        )
    }

    /// A row.
    pub fn line(row: &CaseRow) -> String {
        let p995 = row.p995_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.0} us"));
        format!(
            "{:<20} {:<13} {:>6} {:>7.2} % {:>8.4} {p995:>10} {:>6} {:>7}",
            row.case,
            row.policy,
            row.shards,
            100.0 * row.delivered,
            row.mpps,
            row.migrations,
            row.offloaded
        )
    }
}
