//! Figures of rows about requests: where their time went, and latencies over the load.

mod latency;
mod stages;
#[cfg(test)]
mod tests;

pub use stages::{StageFigure, stage_chart};

use super::page::Page;
use super::plot::SERIES;
use crate::record::{Header, RequestRow};

/// A page about rows that one command measured; `note` states what load and times are.
pub fn page(header: &Header, note: &str, rows: &[RequestRow]) -> String {
    let rigs = listed(distinct(rows.iter().map(|row| row.rig.as_str())));
    let Header { command, commit, profile, machine, started } = header;
    let title = format!(
        "Requests by scheduler: rig {rigs}, {}, {} cores",
        machine.processor, machine.cores
    );
    let mut page = Page::new(&title);
    page.code(command);
    page.facts([
        ("rig", rigs),
        ("machine", machine.to_string()),
        ("rheo", format!("{commit} ({profile})")),
        ("started", started.clone()),
    ]);
    page.text("", note);
    figures(&mut page, rows);
    page.finish()
}

/// Draws all figures of these rows, by workload, workers and rig.
pub(super) fn figures(page: &mut Page, rows: &[RequestRow]) {
    let rows = numbered(rows);
    let schedulers = distinct(rows.iter().map(|row| row.scheduler.as_str()));
    for place in distinct(rows.iter().map(place)) {
        let own: Vec<&RequestRow> = rows.iter().filter(|row| self::place(row) == place).collect();
        let group = Group { name: named(place), schedulers: &schedulers, rows: own };
        stages::write(page, &group);
        latency::write(page, &group);
    }
}

/// What rows of one figure have in common.
type Place<'a> = (&'a str, Option<u16>, &'a str);

fn place(row: &RequestRow) -> Place<'_> {
    (&row.workload, row.workers, &row.rig)
}

/// The rows, with a number behind the name of a scheduler that was measured before at the same load.
fn numbered(rows: &[RequestRow]) -> Vec<RequestRow> {
    let same = |row: &RequestRow, earlier: &&RequestRow| {
        (place(row), row.load, &row.scheduler) == (place(earlier), earlier.load, &earlier.scheduler)
            && (row.load.is_some() || row.offered == earlier.offered)
    };
    let name = |(at, row): (usize, &RequestRow)| {
        let scheduler = match rows[..at].iter().filter(|earlier| same(row, earlier)).count() {
            0 => row.scheduler.clone(),
            before => format!("{} ({})", row.scheduler, before + 1),
        };
        RequestRow { scheduler, ..row.clone() }
    };
    rows.iter().enumerate().map(name).collect()
}

/// Rows of one workload.
struct Group<'a> {
    /// The workload, its workers and its rig.
    name: String,
    /// All schedulers of the page: each has the same colour in all figures.
    schedulers: &'a [&'a str],
    rows: Vec<&'a RequestRow>,
}

impl Group<'_> {
    /// The schedulers of these rows, in the order of the page.
    fn own_schedulers(&self) -> impl Iterator<Item = &str> {
        let has = |name: &str| self.rows.iter().any(|row| row.scheduler == name);
        self.schedulers.iter().copied().filter(move |name| has(name))
    }

    /// The colour of a scheduler.
    fn series(&self, scheduler: &str) -> usize {
        self.schedulers.iter().position(|name| *name == scheduler).unwrap_or(0) % SERIES
    }
}

fn named((workload, workers, rig): Place<'_>) -> String {
    let workers = match workers {
        None => String::new(),
        Some(1) => ", 1 worker".to_owned(),
        Some(workers) => format!(", {workers} workers"),
    };
    format!("{workload}{workers}, {rig}")
}

/// The values in the order in which they first come.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

fn listed(names: Vec<&str>) -> String {
    names.join(", ")
}
