//! A model at one size.

use rheostat_measure::quantiles::Sorted;
use rheostat_measure::record::{Column, TableRow, or_dash};
use serde::{Deserialize, Serialize};

use super::{Size, SolverMeasurement};

/// What a model takes at one size, and how good its answers are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolverRow {
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

impl TableRow for SolverRow {
    const COLUMNS: &'static [Column<SolverRow>] = &[
        Column::name("model", 15, |row| &row.model),
        Column::count("shards", 6, |row| row.shards as u64),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::number("median us", 10, 1, |row| row.median_us),
        Column::number("p99 us", 10, 1, |row| row.p99_us),
        Column::text("optimal", 8, |row| {
            or_dash(row.optimal_share, |share| format!("{:.1} %", 100.0 * share))
        }),
        Column::percent("proved", 8, 1, |row| row.proved_share),
        Column::percent("bound", 8, 1, |row| row.bound_share),
        Column::percent("feasible", 9, 1, |row| row.feasible_share),
        Column::percent("cut", 7, 1, |row| row.cut_share),
        Column::number("value", 7, 2, |row| row.mean_value),
    ];
}

impl SolverRow {
    pub(super) fn of(model: &str, size: Size, measured: &[SolverMeasurement]) -> SolverRow {
        let us = Sorted::of(measured.iter().map(|each| each.us));
        let quantile = |share| us.quantile(share).unwrap_or(0.0);
        let share = |of: &dyn Fn(&SolverMeasurement) -> bool| {
            measured.iter().filter(|each| of(each)).count() as f64 / measured.len().max(1) as f64
        };
        let known = measured.iter().filter_map(|each| each.is_optimal);
        let optimal = known.clone().filter(|optimal| *optimal).count();
        let known = known.count();
        let values = measured.iter().map(|each| each.value as f64).sum::<f64>();
        SolverRow {
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
