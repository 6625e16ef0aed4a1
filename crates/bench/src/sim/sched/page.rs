//! Rows as charts.

use super::SchedRow;
use super::row::SchedTable;
use crate::report::Page;
use crate::report::plot::{Axis, Line, LineChart, Point, SERIES, Unit};

/// A chart's name, and which schedulers it shows.
type Family = (&'static str, fn(&str) -> bool);

/// A page with a chart of p99.9 over the load for each workload, one for inline schedulers and one for each queueing model of
/// dispatchers. `command` is what made the rows.
pub fn page(command: &str, rows: &[SchedRow]) -> String {
    let mut page = Page::new("Schedulers of a TCP service");
    page.code(command);
    page.text("", "Simulated. Times from arrival to the end of the reply. Points beyond a scheduler's capacity are left out.");
    let mut workloads: Vec<&str> = Vec::new();
    for row in rows {
        if !workloads.contains(&row.workload.as_str()) {
            workloads.push(&row.workload);
        }
    }
    let families: [Family; 4] = [
        ("inline", |name| name.starts_with("inline-") || name.starts_with("ideal-")),
        ("dispatchers with a central queue", |name| {
            name.starts_with("dispatcher-") && !name.ends_with("fcfs") && !name.ends_with("-ws")
        }),
        ("dispatchers with queues by connection", |name| {
            name.ends_with("-dfcfs") && name.starts_with("dispatcher-")
        }),
        ("dispatchers whose members steal", |name| {
            name.ends_with("-ws") && name.starts_with("dispatcher-")
        }),
    ];
    for workload in workloads {
        let of: Vec<SchedRow> =
            rows.iter().filter(|row| row.workload == workload).cloned().collect();
        for (family, is_in) in families {
            let own: Vec<SchedRow> =
                of.iter().filter(|row| is_in(&row.scheduler)).cloned().collect();
            if let Some(chart) = chart(&own) {
                let title = format!("{workload}, {family}");
                let sentence = SchedTable::verdicts(&own).pop().unwrap_or_default();
                page.figure(&title, &sentence, &chart);
            }
        }
    }
    page.finish()
}

fn chart(rows: &[SchedRow]) -> Option<LineChart> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row.saturated) {
        if !names.contains(&row.scheduler.as_str()) {
            names.push(&row.scheduler);
        }
    }
    let x = Axis::linear("requests offered per second", Unit::Count).from(0.0);
    let y = Axis::log("p99.9", Unit::Microseconds);
    let mut chart = LineChart::new(x, y).spans("95 % confidence");
    for (series, name) in names.iter().take(SERIES).enumerate() {
        let points =
            rows.iter().filter(|row| row.scheduler == *name && !row.saturated).map(|row| {
                let by = row.ci95.unwrap_or(0.0);
                let span = Some((row.p999_us * (1.0 - by), row.p999_us * (1.0 + by)));
                Point { x: row.offered, y: row.p999_us, span }
            });
        chart = chart.with(Line::new(*name, points).series(series).simulated(true));
    }
    (!names.is_empty()).then_some(chart)
}
