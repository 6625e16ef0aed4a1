//! How sure a median is.

use crate::quantiles::Sorted;

/// A median, and between what its true value lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median of the values.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// So many values give an interval of 95 %; fewer give the range of all, which is less sure.
pub const LEAST: usize = 6;

impl Median {
    /// The median of independent values, of whatever distribution: each lies below the true median with a
    /// probability of one half, so their ranks are all there is to it (W. J. Conover, "Practical
    /// Nonparametric Statistics", on quantiles).
    ///
    /// # Panics
    /// When there are no values.
    pub fn of(values: Vec<f64>) -> Median {
        let sorted = Sorted::of(values);
        let (values, count) = (sorted.values(), sorted.values().len());
        let outside = ranks_outside(count);
        Median {
            value: sorted.median().expect("there are values"),
            low: values[outside],
            high: values[count - 1 - outside],
        }
    }
}

/// How many of the least values, and as many of the greatest, can be left out: the true median is below
/// the next one with a probability of at most 2.5 %.
fn ranks_outside(count: usize) -> usize {
    let mut left_out = 0;
    // That exactly so many values lie below the true median; and that at most so many do.
    let mut exactly = 0.5_f64.powi(count as i32);
    let mut at_most = exactly;
    while 2 * (left_out + 1) < count {
        exactly *= (count - left_out) as f64 / (left_out + 1) as f64;
        at_most += exactly;
        if at_most > 0.025 {
            break;
        }
        left_out += 1;
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // By tables of the binomial distribution with p = 1/2; of 6 values, all are needed.
        for (count, outside) in
            [(1, 0), (5, 0), (6, 0), (9, 1), (10, 1), (20, 5), (31, 9), (100, 39)]
        {
            assert_eq!(ranks_outside(count), outside, "of {count}");
        }
        assert!(ranks_outside(1_000) > 400);
    }

    #[test]
    fn the_interval_holds_the_true_median_as_often_as_it_says() {
        use rand::rngs::SmallRng;
        use rand::{Rng, SeedableRng};
        let mut random = SmallRng::seed_from_u64(5);
        // Skewed, with a median of 1/8.
        let draws = (0..2_000).map(|_| (0..31).map(|_| random.random::<f64>().powi(3)).collect());
        let right = draws.map(Median::of).filter(|m| m.low <= 0.125 && 0.125 <= m.high).count();
        assert!((1_900..1_960).contains(&right), "{right} of 2000");
    }

    #[test]
    fn the_middle_is_between_the_ends() {
        let median = Median::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!(median, Median { value: 2.5, low: 1.0, high: 10.0 });
    }
}
