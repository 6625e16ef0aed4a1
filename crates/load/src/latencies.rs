//! Histograms of latencies, to three figures.

use hdrhistogram::Histogram;

/// The longest latency that is told apart, in nanoseconds.
const LONGEST: u64 = 100_000_000_000;

/// How often each latency was met. Three figures: an interval of a few percent is not one of the bins.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value.max(1));
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that a share of all do not exceed; `None` without values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share))
    }

    /// The largest.
    pub fn most(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Latencies) {
        // Bounds are those of all: nothing can be out of them.
        let _ = self.0.add(&other.0);
    }

    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        // Fails on bounds that make no sense only, which these do.
        Latencies(Histogram::new_with_bounds(1, LONGEST, 3).unwrap_or_else(|_| unbounded()))
    }
}

fn unbounded() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three figures are possible");
    histogram.auto(true);
    histogram
}
