//! A model at one size.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Measured, Size};

/// What a model takes at one size, and how good its answers are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `fewest-lanes`, `fewest-changes` or `balance`.
    pub model: String,
    /// Shards.
    pub shards: usize,
    /// Lanes.
    pub lanes: usize,
    /// Problems.
    pub instances: usize,
    /// The median time over problems, in microseconds.
    pub median_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
    /// Answers that are optimal ÷ those of which it is known whether they are; that nothing is feasible is an answer.
    /// `None` for `balance`, of which it is not known.
    pub optimal_share: Option<f64>,
    /// Answers of which it is known whether they are optimal ÷ all.
    pub proved_share: f64,
    /// Answers that meet the bound that comes with them ÷ all. For `balance`, within a hundredth of a lane squared for
    /// each lane.
    pub bound_share: f64,
    /// Lanes, for other models changes: the mean.
    pub mean_value: f64,
    /// Feasible answers ÷ all.
    pub feasible_share: f64,
    /// Searches that the budget ended ÷ all.
    pub cut_share: f64,
}

/// The heading of a table of rows.
pub fn heading() -> String {
    format!(
        "{:<15} {:>6} {:>5} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>7} {:>7}",
        "model",
        "shards",
        "lanes",
        "median us",
        "p99 us",
        "optimal",
        "proved",
        "bound",
        "feasible",
        "cut",
        "value"
    )
}

impl Row {
    pub(super) fn of(model: &str, size: Size, measured: &[Measured]) -> Row {
        let mut us: Vec<f64> = measured.iter().map(|each| each.us).collect();
        us.sort_by(f64::total_cmp);
        let rank = |share: f64| (us.len() as f64 * share).ceil() as usize;
        let quantile = |share| us.get(rank(share).max(1) - 1).copied().unwrap_or(0.0);
        let share = |of: &dyn Fn(&Measured) -> bool| {
            measured.iter().filter(|each| of(each)).count() as f64 / measured.len().max(1) as f64
        };
        let known = measured.iter().filter_map(|each| each.is_optimal);
        let optimal = known.clone().filter(|optimal| *optimal).count();
        let known = known.count();
        let values = measured.iter().map(|each| each.value as f64).sum::<f64>();
        Row {
            model: model.to_owned(),
            shards: size.shards,
            lanes: size.lanes,
            instances: measured.len(),
            median_us: quantile(0.5),
            p99_us: quantile(0.99),
            optimal_share: (known > 0).then(|| optimal as f64 / known as f64),
            proved_share: share(&|each| each.is_optimal.is_some()),
            bound_share: share(&|each| each.meets_bound),
            mean_value: values / measured.len().max(1) as f64,
            feasible_share: share(&|each| each.is_feasible),
            cut_share: share(&|each| each.is_cut),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optimal =
            self.optimal_share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        write!(
            f,
            "{:<15} {:>6} {:>5} {:>10.1} {:>10.1} {optimal:>8} {:>6.1} % {:>6.1} % {:>7.1} % {:>5.1} % {:>7.2}",
            self.model,
            self.shards,
            self.lanes,
            self.median_us,
            self.p99_us,
            100.0 * self.proved_share,
            100.0 * self.bound_share,
            100.0 * self.feasible_share,
            100.0 * self.cut_share,
            self.mean_value
        )
    }
}
