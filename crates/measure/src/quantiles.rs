//! Medians and other quantiles of measured values.

/// Values in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// These values. Takes `n log n` steps.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Sorted {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Sorted(values)
    }

    /// The value in the middle; of an even number of values the mean of the two. `None` without values.
    pub fn median(&self) -> Option<f64> {
        let upper = self.0.get(self.0.len() / 2)?;
        Some((self.0[(self.0.len() - 1) / 2] + upper) / 2.0)
    }

    /// The least value that a `share` of all do not exceed. `None` without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.0.get(rank(self.0.len(), share)).copied()
    }

    /// The least and the greatest value. `None` without values.
    pub fn range(&self) -> Option<[f64; 2]> {
        Some([*self.0.first()?, *self.0.last()?])
    }

    /// The values.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

/// The median, as [`Sorted::median`]; 0 without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Sorted::of(values).median().unwrap_or(0.0)
}

/// The place, among `count` values in ascending order, of the least one that a `share` of all do not exceed.
pub fn rank(count: usize, share: f64) -> usize {
    ((share * count as f64).ceil() as usize).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([10.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median([7.0]), 7.0);
        assert_eq!((median([]), Sorted::of([]).median()), (0.0, None));
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let sorted = Sorted::of((1..=100).rev().map(f64::from));
        let of = |share| sorted.quantile(share).unwrap();
        assert_eq!(
            (of(0.0), of(0.5), of(0.99), of(0.991), of(1.0)),
            (1.0, 50.0, 99.0, 100.0, 100.0)
        );
        assert_eq!(sorted.range(), Some([1.0, 100.0]));
        assert_eq!((Sorted::of([]).quantile(0.5), Sorted::of([]).range()), (None, None));
    }
}
