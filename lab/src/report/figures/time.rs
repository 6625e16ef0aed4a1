//! How one run of each policy went on.

use rheostat_plot::{Axis, HeatMap, Line, LineChart, Panel, Unit};

use super::{ReportFigure, hardest, load_of, sentence};
use crate::record::{RecordedRun, Series};
use crate::report::cells::{ReportCell, series};
use crate::report::metric::ACTIVE;
use crate::report::sentence;

/// The figures over time: of the first seed, at the highest load, on most lanes.
pub(super) fn figures(cells: &[ReportCell<'_>]) -> Vec<ReportFigure> {
    let cells = hardest(cells);
    let Some(first) = cells.first() else { return Vec::new() };
    let seed = first.runs[0].seed;
    let runs: Vec<&RecordedRun> = cells
        .iter()
        .filter_map(|cell| cell.runs.iter().find(|run| run.seed == seed))
        .copied()
        .collect();
    let at = format!("load {}, {}", load_of(first.load), sentence::lanes(first.lanes));
    let place = format!("In the run of seed {seed}");
    let figures = [
        active(&runs, &cells, &at),
        heat(&runs, &at, &place),
        counted(&runs, &at, &place, &Counted { of: |s| &s.migrations, ..MIGRATIONS }),
        counted(&runs, &at, &place, &Counted { of: |s| &s.dropped, ..DROPS }),
    ];
    figures.into_iter().flatten().collect()
}

/// The mean load of each lane after the warm-up.
fn means(series: &Series) -> Vec<f64> {
    let skipped = (series.warm_up / series.interval.max(f64::MIN_POSITIVE)).round() as usize;
    let mean = |loads: &Vec<f32>| {
        let kept = loads.get(skipped..).unwrap_or_default();
        kept.iter().map(|&load| f64::from(load)).sum::<f64>() / kept.len().max(1) as f64
    };
    series.load.iter().map(mean).collect()
}

fn heat(runs: &[&RecordedRun], at: &str, place: &str) -> Option<ReportFigure> {
    let first = &runs.first()?.series;
    let mut map = HeatMap::new(first.interval, first.warm_up);
    let mut said = Vec::new();
    for run in runs {
        let means = means(&run.series);
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most.is_finite() && run.series.interval == first.interval {
            let show = |share| Unit::Share.show(share);
            said.push(format!("{} {} and {}", run.policy, show(most), show(least)));
            let name = run.policy.clone() + if run.simulated { " (simulated)" } else { "" };
            map = map.with(Panel { name, rows: run.series.load.clone() });
        }
    }
    (!said.is_empty()).then(|| ReportFigure {
        title: format!("Load of every lane over time, {at}"),
        says: format!(
            "{place}, the busiest and the least busy lane were busy on average: {}.",
            said.join("; ")
        ),
        chart: Box::new(map),
    })
}

/// Lanes in use, over the traffic as a number of lanes. Nothing where neither changes.
fn active(runs: &[&RecordedRun], cells: &[&ReportCell<'_>], at: &str) -> Option<ReportFigure> {
    let first = runs.iter().find(|run| !run.series.offered.is_empty() && run.capacity > 0.0)?;
    let lanes_for: Vec<f64> = first.series.offered.iter().map(|pps| pps / first.capacity).collect();
    let changes =
        runs.iter().any(|run| run.series.active.windows(2).any(|pair| pair[0] != pair[1]));
    if !changes && !has_steps(&lanes_for) {
        return None;
    }
    let interval = first.series.interval;
    let mut chart = LineChart::new(
        Axis::linear("time", Unit::Seconds).from(0.0),
        Axis::linear("lanes", Unit::Plain).from(0.0),
    )
    .with(
        Line::new("traffic, in lanes that could just do it", held(&lanes_for, interval))
            .area()
            .plain(),
    );
    for run in runs {
        let active: Vec<f64> = run.series.active.iter().map(|&lanes| lanes.into()).collect();
        let line = Line::new(&run.policy, held(&active, run.series.interval)).step();
        chart = chart.with(line.series(series(&run.policy)).simulated(run.simulated));
    }
    Some(ReportFigure {
        title: format!("Lanes in use over time, {at}"),
        says: sentence("Over all runs", &ACTIVE, cells, None),
        chart: Box::new(chart),
    })
}

/// Whether traffic changes beyond what chance makes it do from interval to interval.
fn has_steps(values: &[f64]) -> bool {
    let smooth: Vec<f64> = values.windows(3).map(|near| near.iter().sum::<f64>() / 3.0).collect();
    let least = smooth.iter().copied().fold(f64::INFINITY, f64::min);
    let most = smooth.iter().copied().fold(0.0, f64::max);
    most > 1.5 * least
}

/// What is counted up over a run.
struct Counted {
    title: &'static str,
    axis: &'static str,
    what: &'static str,
    of: fn(&Series) -> &Vec<u64>,
}

const MIGRATIONS: Counted = Counted {
    title: "Migrations over time",
    axis: "shards that have changed lanes",
    what: "shards changed lanes",
    of: |series| &series.migrations,
};
const DROPS: Counted = Counted {
    title: "Drops over time",
    axis: "packets dropped so far",
    what: "packets were dropped",
    of: |series| &series.dropped,
};

fn counted(
    runs: &[&RecordedRun],
    at: &str,
    place: &str,
    counted: &Counted,
) -> Option<ReportFigure> {
    let mut chart = LineChart::new(
        Axis::linear("time", Unit::Seconds).from(0.0),
        Axis::linear(counted.axis, Unit::Count).from(0.0),
    );
    let mut said = Vec::new();
    let mut any = false;
    for run in runs {
        let each = (counted.of)(&run.series);
        let sums: Vec<f64> = each
            .iter()
            .scan(0, |sum, count| {
                *sum += count;
                Some(*sum as f64)
            })
            .collect();
        let total = sums.last().copied().unwrap_or_default();
        any |= total > 0.0;
        said.push(format!("{} {}", run.policy, Unit::Count.show(total)));
        let line = Line::new(&run.policy, held(&sums, run.series.interval)).step();
        chart = chart.with(line.series(series(&run.policy)).simulated(run.simulated));
    }
    any.then(|| ReportFigure {
        title: format!("{}, {at}", counted.title),
        says: format!("{place}, warm-up included, so many {}: {}.", counted.what, said.join(", ")),
        chart: Box::new(chart),
    })
}

/// Values of intervals as points, the last one held to the end of its interval.
fn held(values: &[f64], interval: f64) -> Vec<(f64, f64)> {
    let points = values.iter().enumerate().map(|(at, value)| (at as f64 * interval, *value));
    let last = values.last().map(|value| (values.len() as f64 * interval, *value));
    points.chain(last).collect()
}
