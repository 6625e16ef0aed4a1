//! Where the time of requests went.

use rheostat_plot::{Page, Part, SERIES, Stack, StackChart, StackPanel, Unit};

use super::{Group, distinct};
use crate::record::RequestRow;
use crate::sched::{StageTime, StageTimes};

/// Which requests a chart is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageFigure {
    /// The mean of those that were sampled.
    Sampled,
    /// The mean of the slowest.
    Slowest,
}

/// Colours of the stages in their order: neighbours differ most.
const COLOURS: [usize; 6] = [3, 1, 0, 2, 4, 6];

impl StageFigure {
    fn value(self, time: &StageTime) -> f64 {
        match self {
            StageFigure::Sampled => time.mean_us,
            StageFigure::Slowest => time.slowest_us,
        }
    }

    fn count(self, times: &StageTimes) -> u64 {
        match self {
            StageFigure::Sampled => times.sampled,
            StageFigure::Slowest => times.slowest as u64,
        }
    }

    fn title(self) -> &'static str {
        match self {
            StageFigure::Sampled => "where the time of requests goes",
            StageFigure::Slowest => "where the time of the slowest requests goes",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            StageFigure::Sampled => "mean time of the sampled requests",
            StageFigure::Slowest => "mean time of the slowest requests",
        }
    }
}

/// Writes both charts of a workload, and names the rows that have none.
pub(super) fn write(page: &mut Page, group: &Group<'_>) {
    if group.rows.iter().all(|row| row.stages.is_none()) {
        return;
    }
    let missing: Vec<String> = group.rows.iter().filter_map(|row| missing(row)).collect();
    if !missing.is_empty() {
        page.text("", &format!("{}: no stages of {}.", group.name, missing.join("; ")));
    }
    for figure in [StageFigure::Sampled, StageFigure::Slowest] {
        let chart = stage_chart(&group.rows, figure);
        if chart.panels().is_empty() {
            continue;
        }
        let title = format!("{}: {}", group.name, figure.title());
        page.figure(&title, &sentence(&group.rows, &chart, figure), &chart);
        let says = "The same bars, each as long as the others: which share each stage has.";
        page.figure(&format!("{title}, by share"), says, &chart.shares());
    }
}

/// Bars for rows with stages, a panel for each load. Rows without stages have no bar.
pub fn stage_chart(rows: &[&RequestRow], figure: StageFigure) -> StackChart {
    let timed = |row: &&&RequestRow| stages_of(row, figure).is_some();
    let stages = rows.iter().filter_map(|row| stages_of(row, figure));
    let names = distinct(stages.flat_map(|times| &times.stages).map(|time| time.stage.as_str()));
    let parts = names.iter().enumerate().map(|(at, name)| Part {
        name: spelled(name),
        series: COLOURS.get(at).copied().unwrap_or(at % SERIES),
    });
    let chart =
        StackChart::new(figure.axis(), Unit::Microseconds, ["load", "scheduler"], parts.collect());
    let loads = distinct(rows.iter().filter(timed).map(|row| row.load));
    loads.into_iter().fold(chart, |chart, load| {
        let mut stacks: Vec<Stack> = Vec::new();
        for row in rows.iter().filter(|row| row.load == load) {
            if let Some(times) = stages_of(row, figure) {
                let value = |name: &&str| {
                    let of_name = times.stages.iter().filter(|time| time.stage == **name);
                    of_name.map(|time| figure.value(time)).sum()
                };
                let values = names.iter().map(value).collect();
                stacks.push(Stack { name: row.scheduler.clone(), values });
            }
        }
        chart.with(StackPanel { name: at_load(load), stacks })
    })
}

/// The stages of a row, if any request is in them.
fn stages_of(row: &RequestRow, figure: StageFigure) -> Option<&StageTimes> {
    row.stages.as_ref().filter(|times| figure.count(times) > 0)
}

/// A row without stages, and why.
fn missing(row: &RequestRow) -> Option<String> {
    let why = match &row.stages {
        None if row.saturated => "more was offered than it can do",
        None => "not timed",
        Some(times) if times.sampled == 0 => "no request was sampled",
        Some(_) => return None,
    };
    Some(format!("{}, {} ({why})", row.scheduler, at_load(row.load)))
}

/// What the bars at the highest load show.
fn sentence(rows: &[&RequestRow], chart: &StackChart, figure: StageFigure) -> String {
    let Some(panel) = chart.panels().last() else { return String::new() };
    let parts = chart.parts();
    let of = |stack: &Stack| {
        let most = parts.iter().zip(&stack.values).max_by(|a, b| a.1.total_cmp(b.1));
        let total = Unit::Microseconds.show(stack.total());
        match most.filter(|_| stack.total() > 0.0) {
            Some((part, value)) => {
                let share = Unit::Share.show(value / stack.total());
                format!("{} {total} ({share} {})", stack.name, part.name)
            }
            None => format!("{} {total}", stack.name),
        }
    };
    let all: Vec<String> = panel.stacks.iter().map(of).collect();
    let counts = rows.iter().filter_map(|row| stages_of(row, figure)).map(|t| figure.count(t));
    let requests = match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} requests"),
        (Some(count), _) => format!("{count} requests"),
        _ => String::new(),
    };
    format!("At {}: {}. Means of {requests}.", panel.name, all.join(", "))
}

fn at_load(load: Option<f64>) -> String {
    load.map_or_else(|| "load not known".to_owned(), |load| format!("load {load}"))
}

/// A stage as people write it.
fn spelled(stage: &str) -> String {
    match stage {
        "tcp_in" => "TCP in".to_owned(),
        "tcp_out" => "TCP out".to_owned(),
        "turn" => "waiting for its turn".to_owned(),
        other => other.replace('_', " "),
    }
}
