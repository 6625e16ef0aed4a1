//! What planning costs, and how many attempts it takes.

use rheostat_plot::{Axis, Bar, BarChart, Line, LineChart, Point, Unit};

use super::{ReportFigure, by_policy, hardest, load_of};
use crate::record::{Plans, RecordedRun};
use crate::report::cells::{ReportCell, distinct, series, spans};
use crate::report::estimate::ReportEstimate;
use crate::report::sentence::lanes;

/// The figures of plans, where there was a controller.
pub(super) fn figures(cells: &[ReportCell<'_>]) -> Vec<ReportFigure> {
    [times(cells), first_attempts(cells)].into_iter().flatten().collect()
}

fn plans(run: &RecordedRun) -> Option<&Plans> {
    run.plans.as_ref().filter(|plans| plans.count > 0)
}

fn estimate(cell: &ReportCell<'_>, of: impl Fn(&Plans) -> Option<f64>) -> Option<ReportEstimate> {
    ReportEstimate::of(cell.runs.iter().filter_map(|run| of(plans(run)?)))
}

/// The share of searches that ended with their first attempt.
fn first_share(plans: &Plans) -> Option<f64> {
    let (first, searched) = plans.first_attempt.zip(plans.searched)?;
    (searched > 0).then(|| first as f64 / searched as f64)
}

/// At the highest load of each number of lanes.
fn of_highest_loads<'a, 'b>(cells: &'b [ReportCell<'a>]) -> Vec<&'b ReportCell<'a>> {
    let highest = |lanes: u16| {
        let loads = cells.iter().filter(|cell| cell.lanes == lanes).map(|cell| cell.load);
        loads.fold(f64::NEG_INFINITY, f64::max)
    };
    cells.iter().filter(|cell| cell.load == highest(cell.lanes)).collect()
}

fn times(cells: &[ReportCell<'_>]) -> Option<ReportFigure> {
    let hardest = hardest(cells);
    let timed: Vec<(&ReportCell<'_>, ReportEstimate, ReportEstimate)> = hardest
        .iter()
        .filter_map(|cell| {
            let p50 = estimate(cell, |plans| Some(plans.solve_us_p50))?;
            Some((*cell, p50, estimate(cell, |plans| Some(plans.solve_us_p99))?))
        })
        .collect();
    let first = timed.first()?.0;
    let of = |(cell, p50, p99): &(&ReportCell<'_>, ReportEstimate, ReportEstimate)| {
        let [p50, p99] = [p50, p99].map(|of| Unit::Microseconds.show_in(of.value, of.span()));
        format!("{} {p50}, 99\u{a0}% of them within {p99}", cell.policy)
    };
    let says = format!(
        "On {} a plan took, in the middle: {}; in time of the machine that planned, whether or not the run was simulated.",
        lanes(first.lanes),
        timed.iter().map(of).collect::<Vec<_>>().join("; ")
    );
    let along = of_highest_loads(cells);
    let chart: Box<dyn super::Chart> = if several_lanes(&along) {
        let time = |plans: &Plans| Some(plans.solve_us_p50);
        let y = Axis::log("time of half of the plans", Unit::Microseconds);
        Box::new(against_lanes(&along, y, time))
    } else {
        let groups = timed.iter().map(|(cell, ..)| cell.policy.to_owned()).collect();
        let y = Axis::linear("time of a plan", Unit::Microseconds);
        let mut chart = BarChart::new("policy", groups, y);
        for (group, (_, p50, p99)) in timed.iter().enumerate() {
            // The time is real in any case: nothing is hatched here.
            for (name, series, of) in
                [("half of the plans within", 1, p50), ("99 % of the plans within", 5, p99)]
            {
                let (name, value) = (name.to_owned(), of.value);
                chart = chart.with(Bar {
                    group,
                    name,
                    series,
                    simulated: false,
                    value,
                    span: of.span(),
                });
            }
        }
        Box::new(chart)
    };
    Some(ReportFigure {
        title: format!("Time of a plan, load {}", load_of(first.load)),
        says,
        chart,
    })
}

fn first_attempts(cells: &[ReportCell<'_>]) -> Option<ReportFigure> {
    let along: Vec<&ReportCell<'_>> = of_highest_loads(cells)
        .into_iter()
        .filter(|cell| estimate(cell, first_share).is_some())
        .collect();
    let most = along.iter().map(|cell| cell.lanes).max()?;
    let said = along.iter().filter(|cell| cell.lanes == most).map(|cell| {
        let sum = |of: fn(&Plans) -> Option<u64>| {
            cell.runs.iter().filter_map(|run| of(plans(run)?)).sum::<u64>()
        };
        let (first, searched) = (sum(|p| p.first_attempt), sum(|p| p.searched));
        let share = Unit::Share.show(first as f64 / searched.max(1) as f64);
        format!("{share} of {}'s {} searches", cell.policy, Unit::Count.show(searched as f64))
    });
    let says = format!(
        "On {}, the first attempt was the last in {}.",
        lanes(most),
        said.collect::<Vec<_>>().join(", ")
    );
    let y = Axis::linear("searches that ended with their first attempt", Unit::Share).from(0.0);
    let chart: Box<dyn super::Chart> = if several_lanes(&along) {
        Box::new(against_lanes(&along, y.from(0.0), first_share))
    } else {
        let groups = along.iter().map(|cell| cell.policy.to_owned()).collect();
        let mut chart = BarChart::new("policy", groups, y);
        for (group, cell) in along.iter().enumerate() {
            let Some(of) = estimate(cell, first_share) else { continue };
            chart = chart.with(Bar {
                group,
                name: cell.policy.to_owned(),
                series: series(cell.policy),
                simulated: cell.simulated,
                value: of.value,
                span: of.span(),
            });
        }
        Box::new(chart)
    };
    Some(ReportFigure {
        title: "Searches that ended with their first attempt".to_owned(),
        says,
        chart,
    })
}

fn several_lanes(cells: &[&ReportCell<'_>]) -> bool {
    distinct(cells.iter().map(|cell| cell.lanes.into())).len() > 1
}

fn against_lanes(
    cells: &[&ReportCell<'_>],
    y: Axis,
    of: impl Fn(&Plans) -> Option<f64> + Copy,
) -> LineChart {
    let mut chart =
        LineChart::new(Axis::log("lanes", Unit::Plain), y).spans(spans(cells.iter().copied()));
    for (policy, mut cells) in by_policy(cells) {
        cells.sort_by_key(|cell| cell.lanes);
        let points: Vec<Point> = cells
            .iter()
            .filter_map(|cell| {
                let estimate = estimate(cell, of)?;
                Some(Point { x: cell.lanes.into(), y: estimate.value, span: estimate.span() })
            })
            .collect();
        if !points.is_empty() {
            chart = chart.with(Line::new(policy, points).series(series(policy)));
        }
    }
    chart
}
