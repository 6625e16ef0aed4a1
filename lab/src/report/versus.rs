//! A figure as a multiple of another, and between what that lies.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_measure::confidence::{LEAST, Median};

use super::cells::ReportCell;
use super::estimate::{Difference, ReportEstimate};
use super::metric::Metric;

/// How some runs stand to others, which are the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Versus {
    /// As a multiple of the reference: 1 where both are 0, infinite where only the reference is.
    pub(super) ratio: f64,
    /// Between what it lies with a confidence of 95 %.
    pub(super) low: f64,
    pub(super) high: f64,
    /// How many pairs of runs with the same seed it is of; 0 if they could not be paired.
    pub(super) pairs: usize,
    /// What may be said.
    pub(super) difference: Difference,
}

impl Versus {
    /// Compares the runs of two cells; nothing where either has no such figure.
    ///
    /// Runs with the same seed had the same packets at the same times, so what differs between them is not the
    /// traffic: they are compared pair by pair where there are enough.
    pub(super) fn of(
        metric: &Metric,
        one: &ReportCell<'_>,
        reference: &ReportCell<'_>,
    ) -> Option<Versus> {
        let values = |cell: &ReportCell<'_>| -> Vec<f64> {
            let all = cell.runs.iter().filter_map(|run| (metric.of)(run));
            all.filter(|value| !value.is_nan()).collect()
        };
        let partner = |seed: u64| reference.runs.iter().find(|run| run.seed == seed);
        let pair = |seed: u64, value: f64| Some((value, (metric.of)(partner(seed)?)?));
        let pairs = one.runs.iter().filter_map(|run| pair(run.seed, (metric.of)(run)?));
        let pairs: Vec<_> = pairs.filter(|(a, b)| !a.is_nan() && !b.is_nan()).collect();
        Versus::between(&values(one), &values(reference), &pairs)
    }

    /// Compares values with those of a reference; `pairs` are pairs of one of each.
    pub(super) fn between(
        values: &[f64],
        reference: &[f64],
        pairs: &[(f64, f64)],
    ) -> Option<Versus> {
        let of = ReportEstimate::of(values.iter().copied())?;
        let of_reference = ReportEstimate::of(reference.iter().copied())?;
        let is_paired = pairs.len() >= LEAST;
        let Median { value, low, high } = if is_paired {
            Median::of(pairs.iter().map(|(one, other)| quotient(*one, *other)).collect())
        } else {
            resampled(values, reference)
        };
        let difference = if !is_paired && of.runs.min(of_reference.runs) < LEAST {
            of.against(&of_reference)
        } else if low > 1.0 {
            Difference::Above
        } else if high < 1.0 {
            Difference::Below
        } else {
            Difference::None
        };
        let pairs = if is_paired { pairs.len() } else { 0 };
        Some(Versus { ratio: value, low, high, pairs, difference })
    }
}

impl Versus {
    /// By what factor one side may be above or below the other, at most.
    pub(super) fn most(&self) -> f64 {
        self.high.max(self.low.recip()).max(1.0)
    }

    /// By what factor one side is above or below the other.
    pub(super) fn factor(&self) -> f64 {
        self.ratio.max(self.ratio.recip())
    }
}

/// None of none is as much.
fn quotient(value: f64, reference: f64) -> f64 {
    if value == 0.0 && reference == 0.0 { 1.0 } else { value / reference }
}

/// The ratio of the medians, and between what it lies by the bootstrap: both sides drawn anew from themselves
/// (Efron and Tibshirani, "An Introduction to the Bootstrap", on percentile intervals). The same for the same
/// values.
fn resampled(values: &[f64], reference: &[f64]) -> Median {
    const TIMES: usize = 2_000;
    let mut random = SmallRng::seed_from_u64(TIMES as u64);
    let mut again = |values: &[f64]| {
        let drawn = (0..values.len()).map(|_| values[random.random_range(0..values.len())]);
        Median::of(drawn.collect()).value
    };
    let mut ratios: Vec<f64> =
        (0..TIMES).map(|_| quotient(again(values), again(reference))).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = |values: &[f64]| Median::of(values.to_vec()).value;
    Median {
        value: quotient(middle(values), middle(reference)),
        low: ratios[TIMES / 40],
        high: ratios[TIMES - 1 - TIMES / 40],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_every_pair_differs_however_much_the_pairs_do() {
        // Traffic decides about the most; under the same traffic, one is always a tenth below the other.
        let reference = [10.0, 200.0, 3_000.0, 40.0, 500.0, 60.0];
        let values = reference.map(|value| 0.9 * value);
        let pairs: Vec<(f64, f64)> = values.into_iter().zip(reference).collect();
        let paired = Versus::between(&values, &reference, &pairs).unwrap();
        assert_eq!((paired.difference, paired.pairs), (Difference::Below, 6));
        assert!((paired.ratio - 0.9).abs() < 1e-9 && (paired.high - 0.9).abs() < 1e-9);
        let unpaired = Versus::between(&values, &reference, &[]).unwrap();
        assert_eq!((unpaired.difference, unpaired.pairs), (Difference::None, 0));
        assert!(unpaired.low < 0.9 && unpaired.high > 0.9, "{unpaired:?}");
    }

    #[test]
    fn what_differs_in_all_pairs_but_one_may_be_the_same() {
        let reference = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
        let values = [9.0, 18.0, 27.0, 36.0, 45.0, 61.0];
        let pairs: Vec<(f64, f64)> = values.into_iter().zip(reference).collect();
        let paired = Versus::between(&values, &reference, &pairs).unwrap();
        assert_eq!(paired.difference, Difference::None);
    }
}
