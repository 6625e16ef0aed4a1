//! Two results held against each other, row by row.

mod ratio;
mod requests;
mod text;

pub use requests::{RequestComparison, RequestPair, RequestRatio, compare_requests};
use serde::Serialize;

use super::cells::{ReportCell, cells};
use super::metric::{DROPS, IMBALANCE, MIGRATIONS, Metric, P50, P95, P99, THROUGHPUT};
use crate::record::Results;

/// What is compared.
static METRICS: [Metric; 7] = [P50, P95, P99, DROPS, IMBALANCE, MIGRATIONS, THROUGHPUT];

/// How two results compare, in the order of the first.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One for each policy, number of lanes and load of either.
    pub rows: Vec<RowPair>,
}

/// A row that either or both have.
#[derive(Clone, Debug)]
pub struct RowPair {
    /// The policy.
    pub policy: String,
    /// The number of lanes.
    pub lanes: u16,
    /// The load, as a share of what all lanes can do.
    pub load: f64,
    /// The side that has no such row.
    pub missing: Option<ComparedSide>,
    /// The ratios, if both have it.
    pub ratios: Vec<Ratio>,
}

/// One of two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedSide {
    /// The first.
    A,
    /// The second.
    B,
}

/// A figure of B as a multiple of A's.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// Which: `p50_us`, `p95_us`, `p99_us`, `drop_share`, `imbalance`, `migrations_per_second`, `delivered_pps`.
    pub figure: &'static str,
    /// A's median.
    pub a: f64,
    /// B's median.
    pub b: f64,
    /// B ÷ A; 1 where both are 0, infinite (`null` in JSON) where only A is.
    pub ratio: f64,
    /// Between what the ratio lies with a confidence of 95 %; with fewer than six runs of a side, less sure.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Pairs of runs with the same seed that it is of; 0 if runs could not be paired.
    pub pairs: usize,
    /// Runs of A.
    pub runs_a: usize,
    /// Runs of B.
    pub runs_b: usize,
    /// What may be said.
    pub verdict: Verdict,
    #[serde(skip)]
    metric: &'static Metric,
}

/// What a ratio comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B has the lower latency, or the higher throughput.
    Faster,
    /// B has the higher latency, or the lower throughput.
    Slower,
    /// B has less of what no speed is: drops, imbalance, migrations.
    Less,
    /// B has more of it.
    More,
    /// The interval holds 1.
    NoDifference,
    /// There are too few runs to decide.
    TooFewRuns,
    /// Both lie within what the machine does by itself.
    WithinNoise,
}

/// Compares two results.
pub fn compare(a: &Results, b: &Results) -> Comparison {
    let (of_a, of_b) = (cells(&a.runs), cells(&b.runs));
    // Simulated and measured rows may be compared: that is how a simulation is checked.
    let same = |one: &ReportCell<'_>, other: &ReportCell<'_>| {
        (one.policy, one.lanes) == (other.policy, other.lanes)
            && (one.load - other.load).abs() < 1e-9
    };
    let mut rows = Vec::new();
    for one in &of_a {
        let other = of_b.iter().find(|other| same(one, other));
        let ratios = other.map(|other| ratios((a, one), (b, other)));
        let missing = other.is_none().then_some(ComparedSide::B);
        rows.push(row(one, missing, ratios.unwrap_or_default()));
    }
    for other in of_b.iter().filter(|other| !of_a.iter().any(|one| same(one, other))) {
        rows.push(row(other, Some(ComparedSide::A), Vec::new()));
    }
    Comparison { rows }
}

fn row(cell: &ReportCell<'_>, missing: Option<ComparedSide>, ratios: Vec<Ratio>) -> RowPair {
    let ReportCell { policy, lanes, load, .. } = *cell;
    RowPair { policy: policy.to_owned(), lanes, load, missing, ratios }
}

fn ratios(
    (a, of_a): (&Results, &ReportCell<'_>),
    (b, of_b): (&Results, &ReportCell<'_>),
) -> Vec<Ratio> {
    let ratio = |metric: &'static Metric| {
        let is_limited = of_a.is_limited(metric, a.file_header.noise.as_ref())
            && of_b.is_limited(metric, b.file_header.noise.as_ref());
        ratio::ratio(metric, of_a, of_b, is_limited)
    };
    METRICS.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests;
