//! Replies beside requests.

use rheostat_plot::{Axis, Line, LineChart, Page, Unit};

use super::Group;

/// A scheduler that answers less than this share of what is offered does not keep up.
const KEPT_UP: f64 = 0.985;

/// Draws replies over requests, if any scheduler does not keep up at a load that it was measured at.
pub(super) fn write(page: &mut Page, group: &Group<'_>) {
    let mut chart = LineChart::new(
        Axis::linear("requests offered per second", Unit::Count).from(0.0),
        Axis::linear("replies per second", Unit::Count).from(0.0),
    );
    let schedulers = group.schedulers();
    let (mut behind, mut most): (Vec<String>, f64) = (Vec::new(), 0.0);
    for (series, scheduler) in schedulers.iter().enumerate() {
        let own = group.rows.iter().filter(|row| row.scheduler == *scheduler);
        let mut points: Vec<(f64, f64)> =
            own.filter_map(|row| Some((row.offered, row.achieved?))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lags = |(offered, achieved): &&(f64, f64)| *achieved < KEPT_UP * *offered;
        if let Some((offered, achieved)) = points.iter().find(lags) {
            let [offered, achieved] = [offered, achieved].map(|rate| Unit::Count.show(*rate));
            behind.push(format!("{scheduler} {achieved} of {offered}"));
        }
        most = points.iter().map(|(offered, _)| *offered).fold(most, f64::max);
        if !points.is_empty() {
            let line = Line::new(*scheduler, points).series(series);
            chart = chart.with(line.simulated(group.is_simulated()));
        }
    }
    if behind.is_empty() {
        return;
    }
    let chart = chart.with(Line::new("as many", [(0.0, 0.0), (most, most)]).plain());
    let says = format!("Do not keep up, from these rates on: {}.", behind.join(", "));
    page.figure(&format!("{}: replies over requests", group.name), &says, &chart);
}
