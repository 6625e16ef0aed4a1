//! Which figures a file of results gives: those in which something varies.

mod against;
pub(super) mod both;
mod latency;
mod plans;
mod time;

use rheostat_plot::Chart;

use super::cells::{ReportCell, distinct};
use super::metric::Metric;
use super::sentence::{Other, Reference, compared};
use super::versus::Versus;
use crate::noise::Noise;
use crate::record::Results;
use crate::scenario::again;

/// A chart with what it shows.
pub(super) struct ReportFigure {
    pub(super) title: String,
    pub(super) says: String,
    pub(super) chart: Box<dyn Chart>,
}

/// All figures of these results, those that answer most first.
pub(super) fn figures(results: &Results) -> Vec<ReportFigure> {
    let cells = super::cells::cells(&results.runs);
    let noise = results.file_header.noise.as_ref();
    let mut figures = against::load(&cells, noise);
    figures.extend(against::lanes(&cells, noise));
    // With one load on one number of lanes, time is what there is to look at.
    let is_about_time = figures.is_empty();
    if is_about_time {
        figures.extend(time::figures(&cells));
    }
    figures.extend(latency::boxes(&cells));
    figures.extend(latency::tails(&cells, noise));
    if !is_about_time {
        figures.extend(time::figures(&cells));
    }
    figures.extend(plans::figures(&cells));
    figures
}

/// The sentence for cells that differ in their policy alone; `rss` is what the others are compared with, where it
/// is among them.
fn sentence(
    place: &str,
    metric: &Metric,
    cells: &[&ReportCell<'_>],
    noise: Option<&Noise>,
) -> String {
    let measured: Vec<&ReportCell<'_>> =
        cells.iter().filter(|cell| cell.estimate(metric).is_some()).copied().collect();
    let rss = measured.iter().find(|cell| cell.policy == "rss").or(measured.first());
    let Some((cell, of)) = rss.and_then(|cell| Some((*cell, cell.estimate(metric)?))) else {
        return format!("{place}, no run has a figure for {}.", metric.label);
    };
    let is_limited = cell.is_limited(metric, noise);
    let chance = measured.iter().find_map(|first| {
        let twice = again(first.policy);
        let second = measured.iter().find(|second| second.policy == twice)?;
        Versus::of(metric, second, first).map(|versus| versus.most())
    });
    let others = measured.iter().filter(|other| other.policy != cell.policy);
    let others: Vec<_> = others
        .filter_map(|other| {
            Some(Other {
                name: other.policy,
                of: other.estimate(metric)?,
                versus: Versus::of(metric, other, cell)?,
                is_limited: is_limited && other.is_limited(metric, noise),
                chance,
            })
        })
        .collect();
    let reference = Reference { name: cell.policy, of };
    compared(place, metric.label, metric.unit, &reference, &others)
}

/// The cells of the most lanes, and of them those of the highest load: where differences are greatest.
fn hardest<'a, 'b>(cells: &'b [ReportCell<'a>]) -> Vec<&'b ReportCell<'a>> {
    let lanes = cells.iter().map(|cell| cell.lanes).max();
    let of_most = || cells.iter().filter(|cell| Some(cell.lanes) == lanes);
    let load = distinct(of_most().map(|cell| cell.load)).last().copied();
    of_most().filter(|cell| Some(cell.load) == load).collect()
}

/// The load as it is written: `0.94`.
fn load_of(load: f64) -> String {
    rheostat_plot::Unit::Plain.show(load)
}

/// At most `most` of these, evenly picked, with the first and the last.
fn picked<T: Copy>(values: &[T], most: usize) -> Vec<T> {
    if values.len() <= most {
        return values.to_vec();
    }
    (0..most).map(|at| values[at * (values.len() - 1) / (most - 1).max(1)]).collect()
}

/// The cells of each policy, those that were simulated apart.
fn by_policy<'a, 'b>(cells: &[&'b ReportCell<'a>]) -> Vec<(&'a str, Vec<&'b ReportCell<'a>>)> {
    let mut groups: Vec<(&str, Vec<&ReportCell<'_>>)> = Vec::new();
    for &cell in cells {
        let is_same = |group: &&mut (&str, Vec<&ReportCell<'_>>)| {
            group.0 == cell.policy && group.1[0].simulated == cell.simulated
        };
        match groups.iter_mut().find(is_same) {
            Some((_, group)) => group.push(cell),
            None => groups.push((cell.policy, vec![cell])),
        }
    }
    groups
}
