//! Histograms by the bounds that Prometheus is given.

/// The largest times of buckets, in nanoseconds: 1, 2 and 5 of each power of ten from a microsecond to a second.
const BOUNDS: [u64; 19] = {
    let mut bounds = [0; 19];
    let (mut at, mut power) = (0, 1_000);
    while at < bounds.len() {
        bounds[at] = power * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            power *= 10;
        }
        at += 1;
    }
    bounds
};

/// The largest sizes of buckets, in packets: powers of two.
const SIZES: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Figures by bounds, times in seconds, each bucket without those of the buckets before; the last has no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Buckets {
    /// The sum of all figures, each as the end of its bin.
    pub(super) sum: f64,
    pub(super) count: u64,
    pub(super) buckets: Vec<(f64, u64)>,
}

impl Buckets {
    /// Of bins: the largest time of each in nanoseconds, and how many it has.
    pub(super) fn of(bins: impl Iterator<Item = (u64, u64)>) -> Buckets {
        Buckets::by(&BOUNDS, 1e9, bins)
    }

    /// Of bins: the largest size of each in packets, and how many it has.
    pub(super) fn of_sizes(bins: impl Iterator<Item = (u64, u64)>) -> Buckets {
        Buckets::by(&SIZES, 1.0, bins)
    }

    /// By these bounds, in units of which `scale` make one of the metric.
    fn by(bounds: &[u64], scale: f64, bins: impl Iterator<Item = (u64, u64)>) -> Buckets {
        let ends = bounds.iter().map(|bound| *bound as f64 / scale).chain([f64::INFINITY]);
        let mut buckets: Vec<_> = ends.map(|bound| (bound, 0)).collect();
        let (mut sum, mut count) = (0.0, 0);
        for (figure, times) in bins {
            buckets[bounds.partition_point(|bound| *bound < figure)].1 += times;
            sum += figure as f64 * times as f64 / scale;
            count += times;
        }
        Buckets { sum, count, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_one_two_and_five_of_each_power_of_ten() {
        assert_eq!(BOUNDS[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(BOUNDS[18], 1_000_000_000);
    }

    #[test]
    fn a_burst_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let sizes = Buckets::of_sizes([(1, 5), (3, 2), (32, 1), (9_000, 1)].into_iter());
        assert_eq!((sizes.count, sizes.buckets[0], sizes.buckets[2]), (9, (1.0, 5), (4.0, 2)));
        assert_eq!((sizes.buckets[5], sizes.buckets[10].1), ((32.0, 1), 1));
        assert!((sizes.sum - 9_043.0).abs() < 1e-9, "{}", sizes.sum);
    }

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let times = Buckets::of([(1_000, 3), (1_001, 2), (7_000_000_000, 1)].into_iter());
        assert_eq!(times.count, 6);
        assert!((times.sum - 7.000_005_002).abs() < 1e-9, "{}", times.sum);
        assert_eq!((times.buckets[0].1, times.buckets[1].1, times.buckets[19].1), (3, 2, 1));
    }
}
