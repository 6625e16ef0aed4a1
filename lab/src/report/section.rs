//! The part of a page about one file of results.

use rheostat_plot::{Page, Table, Unit};

use super::cells::{cells, distinct, policies};
use super::figures::both::Both;
use super::figures::figures;
use super::sentence::{lanes, list};
use crate::record::{FileHeader, RecordedRow, RecordedRun, RecordedSpan, Results};

/// What marks a percentile that lies within the machine's noise.
const LIMITED: &str = "†";

/// The identifiers and names of the sections, for links to them.
pub(super) fn links(results: &[Results]) -> Vec<(String, String)> {
    let name = |(number, results): (usize, &Results)| {
        let FileHeader { title, scenario, started, .. } = &results.file_header;
        let origin = origin(&results.file_header);
        (id(number), format!("{title} ({scenario}, {origin}, {started})"))
    };
    let both = Both::all(results).into_iter().enumerate();
    let both = both.map(|(number, both)| (id_of_both(number), both.title()));
    results.iter().enumerate().map(name).chain(both).collect()
}

/// Writes the section.
pub(super) fn write(page: &mut Page, number: usize, results: &Results) {
    let file_header = &results.file_header;
    page.section(&id(number), &file_header.title, origin(file_header), file_header.simulated);
    page.text("question", &file_header.question);
    page.facts(facts(results));
    page.text("", "Made by, and to be made again by:");
    page.code(&file_header.command);
    if results.runs.is_empty() {
        page.text("warning", "No run was finished: there is nothing to show.");
        return;
    }
    for (class, text) in packets(&results.runs) {
        page.text(class, &text);
    }
    for figure in figures(results) {
        page.figure(&figure.title, &figure.says, &*figure.chart);
    }
    let rows = results.rows();
    page.table("All rows: medians over the runs", rows.len() <= 24, &table(&rows));
    if rows.iter().any(|row| !row.noise_limited.is_empty()) {
        page.text(
            "",
            &format!(
                "{LIMITED} below twice what the machine does to latencies by itself: such a figure says nothing \
                 about a policy."
            ),
        );
    }
    if !file_header.text.is_empty() {
        page.source("The scenario", &file_header.text);
    }
}

/// Writes the section about a scenario that was both measured and simulated.
pub(super) fn write_both(page: &mut Page, number: usize, both: &Both<'_>) {
    page.section(&id_of_both(number), &both.title(), "both", false);
    page.text("question", "How far can the simulation be trusted where nothing was measured?");
    if !both.is_same {
        let text = "Their scenarios have one name and are not the same: make one of them again.";
        page.text("warning", text);
    }
    for figure in both.figures() {
        page.figure(&figure.title, &figure.says, &*figure.chart);
    }
    let summary = "All rows: simulated as a multiple of measured (simulated : measured)";
    page.table(summary, true, &both.table());
}

fn id_of_both(number: usize) -> String {
    format!("both-{}", number + 1)
}

fn id(number: usize) -> String {
    format!("results-{}", number + 1)
}

fn origin(file_header: &FileHeader) -> &'static str {
    if file_header.simulated { "simulated" } else { "measured" }
}

fn facts(results: &Results) -> Vec<(&'static str, String)> {
    let FileHeader { scenario, commit, profile, machine, started, noise, costs, simulated, .. } =
        &results.file_header;
    let what = if *simulated { "simulated on" } else { "machine" };
    let mut facts = vec![
        ("scenario", scenario.clone()),
        ("runs", extent(&results.runs)),
        (what, machine.to_string()),
        ("commit", commit.clone()),
        ("profile", profile.clone()),
        ("started", started.clone()),
    ];
    if let Some(noise) = noise {
        facts.push(("noise", noise.to_string()));
    }
    if let Some(costs) = costs {
        facts.push(("costs from", costs.clone()));
    }
    facts
}

/// What was run: policies, lanes, loads and seeds.
fn extent(runs: &[RecordedRun]) -> String {
    let cells = cells(runs);
    let shown =
        |values: Vec<f64>| values.into_iter().map(|v| Unit::Plain.show(v)).collect::<Vec<_>>();
    let joined = |values: Vec<String>| list(&values.iter().map(String::as_str).collect::<Vec<_>>());
    let counts = distinct(cells.iter().map(|cell| cell.lanes.into()));
    let loads = distinct(cells.iter().map(|cell| cell.load));
    let seeds = distinct(runs.iter().map(|run| run.seed as f64)).len();
    let lanes = match counts.as_slice() {
        [one] => lanes(*one as u16),
        _ => format!("{} lanes", joined(shown(counts))),
    };
    let loads = match loads.as_slice() {
        [_] => format!("load {}", joined(shown(loads))),
        [first, .., last] if loads.len() > 8 => {
            let [first, last] = [first, last].map(|load| Unit::Plain.show(*load));
            format!("{} loads from {first} to {last}", loads.len())
        }
        _ => format!("loads {}", joined(shown(loads))),
    };
    let seeds = if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") };
    format!("{} of {}; {lanes}; {loads}; {seeds}", runs.len(), list(&policies(&cells)))
}

/// What became of packets, apart from how fast: paragraphs with their classes.
fn packets(runs: &[RecordedRun]) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&RecordedRun) -> u64| runs.iter().map(of).sum::<u64>();
    let count = |count: u64| Unit::Count.show(count as f64);
    let (lost, duplicated, reordered) =
        (sum(|run| run.lost), sum(|run| run.duplicated), sum(|run| run.reordered));
    let all = format!("{} packets of all runs", count(sum(|run| run.packets)));
    let mut said = Vec::new();
    if lost + duplicated > 0 {
        let text = format!("{} lost and {} doubled of the {all}.", count(lost), count(duplicated));
        said.push(("warning", text));
    }
    if reordered > 0 {
        let cells = cells(runs);
        let by = policies(&cells).into_iter().filter_map(|policy| {
            let of = runs.iter().filter(|run| run.policy == policy).map(|run| run.reordered);
            let sum: u64 = of.sum();
            (sum > 0).then(|| format!("{policy} {}", count(sum)))
        });
        let by = by.collect::<Vec<_>>().join(", ");
        said.push(("warning", format!("Overtaken within their flow, of the {all}: {by}.")));
    }
    if said.is_empty() {
        said.push((
            "",
            format!("None of the {all} was lost, doubled, or overtaken within its flow."),
        ));
    } else if lost + duplicated == 0 {
        said.push(("", "None was lost or doubled.".to_owned()));
    }
    if sum(|run| run.dropped) == 0 {
        said.push((
            "",
            "None was dropped for want of room, so there is no figure of drops.".to_owned(),
        ));
    }
    said
}

fn table(rows: &[RecordedRow]) -> Table {
    let head = [
        "policy",
        "lanes",
        "load",
        "p50",
        "p95",
        "p99",
        "dropped",
        "imbalance",
        "spread",
        "migrations",
        "lanes used",
        "throughput",
        "lost, doubled, overtaken",
        "runs",
    ];
    let cells = |row: &RecordedRow| {
        let us = |name: &str, value: Option<f64>, span: Option<RecordedSpan>| {
            let Some(value) = value else { return "–".to_owned() };
            let mark =
                if row.noise_limited.iter().any(|limited| limited == name) { LIMITED } else { "" };
            let span = span.filter(|_| row.runs > 1).map(|RecordedSpan { low, high }| (low, high));
            Unit::Microseconds.show_in(value, span) + mark
        };
        let whole = |count: u64| Unit::Count.show(count as f64);
        let plain = |value: f64| Unit::Plain.show(value);
        let RecordedSpan { low, high } = row.imbalance_span;
        let imbalance = Unit::Plain.show_in(row.imbalance, (row.runs > 1).then_some((low, high)));
        vec![
            row.policy.clone(),
            row.lanes.to_string(),
            plain(row.load),
            us("p50_us", row.p50_us, None),
            us("p95_us", row.p95_us, row.p95_span),
            us("p99_us", row.p99_us, row.p99_span),
            match row.dropped {
                0 => "0".to_owned(),
                some => format!("{} ({})", whole(some), Unit::Share.show(row.drop_share)),
            },
            imbalance,
            row.spread.map_or_else(|| "–".to_owned(), |spread| Unit::Share.show(spread)),
            whole(row.migrations),
            plain(row.active),
            Unit::PacketRate.show(row.delivered_pps),
            [row.lost, row.duplicated, row.reordered].map(whole).join(", "),
            row.runs.to_string(),
        ]
    };
    Table { head: head.map(str::to_owned).to_vec(), rows: rows.iter().map(cells).collect() }
}
