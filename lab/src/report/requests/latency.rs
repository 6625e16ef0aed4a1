//! Latencies over the load, a line for each scheduler.

use rheostat_plot::{Axis, Line, LineChart, Page, Point, Unit};

use super::Group;
use crate::record::{RequestClass, RequestRow};

/// A value, and between what it lies, if that is known.
type LatencyMeasurement = Option<(f64, Option<(f64, f64)>)>;

/// What is drawn of a row.
struct Percentile<'a> {
    name: String,
    unit: Unit,
    of: Box<dyn Fn(&RequestRow) -> LatencyMeasurement + 'a>,
}

impl<'a> Percentile<'a> {
    fn of_all(name: &str, of: fn(&RequestRow) -> LatencyMeasurement) -> Percentile<'a> {
        Percentile { name: name.to_owned(), unit: Unit::Microseconds, of: Box::new(of) }
    }

    fn of_class(
        what: &str,
        class: &'a str,
        unit: Unit,
        of: fn(&RequestClass) -> Option<f64>,
    ) -> Percentile<'a> {
        let find = move |row: &RequestRow| {
            let own = row.classes.iter().find(|own| own.name == class)?;
            of(own).map(|value| (value, None))
        };
        Percentile { name: format!("{what} of {class} requests"), unit, of: Box::new(find) }
    }
}

/// Draws p99, p99.9 and, where any row has it, p99.99; p99.9 of latency and of slowdown of each class of requests.
pub(super) fn write(page: &mut Page, group: &Group<'_>) {
    let mut percentiles = vec![
        Percentile::of_all("p99", |row| row.p99_us.map(|value| (value, None))),
        Percentile::of_all("p99.9", |row| {
            row.p999_us.map(|value| (value, row.p999_range.map(Into::into)))
        }),
        Percentile::of_all("p99.99", |row| row.p9999_us.map(|value| (value, None))),
    ];
    let classes = group.rows.iter().flat_map(|row| &row.classes);
    for class in super::distinct(classes.map(|class| class.name.as_str())) {
        percentiles
            .push(Percentile::of_class("p99.9", class, Unit::Microseconds, |class| class.p999_us));
        percentiles.push(Percentile::of_class("p99.9 of slowdown", class, Unit::Plain, |class| {
            class.slowdown_p999
        }));
    }
    for percentile in percentiles {
        if let Some((chart, says)) = chart(group, &percentile) {
            let title = format!("{}: {} over the load", group.name, percentile.name);
            page.figure(&title, &says, &chart);
        }
    }
}

/// A chart, and what it shows at the highest load; `None` where nothing is known.
fn chart(group: &Group<'_>, percentile: &Percentile<'_>) -> Option<(LineChart, String)> {
    let Percentile { name, unit, of } = percentile;
    let are_loads_known = group.rows.iter().all(|row| row.load.is_some());
    let x = match are_loads_known {
        true => Axis::linear("load", Unit::Plain),
        false => Axis::linear("requests offered per second", Unit::Count),
    };
    let mut chart = LineChart::new(x, Axis::log(name, *unit)).spans("95 % confidence");
    let mut last: Vec<(f64, f64, &str)> = Vec::new();
    let schedulers = group.schedulers();
    for (series, scheduler) in schedulers.iter().enumerate() {
        let mut points: Vec<Point> = Vec::new();
        for row in group.rows.iter().filter(|row| row.scheduler == *scheduler && !row.saturated) {
            let x = if are_loads_known { row.load.unwrap_or(0.0) } else { row.offered };
            if let Some((y, span)) = of(row) {
                points.push(Point { x, y, span });
            }
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        last.extend(points.last().map(|point| (point.x, point.y, *scheduler)));
        if !points.is_empty() {
            let line = Line::new(*scheduler, points).series(series);
            chart = chart.with(line.simulated(group.is_simulated()));
        }
    }
    let highest = last.iter().map(|(x, ..)| *x).max_by(f64::total_cmp)?;
    last.retain(|(x, ..)| *x == highest);
    last.sort_by(|a, b| a.1.total_cmp(&b.1));
    let at = match are_loads_known {
        true => format!("load {highest}"),
        false => format!("{} requests per second", Unit::Count.show(highest)),
    };
    let values: Vec<String> =
        last.iter().map(|(_, y, name)| format!("{name} {}", unit.show(*y))).collect();
    Some((chart, format!("At {at}: {}.", values.join(", "))))
}
