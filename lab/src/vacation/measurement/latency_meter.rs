//! How long packets take from when they were due until a transmit queue has them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{Clock, ClockSource, Histogram, Time};
use rheostat_io::Sink;
use rheostat_packet::Mbuf;

/// The ends of all transmit queues.
#[derive(Clone)]
pub(super) struct LatencyMeter(Arc<LatencyLog>);

struct LatencyLog {
    clock: Clock,
    /// Nanoseconds: packets due from then on are measured, until the other.
    from: AtomicU64,
    until: AtomicU64,
    latencies: Mutex<VacationLatencies>,
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct VacationLatencies {
    pub(super) histogram: Histogram,
    pub(super) count: u64,
    pub(super) sum: u64,
}

struct QueueEnd(Arc<LatencyLog>);

impl LatencyMeter {
    /// Measures nothing until [`LatencyMeter::measure`].
    pub(super) fn new(clock: Clock) -> LatencyMeter {
        LatencyMeter(Arc::new(LatencyLog {
            clock,
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(0),
            latencies: Mutex::default(),
        }))
    }

    /// The end of one transmit queue.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        Box::new(QueueEnd(self.0.clone()))
    }

    /// Packets that are due within these times count.
    pub(super) fn measure(&self, from: Time, until: Time) {
        // Relaxed: set before the first of these packets is due.
        self.0.until.store(until.as_nanos(), Ordering::Relaxed);
        self.0.from.store(from.as_nanos(), Ordering::Relaxed);
    }

    /// What was measured so far.
    pub(super) fn latencies(&self) -> VacationLatencies {
        self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for QueueEnd {
    fn take(&mut self, packets: &[Mbuf]) {
        let now = self.0.clock.now();
        let (from, until) =
            (self.0.from.load(Ordering::Relaxed), self.0.until.load(Ordering::Relaxed));
        // Taken once per burst; lanes that share it have a core each at most, and two at most here.
        let mut latencies = self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            let due = packet.timestamp();
            if (from..until).contains(&due.as_nanos()) {
                let nanos = now.since(due).as_nanos() as u64;
                latencies.histogram.record(nanos);
                latencies.count += 1;
                latencies.sum += nanos;
            }
        }
    }
}
