//! What requests took.

use super::requests::SimRequest;
use hdrhistogram::Histogram;

/// Latencies in nanoseconds, by class.
#[derive(Clone, Debug)]
pub(super) struct SimLatencies {
    pub(super) short: Histogram<u32>,
    pub(super) long: Histogram<u32>,
}

/// The longest latency that is told from longer ones: a minute.
const LONGEST: u64 = 60_000_000_000;

impl SimLatencies {
    pub(super) fn new() -> SimLatencies {
        let bounds = || Histogram::new_with_bounds(1, LONGEST, 3);
        match (bounds(), bounds()) {
            (Ok(short), Ok(long)) => SimLatencies { short, long },
            (Err(error), _) | (_, Err(error)) => panic!("bounds are constant and valid: {error}"),
        }
    }

    pub(super) fn add(&mut self, other: &SimLatencies) {
        // Bounds are the same.
        let _ = self.short.add(&other.short);
        let _ = self.long.add(&other.long);
    }

    pub(super) fn len(&self) -> u64 {
        self.short.len() + self.long.len()
    }

    /// Both classes.
    pub(super) fn all(&self) -> Histogram<u32> {
        let mut all = self.short.clone();
        let _ = all.add(&self.long);
        all
    }
}

/// A quantile in microseconds: the middle of its bin.
pub(super) fn quantile_us(of: &Histogram<u32>, share: f64) -> f64 {
    of.median_equivalent(of.value_at_quantile(share)) as f64 / 1e3
}

/// Counts replies that leave.
#[derive(Debug)]
pub(super) struct SchedMeter {
    pub(super) latencies: SimLatencies,
    pub(super) completed: u64,
    /// Picoseconds in the service, and of these in the application.
    pub(super) sojourn: f64,
    pub(super) service: f64,
    /// Replies that waited for an earlier one of their connection.
    pub(super) waited_for_order: u64,
    /// When the last one left.
    pub(super) last: u64,
}

impl SchedMeter {
    pub(super) fn new() -> SchedMeter {
        SchedMeter {
            latencies: SimLatencies::new(),
            completed: 0,
            sojourn: 0.0,
            service: 0.0,
            waited_for_order: 0,
            last: 0,
        }
    }

    /// A reply leaves at `time`.
    pub(super) fn record(&mut self, request: &SimRequest, time: u64) {
        self.completed += 1;
        self.last = self.last.max(time);
        let latency = time - request.arrived;
        self.sojourn += latency as f64;
        self.service += request.service as f64;
        let class =
            if request.is_long { &mut self.latencies.long } else { &mut self.latencies.short };
        class.saturating_record(latency / 1_000);
    }

    /// Starts anew.
    pub(super) fn clear(&mut self) {
        self.latencies.short.reset();
        self.latencies.long.reset();
        (self.completed, self.sojourn, self.service, self.waited_for_order) = (0, 0.0, 0.0, 0);
    }
}
