//! How late packets leave.

use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{Clock, ClockSource};
use rheostat_io::Sink;
use rheostat_packet::Mbuf;

use hdrhistogram::Histogram;

/// Longer delays count as this: ten seconds.
const LONGEST: u64 = 10_000_000_000;

/// Measures from the moment a packet is due, whether or not a lane is ready for it, to the moment it leaves. It does nothing
/// else, so that it costs lanes little.
#[derive(Clone)]
pub(super) struct Stopwatch {
    clock: Clock,
    /// By queue.
    latencies: Arc<Mutex<Vec<Arc<Mutex<StopwatchLatencies>>>>>,
}

/// Latencies of packets, in nanoseconds.
pub(super) type StopwatchLatencies = Histogram<u64>;

struct StopwatchEnd {
    clock: Clock,
    latencies: Arc<Mutex<StopwatchLatencies>>,
}

/// Room for all latencies up to ten seconds, to a hundredth.
pub(super) fn latencies() -> StopwatchLatencies {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("bounds in order")
}

impl Stopwatch {
    pub(super) fn new(clock: Clock) -> Stopwatch {
        Stopwatch { clock, latencies: Arc::default() }
    }

    /// The end of one transmit queue.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        let latencies = Arc::new(Mutex::new(latencies()));
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latencies.clone());
        Box::new(StopwatchEnd { clock: self.clock.clone(), latencies })
    }

    /// The latencies of packets that left since this was last asked.
    pub(super) fn take(&self) -> StopwatchLatencies {
        let mut all = latencies();
        for queue in self.latencies.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Made before: the lane waits for no more than an exchange.
            let mut taken = latencies();
            std::mem::swap(&mut *queue.lock().unwrap_or_else(PoisonError::into_inner), &mut taken);
            all.add(&taken).expect("histograms of one shape");
        }
        all
    }
}

impl Sink for StopwatchEnd {
    fn take(&mut self, packets: &[Mbuf]) {
        let now = self.clock.now();
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            latencies.saturating_record(now.since(packet.timestamp()).as_nanos() as u64);
        }
    }
}
