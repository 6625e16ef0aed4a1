//! Latencies over the load, a line for each scheduler.

use super::Group;
use crate::record::RequestRow;
use crate::report::page::Page;
use crate::report::plot::{Axis, Line, LineChart, Point, Unit};

/// A percentile of a row, and between what it lies, if that is known.
type Of<'a> = Box<dyn Fn(&RequestRow) -> Option<(f64, Option<(f64, f64)>)> + 'a>;

/// Draws p99 and p99.9, and p99.9 of each class of requests.
pub(super) fn write(page: &mut Page, group: &Group<'_>) {
    let mut percentiles: Vec<(String, Of<'_>)> = vec![
        ("p99".to_owned(), Box::new(|row| row.p99_us.map(|value| (value, None)))),
        (
            "p99.9".to_owned(),
            Box::new(|row| row.p999_us.map(|value| (value, row.p999_range.map(Into::into)))),
        ),
    ];
    let classes = group.rows.iter().flat_map(|row| &row.classes);
    for class in super::distinct(classes.map(|class| class.name.as_str())) {
        let of = move |row: &RequestRow| {
            let own = row.classes.iter().find(|own| own.name == class)?;
            own.p999_us.map(|value| (value, None))
        };
        percentiles.push((format!("p99.9 of {class} requests"), Box::new(of)));
    }
    for (name, of) in percentiles {
        if let Some((chart, says)) = chart(group, &name, &of) {
            page.figure(&format!("{}: {name} over the load", group.name), &says, &chart);
        }
    }
}

/// A chart, and what it shows at the highest load; `None` where nothing is known.
fn chart(group: &Group<'_>, name: &str, of: &Of<'_>) -> Option<(LineChart, String)> {
    let are_loads_known = group.rows.iter().all(|row| row.load.is_some());
    let x = match are_loads_known {
        true => Axis::linear("load", Unit::Plain),
        false => Axis::linear("requests offered per second", Unit::Count),
    };
    let mut chart = LineChart::new(x, Axis::log(name, Unit::Microseconds)).spans("95 % confidence");
    let mut last: Vec<(f64, f64, &str)> = Vec::new();
    for scheduler in group.own_schedulers() {
        let mut points: Vec<Point> = Vec::new();
        for row in group.rows.iter().filter(|row| row.scheduler == scheduler && !row.saturated) {
            let x = if are_loads_known { row.load.unwrap_or(0.0) } else { row.offered };
            if let Some((y, span)) = of(row) {
                points.push(Point { x, y, span });
            }
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        last.extend(points.last().map(|point| (point.x, point.y, scheduler)));
        if !points.is_empty() {
            chart = chart.with(Line::new(scheduler, points).series(group.series(scheduler)));
        }
    }
    let highest = last.iter().map(|(x, ..)| *x).max_by(f64::total_cmp)?;
    last.retain(|(x, ..)| *x == highest);
    last.sort_by(|a, b| a.1.total_cmp(&b.1));
    let at = match are_loads_known {
        true => format!("load {highest}"),
        false => format!("{} requests per second", Unit::Count.show(highest)),
    };
    let values = last.iter().map(|(_, y, name)| format!("{name} {}", Unit::Microseconds.show(*y)));
    Some((chart, format!("At {at}: {}.", values.collect::<Vec<_>>().join(", "))))
}
