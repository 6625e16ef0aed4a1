//! Rows as lines of text.

use rheostat_measure::record::{Column, TableRow, or_dash};

use super::RecordedRow;

impl TableRow for RecordedRow {
    const COLUMNS: &'static [Column<RecordedRow>] = &[
        Column::name("policy", 14, |row| &row.policy),
        Column::count("lanes", 5, |row| row.lanes.into()),
        Column::number("load", 5, 2, |row| row.load),
        Column::text("p50 us", 10, |row| row.latency("p50_us", row.p50_us)),
        Column::text("p95 us", 10, |row| row.latency("p95_us", row.p95_us)),
        Column::text("95 % of runs' p95", 23, |row| {
            or_dash(row.p95_span, |span| format!("{:.1} to {:.1}", span.low, span.high))
        }),
        Column::text("p99 us", 10, |row| row.latency("p99_us", row.p99_us)),
        Column::count("dropped", 9, |row| row.dropped),
        Column::text("of all", 9, |row| format!("{:.3}%", 100.0 * row.drop_share)),
        Column::number("imbal.", 6, 3, |row| row.imbalance),
        Column::count("moves", 6, |row| row.migrations),
        Column::number("lanes", 5, 1, |row| row.active),
        Column::count("reordered", 9, |row| row.reordered),
        Column::text("p95 gain", 10, RecordedRow::gain),
        Column::known("A/A", 6, 2, |row| row.aa_spread_p95),
        Column::number("kpps", 9, 0, |row| row.delivered_pps / 1e3),
        Column::text("away", 6, |row| format!("{:.1}%", 100.0 * row.offloaded_share)),
        Column::known("prio p995", 9, 1, |row| row.priority_p995_us),
    ];
}

impl RecordedRow {
    /// A latency, with a star where the machine's noise alone explains it.
    fn latency(&self, name: &str, value: Option<f64>) -> String {
        let is_limited = self.noise_limited.iter().any(|limited| limited == name);
        or_dash(value, |us| format!("{us:.1}{}", if is_limited { "*" } else { "" }))
    }

    /// By what factor p95 is below that of static RSS, unless that may be chance.
    fn gain(&self) -> String {
        match (self.gain_p95, self.gain_shown) {
            (Some(gain), Some(true)) => format!("{gain:.2}"),
            (Some(_), Some(false)) => "not shown".to_owned(),
            (Some(gain), None) => format!("{gain:.2}?"),
            (None, _) => "-".to_owned(),
        }
    }
}
