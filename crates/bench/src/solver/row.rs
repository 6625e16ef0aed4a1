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
    /// Answers that are proved optimal ÷ all; that there is no feasible one is an answer. `None` for
    /// `balance`, which proves nothing.
    pub optimal_share: Option<f64>,
    /// Answers that meet the bound that comes with them ÷ all. For `balance`, within a hundredth of a lane squared for
    /// each lane.
    pub bound_share: f64,
    /// Feasible answers ÷ all.
    pub feasible_share: f64,
    /// Searches that the budget ended ÷ all.
    pub cut_share: f64,
}

/// The heading of a table of rows.
pub fn heading() -> String {
    format!(
        "{:<15} {:>6} {:>5} {:>10} {:>10} {:>8} {:>8} {:>9} {:>6}",
        "model", "shards", "lanes", "median us", "p99 us", "optimal", "bound", "feasible", "cut"
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
        let proves = measured.iter().all(|each| each.is_optimal.is_some());
        Row {
            model: model.to_owned(),
            shards: size.shards,
            lanes: size.lanes,
            instances: measured.len(),
            median_us: quantile(0.5),
            p99_us: quantile(0.99),
            optimal_share: proves.then(|| share(&|each| each.is_optimal == Some(true))),
            bound_share: share(&|each| each.meets_bound),
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
            "{:<15} {:>6} {:>5} {:>10.1} {:>10.1} {optimal:>8} {:>6.1} % {:>7.1} % {:>4.1} %",
            self.model,
            self.shards,
            self.lanes,
            self.median_us,
            self.p99_us,
            100.0 * self.bound_share,
            100.0 * self.feasible_share,
            100.0 * self.cut_share
        )
    }
}
