//! A receive queue with a stopwatch: what a lane does between two looks at it is what a poll costs, less the making of
//! packets.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, Time};
use rheostat_io::{Device, LayeredDevice, QueuePair, Rest, RxLayer, RxQueue};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

/// Most times that are kept of one period.
const MOST: usize = 200_000;

/// What is measured of a lane's polls.
#[derive(Debug)]
pub(crate) struct CostMeter {
    /// Even while nothing is; counted up to start and to stop.
    period: AtomicU32,
    /// The period that the lane has seen.
    seen: AtomicU32,
    /// Packets that a poll finds at most, and what it has to find to be measured.
    burst: AtomicUsize,
    /// Nanoseconds of polls.
    times: Mutex<Vec<f64>>,
}

impl CostMeter {
    /// Whatever happens until [`CostMeter::stop`] is measured of polls that find `burst` packets.
    pub(crate) fn start(&self, burst: usize) {
        self.burst.store(burst, Ordering::Relaxed);
        self.turn();
    }

    /// The times of the polls since [`CostMeter::start`].
    pub(crate) fn stop(&self) -> Vec<f64> {
        self.turn();
        std::mem::take(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The times of polls that find `burst` packets, for so long.
    pub(crate) fn measure(&self, burst: usize, time: Duration) -> Vec<f64> {
        self.start(burst);
        thread::sleep(time);
        self.stop()
    }

    /// Waits until the lane has seen it.
    fn turn(&self) {
        let period = self.period.fetch_add(1, Ordering::Release) + 1;
        while self.seen.load(Ordering::Acquire) != period {
            thread::yield_now();
        }
    }
}

/// Measures the lanes of a device: wraps its receive queues, and returns a meter per lane. If they are `crossed`, the lanes poll
/// each other's queues, so that all packets have to change lanes.
pub(crate) fn metered(
    mut device: Box<dyn Device>,
    lanes: u16,
    clock: &Clock,
    crossed: bool,
) -> (LayeredDevice, Vec<Arc<CostMeter>>) {
    let meter = |_| CostMeter {
        period: AtomicU32::new(0),
        seen: AtomicU32::new(0),
        burst: AtomicUsize::new(BURST),
        times: Mutex::default(),
    };
    let meters: Vec<_> = (0..lanes).map(meter).map(Arc::new).collect();
    let mut pairs = device.queues();
    if crossed {
        pairs.reverse();
    }
    let wrap = |(pair, meter): (QueuePair, &Arc<CostMeter>)| {
        let rx = MeteredQueue {
            queue: pair.rx,
            meter: meter.clone(),
            clock: clock.clone(),
            period: 0,
            last: None,
            times: Vec::with_capacity(MOST),
            filled: Burst::new(),
            waiting: VecDeque::new(),
        };
        QueuePair { rx: Box::new(rx), tx: pair.tx }
    };
    let queues = pairs.into_iter().zip(&meters).map(wrap).collect();
    (LayeredDevice::new(device, queues), meters)
}

struct MeteredQueue {
    queue: Box<dyn RxQueue>,
    meter: Arc<CostMeter>,
    clock: Clock,
    period: u32,
    /// When the last packets were given, and how many.
    last: Option<(Cycles, usize)>,
    times: Vec<f64>,
    filled: Burst,
    /// Packets that a smaller burst had no room for.
    waiting: VecDeque<Mbuf>,
}

impl MeteredQueue {
    fn note(&mut self, now: Cycles) {
        let measuring = self.period % 2 == 1;
        if let Some((since, count)) = self.last
            && measuring
            && count == self.meter.burst.load(Ordering::Relaxed)
            && self.times.len() < MOST
        {
            self.times.push(self.clock.nanos_between(since, now) as f64);
        }
        let period = self.meter.period.load(Ordering::Acquire);
        if period != self.period {
            self.period = period;
            self.meter.times.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.times);
            self.last = None;
            self.meter.seen.store(period, Ordering::Release);
        }
    }
}

impl RxLayer for MeteredQueue {
    fn inner(&self) -> &dyn RxQueue {
        &*self.queue
    }

    fn inner_mut(&mut self) -> &mut dyn RxQueue {
        &mut *self.queue
    }

    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.note(self.clock.cycles());
        let most = match self.meter.burst.load(Ordering::Relaxed) {
            0 => BURST,
            most => most,
        };
        if self.waiting.is_empty() {
            self.queue.recv(&mut self.filled, pool, now);
            self.waiting.extend(self.filled.drain(..));
        }
        let before = burst.len();
        while burst.len() - before < most
            && !burst.is_full()
            && let Some(packet) = self.waiting.pop_front()
        {
            burst.push(packet);
        }
        let count = burst.len() - before;
        self.last = Some((self.clock.cycles(), count));
        count
    }

    fn backlog(&self) -> usize {
        self.waiting.len() + self.queue.backlog()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        if self.waiting.is_empty() { self.queue.rest(pool, now) } else { Rest::Awake }
    }
}
