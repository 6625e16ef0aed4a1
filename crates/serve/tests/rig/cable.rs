//! A device whose other end is in the test.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rheostat_base::{DeviceId, Time};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair, RxQueue, TxQueue};
use rheostat_packet::{Burst, PoolCache};
use rheostat_steer::IndirectionTable;

type Frames = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// The test's end.
pub(crate) struct Ends {
    /// Frames that wait in each receive queue.
    pub(crate) arriving: Vec<Frames>,
    /// What was sent by any transmit queue.
    pub(crate) sent: Frames,
}

/// The lanes' end.
pub(crate) struct Cable {
    queues: Vec<QueuePair>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    arrived: AtomicU64,
    arrived_bytes: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Cable {
    pub(crate) fn new(lanes: usize) -> (Cable, Ends) {
        let arriving: Vec<Frames> = (0..lanes).map(|_| Frames::default()).collect();
        let (sent, counts) = (Frames::default(), Arc::<Counts>::default());
        let queues = arriving.iter().map(|frames| QueuePair {
            rx: Box::new(Receiver { frames: frames.clone(), counts: counts.clone() }),
            tx: Box::new(Transmitter { frames: sent.clone(), counts: counts.clone() }),
        });
        (Cable { queues: queues.collect(), counts }, Ends { arriving, sent })
    }
}

impl Device for Cable {
    fn name(&self) -> &str {
        "cable"
    }

    fn id(&self) -> DeviceId {
        DeviceId(0)
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        None
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.counts.clone()
    }
}

impl DeviceMonitor for Counts {
    fn counters(&self) -> DeviceCounters {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DeviceCounters {
            arrived: get(&self.arrived),
            arrived_bytes: get(&self.arrived_bytes),
            sent: get(&self.sent),
            sent_bytes: get(&self.sent_bytes),
            ..DeviceCounters::default()
        }
    }

    fn is_exhausted(&self) -> bool {
        true
    }

    fn stop(&self) {}

    fn progress(&self) -> Option<f64> {
        None
    }
}

struct Receiver {
    frames: Frames,
    counts: Arc<Counts>,
}

impl RxQueue for Receiver {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let mut frames = self.frames.lock().expect("no panic");
        let mut received = 0;
        while !burst.is_full()
            && let Some(frame) = frames.pop_front()
        {
            let mut packet = pool.alloc_from(&frame).expect("the pool is large enough");
            packet.set_timestamp(now);
            packet.set_device(DeviceId(0));
            self.counts.arrived.fetch_add(1, Ordering::Relaxed);
            self.counts.arrived_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
            burst.push(packet);
            received += 1;
        }
        received
    }

    fn backlog(&self) -> usize {
        self.frames.lock().expect("no panic").len()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Transmitter {
    frames: Frames,
    counts: Arc<Counts>,
}

impl TxQueue for Transmitter {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        for packet in burst.drain(..) {
            self.counts.sent.fetch_add(1, Ordering::Relaxed);
            self.counts.sent_bytes.fetch_add(packet.len() as u64, Ordering::Relaxed);
            self.frames.lock().expect("no panic").push_back(packet.to_vec());
            pool.free(packet);
        }
        count
    }
}
