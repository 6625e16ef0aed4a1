//! How values are distributed.

use serde::Serialize;

/// Where values lie. `p90` is the least value that 90 % of them do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The average.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// See above.
    pub p90: f64,
    /// See above.
    pub p95: f64,
    /// See above.
    pub p99: f64,
    /// The greatest value.
    pub most: f64,
}

/// A cumulative distribution, to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Values, rising.
    pub value: Vec<f64>,
    /// The share of all values up to each of these, between 0 and 1.
    pub share: Vec<f64>,
}

/// Values in their order, each with how often it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    /// A value, and how many values there are up to it.
    up_to: Vec<(u64, u64)>,
    sum: f64,
}

impl Distribution {
    /// That of values with their counts, rising.
    pub(super) fn of_counts(counts: impl IntoIterator<Item = (u64, u64)>) -> Distribution {
        let mut distribution = Distribution::default();
        let mut total = 0;
        for (value, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            total += count;
            distribution.up_to.push((value, total));
            distribution.sum += value as f64 * count as f64;
        }
        distribution
    }

    /// That of single values in any order.
    pub(super) fn of(mut values: Vec<u64>) -> Distribution {
        values.sort_unstable();
        let runs = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64));
        Distribution::of_counts(runs)
    }

    fn total(&self) -> u64 {
        self.up_to.last().map_or(0, |(_, total)| *total)
    }

    /// The least value that this share of all does not exceed.
    fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.total() as f64).ceil().max(1.0) as u64;
        let place = self.up_to.partition_point(|(_, total)| *total < rank);
        self.up_to.get(place).or(self.up_to.last()).map_or(0, |(value, _)| *value)
    }

    /// The share of values below `limit`.
    pub(super) fn below(&self, limit: u64) -> f64 {
        let place = self.up_to.partition_point(|(value, _)| *value < limit);
        let count = place.checked_sub(1).map_or(0, |last| self.up_to[last].1);
        count as f64 / self.total().max(1) as f64
    }

    /// Figures in a unit of which a value has `scale`.
    pub(super) fn quantiles(&self, scale: f64) -> Quantiles {
        let at = |share| self.quantile(share) as f64 * scale;
        Quantiles {
            mean: self.sum * scale / self.total().max(1) as f64,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            most: at(1.0),
        }
    }

    /// A hundred points, closer to each other towards the greatest values: tails are long.
    pub(super) fn curve(&self, scale: f64) -> Curve {
        let body = (0..90).map(|percent| f64::from(percent) / 100.0);
        let tail = (0..40).map(|step| 1.0 - 0.1 * 10_f64.powf(-f64::from(step) / 8.0));
        let mut curve = Curve::default();
        for share in body.chain(tail).chain([1.0]) {
            let value = self.quantile(share);
            if self.total() > 0 && curve.value.last() != Some(&(value as f64 * scale)) {
                curve.value.push(value as f64 * scale);
                curve.share.push(self.below(value + 1));
            }
        }
        curve
    }

    /// The part of the sum that the greatest values have: as many as are `share` of all, rounded up.
    pub(super) fn share_of_top(&self, share: f64) -> f64 {
        let mut left = (share * self.total() as f64).ceil() as u64;
        let mut sum = 0.0;
        for (place, (value, total)) in self.up_to.iter().enumerate().rev() {
            let before = place.checked_sub(1).map_or(0, |place| self.up_to[place].1);
            let taken = left.min(total - before);
            sum += *value as f64 * taken as f64;
            left -= taken;
        }
        sum / self.sum.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_values() {
        let distribution = Distribution::of((1..=100).rev().collect());
        let Quantiles { mean, p50, p90, p95, p99, most } = distribution.quantiles(2.0);
        assert_eq!((mean, p50, p90, p95, p99, most), (101.0, 100.0, 180.0, 190.0, 198.0, 200.0));
        assert_eq!((distribution.below(1), distribution.below(51)), (0.0, 0.5));
        // 100 of 5050, and 91 to 100.
        assert!((distribution.share_of_top(0.01) - 100.0 / 5_050.0).abs() < 1e-12);
        assert!((distribution.share_of_top(0.1) - 955.0 / 5_050.0).abs() < 1e-12);
        let curve = distribution.curve(1.0);
        assert_eq!((curve.value[0], curve.share[0]), (1.0, 0.01));
        assert_eq!((curve.value.last(), curve.share.last()), (Some(&100.0), Some(&1.0)));
        assert!(curve.share.is_sorted() && curve.value.is_sorted());
    }

    #[test]
    fn of_nothing_there_are_no_figures() {
        let nothing = Distribution::of(vec![]);
        assert_eq!(nothing.quantiles(1.0), Quantiles::default());
        assert_eq!(nothing.curve(1.0), Curve::default());
        assert_eq!((nothing.below(7), nothing.share_of_top(0.5)), (0.0, 0.0));
        let same = Distribution::of_counts([(0, 3), (4, 0)]);
        assert_eq!((same.quantiles(1.0).most, same.share_of_top(0.5)), (0.0, 0.0));
    }
}
