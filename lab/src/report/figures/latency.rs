//! Latencies beyond a single percentile.

use rheostat_plot::{Axis, BoxChart, Floor, Line, LineChart, Percentiles, Unit};

use super::{ReportFigure, by_policy, load_of, picked, sentence};
use crate::noise::Noise;
use crate::record::RecordedRun;
use crate::report::cells::{ReportCell, distinct, series};
use crate::report::estimate::ReportEstimate;
use crate::report::metric::{Metric, P50};
use crate::report::sentence;

const P999: Metric =
    Metric { label: "p99.9", share: Some(0.999), of: |run| run.latency(0.999), ..P50 };

/// The median over the runs of the latency that a share of the packets stays within.
fn latency(cell: &ReportCell<'_>, share: f64) -> Option<f64> {
    ReportEstimate::of(cell.runs.iter().filter_map(|run| run.latency(share))).map(|of| of.value)
}

/// The cells on most lanes, and their loads.
fn of_most_lanes<'a, 'b>(cells: &'b [ReportCell<'a>]) -> (u16, Vec<&'b ReportCell<'a>>, Vec<f64>) {
    let lanes = cells.iter().map(|cell| cell.lanes).max().unwrap_or_default();
    let cells: Vec<_> = cells.iter().filter(|cell| cell.lanes == lanes).collect();
    let loads = distinct(cells.iter().map(|cell| cell.load));
    (lanes, cells, loads)
}

/// Boxes for each load.
pub(super) fn boxes(cells: &[ReportCell<'_>]) -> Option<ReportFigure> {
    const GROUPS: usize = 4;
    let (lanes, cells, loads) = of_most_lanes(cells);
    let loads = picked(&loads, GROUPS);
    let axis = Axis::log("latency", Unit::Microseconds);
    let groups = loads.iter().map(|load| load_of(*load)).collect();
    let mut chart = BoxChart::new("load, as a share of what all lanes can do", groups, axis);
    let mut is_empty = true;
    for (group, &load) in loads.iter().enumerate() {
        for cell in cells.iter().filter(|cell| cell.load == load) {
            let at = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].map(|share| latency(cell, share));
            let [Some(p5), Some(p25), Some(p50), Some(p75), Some(p95), Some(p99)] = at else {
                continue;
            };
            is_empty = false;
            chart = chart.with(Percentiles {
                group,
                name: cell.policy.to_owned(),
                series: series(cell.policy),
                simulated: cell.simulated,
                at: [p5, p25, p50, p75, p95, p99],
            });
        }
    }
    let highest = loads.last().filter(|_| !is_empty)?;
    let hardest: Vec<_> = cells.iter().filter(|cell| cell.load == *highest).copied().collect();
    let place = format!("At a load of {} on {}", load_of(*highest), sentence::lanes(lanes));
    Some(ReportFigure {
        title: format!("Distribution of latency, {}", sentence::lanes(lanes)),
        says: sentence(&place, &P50, &hardest, None),
        chart: Box::new(chart),
    })
}

/// The tail for each load, with the machine's own.
pub(super) fn tails(cells: &[ReportCell<'_>], noise: Option<&Noise>) -> Vec<ReportFigure> {
    const LOADS: usize = 3;
    let (lanes, cells, loads) = of_most_lanes(cells);
    let figure = |load: f64| {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.load == load).copied().collect();
        let mut chart = LineChart::new(
            Axis::nines("share of the packets"),
            Axis::log("latency that so many stay within", Unit::Microseconds),
        );
        let mut is_empty = true;
        for (policy, cells) in by_policy(&cells) {
            let shares = RecordedRun::SHARES.iter().filter(|share| (0.5..1.0).contains(*share));
            let points: Vec<(f64, f64)> =
                shares.filter_map(|&share| Some((share, latency(cells[0], share)?))).collect();
            is_empty &= points.is_empty();
            let line = Line::new(policy, points).series(series(policy));
            chart = chart.with(line.simulated(cells[0].simulated));
        }
        if cells.iter().all(|cell| !cell.simulated) {
            chart = chart.floor(noise.map(|noise| Floor {
                text: "the machine's own; figures below twice that say nothing".to_owned(),
                points: noise.floors_us.clone(),
            }));
        }
        let place = format!("At a load of {} on {}", load_of(load), sentence::lanes(lanes));
        (!is_empty).then(|| ReportFigure {
            title: format!("Tail of latency, load {}, {}", load_of(load), sentence::lanes(lanes)),
            says: sentence(&place, &P999, &cells, noise),
            chart: Box::new(chart),
        })
    };
    picked(&loads, LOADS).into_iter().filter_map(figure).collect()
}
