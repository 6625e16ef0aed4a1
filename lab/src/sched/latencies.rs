//! Latencies of a scheduler at a load.
//!
//! A percentile is the median over windows of each window's: a machine that pauses for a millisecond spoils the window in which it
//! does, and not the figure.

use rheostat_measure::confidence::Median;
use rheostat_measure::quantiles::{Sorted, rank};

use super::measurement::OpenRun;
use super::rig::RigSample;
use crate::delays::delays;
use hdrhistogram::Histogram;

/// A window's percentile is stated with so many requests beyond it.
const BEYOND: f64 = 10.0;

/// The percentiles of windows, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct SchedLatencies {
    p50: Vec<f64>,
    p99: Vec<f64>,
    p999: Vec<f64>,
    /// Of all windows together: one alone has too few requests.
    all: Option<Histogram<u64>>,
    p999_short: Vec<f64>,
    p999_long: Vec<f64>,
    /// What the application took, in nanoseconds.
    took: f64,
    count: u64,
}

impl SchedLatencies {
    /// Adds the windows of a run.
    pub(super) fn add(&mut self, run: &OpenRun) {
        run.windows.iter().for_each(|window| self.add_window(window));
    }

    fn add_window(&mut self, samples: &[RigSample]) {
        let of = |class: fn(&RigSample) -> bool| {
            let mut times: Vec<u32> =
                samples.iter().filter(|sample| class(sample)).map(|s| s.latency).collect();
            times.sort_unstable();
            times
        };
        let all = of(|_| true);
        self.p50.extend(quantile_us(&all, 0.5));
        self.p99.extend(quantile_us(&all, 0.99));
        self.p999.extend(quantile_us(&all, 0.999));
        self.p999_short.extend(quantile_us(&of(|sample| sample.class() == 0), 0.999));
        self.p999_long.extend(quantile_us(&of(|sample| sample.class() > 0), 0.999));
        let together = self.all.get_or_insert_with(delays);
        all.iter().for_each(|latency| together.saturating_record((*latency).into()));
        self.took += samples.iter().map(|sample| f64::from(sample.took())).sum::<f64>();
        self.count += samples.len() as u64;
    }

    /// Requests.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The median.
    pub(super) fn p50_us(&self) -> Option<f64> {
        median(&self.p50)
    }

    /// The 99th percentile.
    pub(super) fn p99_us(&self) -> Option<f64> {
        median(&self.p99)
    }

    /// The 99.9th percentile.
    pub(super) fn p999_us(&self) -> Option<f64> {
        median(&self.p999)
    }

    /// The 99.99th percentile, of all windows together.
    pub(super) fn p9999_us(&self) -> Option<f64> {
        let all = self.all.as_ref()?;
        let is_known = has_enough(all.len(), 0.9999);
        is_known.then(|| all.value_at_quantile(0.9999) as f64 / 1e3)
    }

    /// p99.9 of short and of long requests.
    pub(super) fn p999_of_classes_us(&self) -> [Option<f64>; 2] {
        [median(&self.p999_short), median(&self.p999_long)]
    }

    /// What the application took, on average.
    pub(super) fn took_ns(&self) -> f64 {
        self.took / self.count.max(1) as f64
    }

    /// The interval of 95 % of p99.9, in microseconds; of fewer than six windows, their range.
    pub(super) fn p999_range_us(&self) -> Option<[f64; 2]> {
        if self.p999.len() < 2 {
            return None;
        }
        let Median { low, high, .. } = Median::of(self.p999.clone());
        Some([low, high])
    }

    /// Half of that interval as a share of p99.9.
    pub(super) fn ci95(&self) -> Option<f64> {
        let ([low, high], value) = (self.p999_range_us()?, self.p999_us()?);
        (value > 0.0).then(|| (high - low) / 2.0 / value)
    }
}

fn has_enough(count: u64, share: f64) -> bool {
    (1.0 - share) * count as f64 >= BEYOND - 1e-6
}

/// A quantile of ascending nanoseconds.
fn quantile_us(times: &[u32], share: f64) -> Option<f64> {
    if !has_enough(times.len() as u64, share) {
        return None;
    }
    times.get(rank(times.len(), share)).map(|nanos| f64::from(*nanos) / 1e3)
}

fn median(values: &[f64]) -> Option<f64> {
    Sorted::of(values.iter().copied()).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_medians_of_the_windows() {
        let mut latencies = SchedLatencies::default();
        let window = |add: u64, class: u8| -> Vec<RigSample> {
            (1..=10_000).map(|latency| RigSample::new(7, 7 + latency + add, class, 40)).collect()
        };
        for (add, class) in [(0, 0), (1_000, 0), (5_000_000, 1)] {
            latencies.add_window(&window(add, class));
        }
        assert_eq!((latencies.count(), latencies.took_ns()), (30_000, 40.0));
        assert_eq!(latencies.p50_us(), Some(6.0));
        assert_eq!(latencies.p99_us(), Some(10.9));
        assert_eq!(latencies.p999_us(), Some(10.99));
        assert_eq!(latencies.p999_of_classes_us(), [Some(10.49), Some(5_009.99)]);
        // Three beyond it.
        assert_eq!(latencies.p9999_us(), None);
        assert_eq!(latencies.p999_range_us(), Some([9.99, 5_009.99]));
        let half = (5_009.99 - 9.99) / 2.0 / 10.99;
        assert!(latencies.ci95().is_some_and(|share| (share - half).abs() < 1e-6));
    }

    #[test]
    fn a_percentile_with_too_few_requests_beyond_it_is_not_stated() {
        let times: Vec<u32> = (1..=9_999).collect();
        assert_eq!(quantile_us(&times, 0.999), None);
        assert_eq!(quantile_us(&times, 0.99), Some(9.9));
        assert_eq!(SchedLatencies::default().ci95(), None);
    }
}
