//! A ratio, and between what it lies.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{Ratio, Verdict};
use crate::confidence::{LEAST, Median};
use crate::report::cells::Cell;
use crate::report::estimate::Difference;
use crate::report::metric::{Kind, Metric};

/// B's figure as a multiple of A's; nothing where either has none.
pub(super) fn ratio(
    metric: &'static Metric,
    a: &Cell<'_>,
    b: &Cell<'_>,
    is_limited: bool,
) -> Option<Ratio> {
    let (of_a, of_b) = (a.estimate(metric)?, b.estimate(metric)?);
    let pairs = pairs(metric, a, b);
    let is_paired = pairs.len() >= LEAST;
    let Median { value, low, high } = if is_paired {
        Median::of(pairs.iter().map(|(a, b)| quotient(*b, *a)).collect())
    } else {
        let values = |cell: &Cell<'_>| -> Vec<f64> {
            cell.runs.iter().filter_map(|run| (metric.of)(run)).collect()
        };
        resampled(&values(a), &values(b))
    };
    let difference = if !is_paired && of_a.runs.min(of_b.runs) < LEAST {
        of_b.against(&of_a)
    } else if low > 1.0 {
        Difference::Above
    } else if high < 1.0 {
        Difference::Below
    } else {
        Difference::None
    };
    Some(Ratio {
        figure: metric.name,
        a: of_a.value,
        b: of_b.value,
        ratio: value,
        low,
        high,
        pairs: if is_paired { pairs.len() } else { 0 },
        runs_a: of_a.runs,
        runs_b: of_b.runs,
        verdict: if is_limited { Verdict::WithinNoise } else { verdict(metric.kind, difference) },
        metric,
    })
}

/// The values of runs with the same seed: they had the same packets at the same times, so what differs between them
/// is not the traffic.
fn pairs(metric: &Metric, a: &Cell<'_>, b: &Cell<'_>) -> Vec<(f64, f64)> {
    let partner = |seed: u64| b.runs.iter().find(|run| run.seed == seed);
    a.runs
        .iter()
        .filter_map(|run| Some(((metric.of)(run)?, (metric.of)(partner(run.seed)?)?)))
        .collect()
}

/// B's part of A's; none of none is as much.
fn quotient(b: f64, a: f64) -> f64 {
    if a == 0.0 && b == 0.0 { 1.0 } else { b / a }
}

/// The ratio of the medians, and between what it lies by the bootstrap: both sides drawn anew from themselves
/// (Efron and Tibshirani, "An Introduction to the Bootstrap", on percentile intervals). The same for the same
/// values.
fn resampled(a: &[f64], b: &[f64]) -> Median {
    const TIMES: usize = 2_000;
    let mut random = SmallRng::seed_from_u64(TIMES as u64);
    let mut again = |values: &[f64]| {
        let drawn = (0..values.len()).map(|_| values[random.random_range(0..values.len())]);
        Median::of(drawn.collect()).value
    };
    let mut ratios: Vec<f64> = (0..TIMES).map(|_| quotient(again(b), again(a))).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = |values: &[f64]| Median::of(values.to_vec()).value;
    Median {
        value: quotient(middle(b), middle(a)),
        low: ratios[TIMES / 40],
        high: ratios[TIMES - 1 - TIMES / 40],
    }
}

fn verdict(kind: Kind, difference: Difference) -> Verdict {
    match (difference, kind) {
        (Difference::None, _) => Verdict::NoDifference,
        (Difference::Unknown, _) => Verdict::TooFewRuns,
        (Difference::Below, Kind::Time) | (Difference::Above, Kind::Rate) => Verdict::Faster,
        (Difference::Above, Kind::Time) | (Difference::Below, Kind::Rate) => Verdict::Slower,
        (Difference::Below, Kind::Amount) => Verdict::Less,
        (Difference::Above, Kind::Amount) => Verdict::More,
    }
}
