//! Runs by what they are of.

use rheostat_measure::confidence::LEAST;
use rheostat_plot::SERIES;
use rheostat_steer::{dispatch, policy};

use super::estimate::ReportEstimate;
use super::metric::Metric;
use crate::noise::Noise;
use crate::record::RecordedRun;

/// All runs of one policy on so many lanes under one load: they differ in their seeds.
#[derive(Clone, Debug)]
pub(super) struct ReportCell<'a> {
    pub(super) policy: &'a str,
    pub(super) lanes: u16,
    pub(super) load: f64,
    pub(super) simulated: bool,
    pub(super) runs: Vec<&'a RecordedRun>,
}

/// The cells of these runs, in the order in which they first came.
pub(super) fn cells(runs: &[RecordedRun]) -> Vec<ReportCell<'_>> {
    let mut cells: Vec<ReportCell<'_>> = Vec::new();
    for run in runs {
        let RecordedRun { policy, lanes, load, simulated, .. } = run;
        let is_same = |cell: &&mut ReportCell<'_>| {
            (cell.policy, cell.lanes, cell.simulated) == (policy, *lanes, *simulated)
                && cell.load.to_bits() == load.to_bits()
        };
        match cells.iter_mut().find(is_same) {
            Some(cell) => cell.runs.push(run),
            None => cells.push(ReportCell {
                policy,
                lanes: *lanes,
                load: *load,
                simulated: *simulated,
                runs: vec![run],
            }),
        }
    }
    cells
}

impl ReportCell<'_> {
    /// What the runs come to.
    pub(super) fn estimate(&self, metric: &Metric) -> Option<ReportEstimate> {
        ReportEstimate::of(self.runs.iter().filter_map(|run| (metric.of)(run)))
    }

    /// Whether a latency lies below twice what the machine alone does.
    pub(super) fn is_limited(&self, metric: &Metric, noise: Option<&Noise>) -> bool {
        let floor = noise.filter(|_| !self.simulated).zip(metric.share);
        let floor = floor.map(|(noise, share)| noise.floor_us(share));
        self.estimate(metric).zip(floor).is_some_and(|(of, floor)| of.value < 2.0 * floor)
    }
}

/// What the spans of estimates of these cells are.
pub(super) fn spans<'a>(cells: impl Iterator<Item = &'a ReportCell<'a>>) -> String {
    match cells.map(|cell| cell.runs.len()).min() {
        Some(runs) if runs >= LEAST => format!("95 % interval of the median of {runs} runs"),
        _ => "range of the runs".to_owned(),
    }
}

/// The policies of these cells, in the order in which they first came.
pub(super) fn policies<'a>(cells: &[ReportCell<'a>]) -> Vec<&'a str> {
    let mut policies = Vec::new();
    for cell in cells {
        if !policies.contains(&cell.policy) {
            policies.push(cell.policy);
        }
    }
    policies
}

/// The values of a key, ascending, each once.
pub(super) fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// The colour of a policy: the same in every figure.
pub(super) fn series(policy: &str) -> usize {
    let known = policy::NAMES.into_iter().chain(dispatch::NAMES);
    known.into_iter().position(|name| name == policy).unwrap_or(SERIES - 1)
}
