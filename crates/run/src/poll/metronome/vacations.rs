//! The vacations that a lane has measured lately.

use std::time::Duration;

/// Bins per doubling: which vacations there are is known within 9 %, their means exactly.
const PER_DOUBLING: f64 = 8.0;
/// The first bin ends here, in nanoseconds.
const FIRST: f64 = 256.0;
/// Up to 256 ns · 2^20, a quarter of a second; what is longer counts as that.
const BINS: usize = 20 * PER_DOUBLING as usize;
const LONGEST: f64 = FIRST * (1 << 20) as f64;

/// A histogram of vacations that forgets: each [`VacationHistogram::forget`] halves what was counted.
///
/// Bounds: recording costs a logarithm; a question goes through 160 bins. 1,280 bytes.
#[derive(Clone, Debug)]
pub struct VacationHistogram {
    bins: Box<[Bin; BINS]>,
}

/// Vacations of about one length. The middle of the bin would do for none of them where all are equally long: a promise
/// about the 99th percentile was missed by up to half a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    count: f32,
    /// Seconds.
    sum: f32,
}

impl Default for VacationHistogram {
    fn default() -> VacationHistogram {
        VacationHistogram { bins: Box::new([Bin::default(); BINS]) }
    }
}

impl VacationHistogram {
    /// Counts a vacation.
    pub fn record(&mut self, vacation: Duration) {
        let nanos = (vacation.as_nanos() as f64).min(LONGEST);
        let doublings = (nanos / FIRST).max(1.0).log2();
        let bin = &mut self.bins[((doublings * PER_DOUBLING) as usize).min(BINS - 1)];
        bin.count += 1.0;
        bin.sum += 1e-9 * nanos as f32;
    }

    /// Halves the weight of everything counted so far.
    pub fn forget(&mut self) {
        for bin in self.bins.iter_mut() {
            *bin = Bin { count: bin.count / 2.0, sum: bin.sum / 2.0 };
        }
    }

    /// E\[V\] in seconds, with no vacation taken for longer than `most` seconds; zero without vacations.
    pub fn mean(&self, most: f64) -> f64 {
        let (count, sum) = self.counted().fold((0.0, 0.0), |(counts, sum), (length, count)| {
            (counts + count, sum + count * length.min(most))
        });
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// E\[V²\]/(2E\[V\]) in seconds: the mean time that is left of a vacation.
    pub fn mean_residual(&self) -> f64 {
        let moments = self.counted().fold((0.0, 0.0), |(first, second), (length, count)| {
            (first + count * length, second + count * length * length)
        });
        if moments.0 > 0.0 { moments.1 / (2.0 * moments.0) } else { 0.0 }
    }

    /// The probability that more than `x` seconds of a vacation are left, had all of them been `scale` times as long:
    /// Σ(scale·v − x)⁺ / Σ(scale·v).
    pub fn residual_survival(&self, x: f64, scale: f64) -> f64 {
        let (late, all) = self.counted().fold((0.0, 0.0), |(late, all), (length, count)| {
            let length = scale * length;
            (late + count * (length - x).max(0.0), all + count * length)
        });
        if all > 0.0 { late / all } else { 0.0 }
    }

    /// The mean of each bin in seconds, and its count.
    fn counted(&self) -> impl Iterator<Item = (f64, f64)> {
        let bins = self.bins.iter().filter(|bin| bin.count > 0.0);
        bins.map(|bin| (f64::from(bin.sum / bin.count), f64::from(bin.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn of(vacations: &[u64]) -> VacationHistogram {
        let mut histogram = VacationHistogram::default();
        vacations.iter().for_each(|us| histogram.record(US(*us)));
        histogram
    }

    #[test]
    fn moments_are_right() {
        let histogram = of(&[10, 30, 50, 110]);
        let within =
            |found: f64, us: f64| assert!((1e6 * found / us - 1.0).abs() < 1e-5, "{found}");
        within(histogram.mean(1.0), 50.0);
        within(histogram.mean(50e-6), 35.0);
        within(histogram.mean_residual(), (100.0 + 900.0 + 2_500.0 + 12_100.0) / 400.0);
        // 60 + 0 of 200.
        assert!((histogram.residual_survival(50e-6, 1.0) - 0.3).abs() < 1e-5);
        assert!((histogram.residual_survival(100e-6, 2.0) - 0.3).abs() < 1e-5);
    }

    #[test]
    fn it_forgets_and_has_no_0_by_0() {
        let mut histogram = VacationHistogram::default();
        assert_eq!((histogram.mean(1.0), histogram.mean_residual()), (0.0, 0.0));
        assert_eq!(histogram.residual_survival(1e-6, 1.0), 0.0);
        (0..64).for_each(|_| histogram.record(US(1_000)));
        (0..20).for_each(|_| histogram.forget());
        assert!((histogram.mean(1.0) - 1e-3).abs() < 1e-8, "older, and as long as they were");
        (0..64).for_each(|_| histogram.record(US(10)));
        assert!(histogram.mean(1.0) < 11e-6, "{}", histogram.mean(1.0));
    }

    #[test]
    fn what_is_out_of_range_counts_in_the_last_bin_at_that_end() {
        let mut histogram = VacationHistogram::default();
        histogram.record(Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!((histogram.bins[0].count, histogram.bins[BINS - 1].count), (1.0, 1.0));
        assert!((histogram.mean(1.0) - 0.134).abs() < 0.001, "{}", histogram.mean(1.0));
    }
}
