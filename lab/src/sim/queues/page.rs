//! Rows as charts.

use rheostat_plot::{Axis, Line, LineChart, Page, Point, Unit};

use super::QueuesRow;

/// What is drawn of a row: a name, the figure.
type QueueFigure = (&'static str, fn(&QueuesRow) -> super::QueueEstimate);

const FIGURES: [QueueFigure; 2] = [("mean", |row| row.mean), ("p99", |row| row.p99)];

/// A page with a chart of the mean and one of the 99th percentile for each distribution and number of servers. `command` is
/// what made the rows.
pub fn page(command: &str, rows: &[QueuesRow]) -> String {
    let mut page = Page::new("k x M/G/1 and M/G/k");
    page.code(command);
    page.text("", "Simulated. Times from arrival to departure, in mean service times.");
    let mut groups: Vec<(&str, u16)> = Vec::new();
    for row in rows {
        let group = (row.service.as_str(), row.servers);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (service, servers) in groups {
        let of: Vec<&QueuesRow> =
            rows.iter().filter(|row| row.service == service && row.servers == servers).collect();
        for (name, figure) in FIGURES {
            let title = format!("{name}, {service} service, {servers} servers");
            page.figure(&title, &sentence(name, &of), &chart(&of, figure));
        }
    }
    page.finish()
}

/// What the highest load shows.
fn sentence(name: &str, rows: &[&QueuesRow]) -> String {
    let shared = rows.iter().filter(|row| row.queues == "shared");
    let Some(row) = shared.max_by(|a, b| a.load.total_cmp(&b.load)) else {
        return String::new();
    };
    let by = if name == "mean" { row.mean_by_separate } else { row.p99_by_separate };
    format!(
        "At load {:.2}, {} has {:.2} of the {name} of separate queues.",
        row.load, row.model, by.value
    )
}

fn chart(rows: &[&QueuesRow], figure: fn(&QueuesRow) -> super::QueueEstimate) -> LineChart {
    let x = Axis::linear("load", Unit::Plain).from(0.0);
    let y = Axis::log("mean service times", Unit::Plain);
    let mut chart = LineChart::new(x, y).spans("95 % confidence");
    for (series, queues) in ["separate", "shared"].into_iter().enumerate() {
        let points = rows.iter().filter(|row| row.queues == queues).map(|row| {
            let of = figure(row);
            let span = Some((of.value - of.margin, of.value + of.margin));
            Point { x: row.load, y: of.value, span }
        });
        chart = chart.with(Line::new(queues, points).series(series).simulated(true));
    }
    chart
}
