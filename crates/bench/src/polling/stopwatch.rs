//! How late packets leave.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use rheostat_base::{Clock, ClockSource, Time};
use rheostat_io::Sink;
use rheostat_packet::Mbuf;

/// Longer delays count as this: ten seconds.
const LONGEST: u64 = 10_000_000_000;

/// Measures from the moment a packet is due, whoever is ready for it, to the moment it leaves. Looks at nothing else, so
/// that it costs lanes little.
#[derive(Clone)]
pub(super) struct Stopwatch(Arc<Watched>);

struct Watched {
    clock: Clock,
    /// Nanoseconds: packets due from then on are measured, until the other.
    from: AtomicU64,
    until: AtomicU64,
    /// By queue.
    latencies: Mutex<Vec<Arc<Mutex<Histogram<u64>>>>>,
}

struct End {
    watched: Arc<Watched>,
    latencies: Arc<Mutex<Histogram<u64>>>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("bounds in order")
}

impl Stopwatch {
    /// Measures nothing until [`Stopwatch::measure`].
    pub(super) fn new(clock: Clock) -> Stopwatch {
        let (from, until) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Stopwatch(Arc::new(Watched { clock, from, until, latencies: Mutex::default() }))
    }

    /// The end of one transmit queue.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        let latencies = Arc::new(Mutex::new(histogram()));
        self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latencies.clone());
        Box::new(End { watched: self.0.clone(), latencies })
    }

    /// Packets that are due within these times count.
    pub(super) fn measure(&self, from: Time, until: Time) {
        // Relaxed: a burst that still sees the old bounds leaves a few packets out.
        self.0.until.store(until.as_nanos(), Ordering::Relaxed);
        self.0.from.store(from.as_nanos(), Ordering::Relaxed);
    }

    /// The latencies, in microseconds, within which these shares of the packets left; none where no packet left.
    pub(super) fn latency_us<const N: usize>(&self, shares: [f64; N]) -> Option<[f64; N]> {
        let queues = self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = histogram();
        for queue in queues.iter() {
            let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(&*queue).expect("histograms of one shape");
        }
        let of = |share| all.value_at_quantile(share) as f64 / 1e3;
        (!all.is_empty()).then(|| shares.map(of))
    }
}

impl Sink for End {
    fn take(&mut self, packets: &[Mbuf]) {
        let watched = &*self.watched;
        let now = watched.clock.now();
        let span = watched.from.load(Ordering::Relaxed)..watched.until.load(Ordering::Relaxed);
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            let due = packet.timestamp();
            if span.contains(&due.as_nanos()) {
                latencies.saturating_record(now.since(due).as_nanos() as u64);
            }
        }
    }
}
