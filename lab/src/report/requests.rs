//! Figures of rows about requests: where their time went, and latencies over the load.

mod latency;
mod stages;
#[cfg(test)]
mod tests;
mod throughput;

pub use stages::{StageFigure, stage_chart};

use rheostat_measure::record::Header;
use rheostat_plot::{Page, SERIES};

use crate::record::RequestRow;

/// A page about rows that one command measured; `note` states what load and times are.
pub fn page(header: &Header, note: &str, rows: &[RequestRow]) -> String {
    let rigs = listed(distinct(rows.iter().map(|row| row.rig.as_str())));
    let Header { command, commit, profile, machine, started } = header;
    let title = if rows.is_empty() {
        "Requests by scheduler: nothing was measured".to_owned()
    } else if rows.iter().all(RequestRow::is_simulated) {
        // The machine that simulates decides nothing.
        "Requests by scheduler, simulated".to_owned()
    } else {
        format!("Requests by scheduler: rig {rigs}, {}, {} cores", machine.processor, machine.cores)
    };
    let mut page = Page::new(&title);
    page.code(command);
    let rig = (!rows.is_empty()).then_some(("rig", rigs));
    page.facts(rig.into_iter().chain([
        ("machine", machine.to_string()),
        ("rheo", format!("{commit} ({profile})")),
        ("started", started.clone()),
    ]));
    page.text("", note);
    if rows.is_empty() {
        page.text("", "There is no row: an error ended the measurement before the first.");
    } else if rows.iter().all(|row| row.stages.is_none() && !row.is_simulated()) {
        page.text("", "The stages of requests were not timed.");
    }
    figures(&mut page, rows);
    page.finish()
}

/// Draws all figures of these rows, by workload, workers and rig; of many schedulers, by kind of scheduler.
pub(super) fn figures(page: &mut Page, rows: &[RequestRow]) {
    let rows = numbered(rows);
    for place in distinct(rows.iter().map(place)) {
        let own: Vec<&RequestRow> = rows.iter().filter(|row| self::place(row) == place).collect();
        for group in groups(named(place), own) {
            stages::write(page, &group);
            latency::write(page, &group);
            throughput::write(page, &group);
        }
    }
}

/// A kind of scheduler, and which ones it has.
type SeriesKind = (&'static str, fn(&str) -> bool);

const KINDS: [SeriesKind; 5] = [
    ("inline", |name| name.starts_with("inline-") || name.starts_with("ideal-")),
    ("dispatchers with a central queue", |name| is_dispatcher(name) && is_central(name)),
    ("dispatchers with queues by connection", |name| {
        is_dispatcher(name) && name.contains("-dfcfs")
    }),
    ("dispatchers whose members steal", |name| is_dispatcher(name) && name.contains("-ws")),
    ("others", |name| KINDS[..4].iter().all(|(_, has)| !has(name))),
];

fn is_dispatcher(name: &str) -> bool {
    name.starts_with("dispatcher-")
}

fn is_central(name: &str) -> bool {
    !name.contains("-dfcfs") && !name.contains("-ws")
}

/// The rows together, or by kind of scheduler where they have more schedulers than there are colours.
fn groups(name: String, rows: Vec<&RequestRow>) -> Vec<Group<'_>> {
    if distinct(rows.iter().map(|row| row.scheduler.as_str())).len() <= SERIES {
        return vec![Group { name, rows }];
    }
    let group = |(kind, has): SeriesKind| {
        let rows = rows.iter().copied().filter(|row| has(&row.scheduler)).collect();
        Group { name: format!("{name}, {kind}"), rows }
    };
    let mut groups: Vec<Group<'_>> = KINDS.into_iter().map(group).collect();
    groups.retain(|group| !group.rows.is_empty());
    groups
}

/// What rows of one figure have in common.
type SeriesPlace<'a> = (&'a str, Option<u16>, &'a str);

fn place(row: &RequestRow) -> SeriesPlace<'_> {
    (&row.workload, row.workers, &row.rig)
}

/// The rows, with a number behind the name of a scheduler that was measured before at the same load.
pub(super) fn numbered(rows: &[RequestRow]) -> Vec<RequestRow> {
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
    /// The workload, its workers, its rig, and the kind of scheduler if there are several.
    name: String,
    rows: Vec<&'a RequestRow>,
}

impl Group<'_> {
    /// The schedulers of these rows in their order: each has the colour of its place.
    fn schedulers(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.scheduler.as_str()))
    }

    fn is_simulated(&self) -> bool {
        self.rows.iter().any(|row| row.is_simulated())
    }
}

fn named((workload, workers, rig): SeriesPlace<'_>) -> String {
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
