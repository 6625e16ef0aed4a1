//! Rows as lines of text.

use std::fmt;

use super::Row;

/// Rows as lines under a heading.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl Table {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<14} {:>5} {:>5} {:>10} {:>10} {:>23} {:>10} {:>9} {:>9} {:>6} {:>6} {:>5} {:>9} {:>10} {:>6} {:>9} {:>6} {:>9}",
            "policy",
            "lanes",
            "load",
            "p50 us",
            "p95 us",
            "95 % of runs' p95",
            "p99 us",
            "dropped",
            "of all",
            "imbal.",
            "moves",
            "lanes",
            "reordered",
            "p95 gain",
            "A/A",
            "kpps",
            "away",
            "prio p995"
        )
    }

    /// A row's line. A star stands behind what the machine's noise alone explains.
    pub fn line(row: &Row) -> impl fmt::Display {
        let latency = |name: &str, value: Option<f64>| {
            let star =
                if row.noise_limited.iter().any(|limited| limited == name) { "*" } else { "" };
            value.map_or("-".to_owned(), |us| format!("{us:.1}{star}"))
        };
        let span = row
            .p95_span
            .map_or("-".to_owned(), |span| format!("{:.1} to {:.1}", span.low, span.high));
        format!(
            "{:<14} {:>5} {:>5.2} {:>10} {:>10} {:>23} {:>10} {:>9} {:>8.3}% {:>6.3} {:>6} {:>5.1} {:>9} {:>10} {:>6} {:>9.0} {:>5.1}% {:>9}",
            row.policy,
            row.lanes,
            row.load,
            latency("p50_us", row.p50_us),
            latency("p95_us", row.p95_us),
            span,
            latency("p99_us", row.p99_us),
            row.dropped,
            100.0 * row.drop_share,
            row.imbalance,
            row.migrations,
            row.active,
            row.reordered,
            gain(row),
            row.aa_spread_p95.map_or("-".to_owned(), |chance| format!("{chance:.2}")),
            row.delivered_pps / 1e3,
            100.0 * row.offloaded_share,
            row.priority_p995_us.map_or("-".to_owned(), |us| format!("{us:.1}")),
        )
    }
}

/// By what factor p95 is below that of static RSS, unless that may be chance.
fn gain(row: &Row) -> String {
    match (row.gain_p95, row.gain_shown) {
        (Some(gain), Some(true)) => format!("{gain:.2}"),
        (Some(_), Some(false)) => "not shown".to_owned(),
        (Some(gain), None) => format!("{gain:.2}?"),
        (None, _) => "-".to_owned(),
    }
}
