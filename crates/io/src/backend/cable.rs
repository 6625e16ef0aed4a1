//! A cable between two runs of one process: what the one sends, the other receives. For tests and examples, which need no privileges
//! then.
//!
//! Frames are copied, since each run has buffers of its own. What a queue sends, one queue of the other end receives, in order. A
//! frame for which the other end has no room, or that is sent while that end is not open, is refused.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Burst, PoolCache};
use rheostat_steer::IndirectionTable;

use crate::device::{Device, DeviceCounters, DeviceMonitor, QueuePair, RxQueue, TxQueue};

/// Queues of an end at most.
const QUEUES: usize = 64;
/// Frames that wait in a queue at most.
const CAPACITY: usize = 4_096;

/// An end of a cable, before it is a device.
#[derive(Debug)]
pub struct CableEnd {
    inbound: Arc<Direction>,
    outbound: Arc<Direction>,
}

/// Two ends of a cable.
pub fn cable() -> [CableEnd; 2] {
    let (there, back) = (Arc::<Direction>::default(), Arc::<Direction>::default());
    let first = CableEnd { inbound: back.clone(), outbound: there.clone() };
    [first, CableEnd { inbound: there, outbound: back }]
}

/// Frames of one direction.
#[derive(Debug)]
struct Direction {
    /// Queues of the receiver; none while it is not open.
    open: AtomicUsize,
    queues: Vec<Mutex<VecDeque<Vec<u8>>>>,
}

impl Default for Direction {
    fn default() -> Direction {
        let queues = (0..QUEUES).map(|_| Mutex::default()).collect();
        Direction { open: AtomicUsize::new(0), queues }
    }
}

impl Direction {
    /// The frames that wait in a queue. A panic leaves them whole.
    fn queue(&self, number: usize) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.queues[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CableEnd {
    /// The device of a run with so many lanes, 64 at most.
    pub fn open(self, name: &str, lanes: u16) -> CableDevice {
        let lanes = usize::from(lanes).clamp(1, QUEUES);
        let monitor = Arc::new(Monitor {
            inbound: self.inbound.clone(),
            is_stopped: AtomicBool::new(false),
            arrived: Traffic::default(),
            sent: Traffic::default(),
        });
        let pair = |number| QueuePair {
            rx: Box::new(Receiver { number, monitor: monitor.clone() }),
            tx: Box::new(Sender {
                number,
                outbound: self.outbound.clone(),
                monitor: monitor.clone(),
            }),
        };
        let queues = (0..lanes).map(pair).collect();
        self.inbound.open.store(lanes, Ordering::Release);
        CableDevice { name: name.to_owned(), queues, monitor }
    }
}

/// An end of a cable as a device.
pub struct CableDevice {
    name: String,
    queues: Vec<QueuePair>,
    monitor: Arc<Monitor>,
}

impl Device for CableDevice {
    fn name(&self) -> &str {
        &self.name
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
        self.monitor.clone()
    }
}

/// Frames and their bytes.
#[derive(Debug, Default)]
struct Traffic {
    frames: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    fn count(&self, bytes: usize) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Monitor {
    inbound: Arc<Direction>,
    is_stopped: AtomicBool,
    arrived: Traffic,
    sent: Traffic,
}

impl DeviceMonitor for Monitor {
    fn counters(&self) -> DeviceCounters {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DeviceCounters {
            arrived: get(&self.arrived.frames),
            arrived_bytes: get(&self.arrived.bytes),
            sent: get(&self.sent.frames),
            sent_bytes: get(&self.sent.bytes),
            ..DeviceCounters::default()
        }
    }

    /// Frames of a stopped end are received by nobody, and have not arrived.
    fn is_exhausted(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn stop(&self) {
        self.inbound.open.store(0, Ordering::Release);
        self.is_stopped.store(true, Ordering::Release);
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

struct Receiver {
    number: usize,
    monitor: Arc<Monitor>,
}

impl RxQueue for Receiver {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if self.monitor.is_stopped.load(Ordering::Relaxed) {
            return 0;
        }
        let mut frames = self.monitor.inbound.queue(self.number);
        let mut received = 0;
        while !burst.is_full()
            && let Some(frame) = frames.front()
            // Without a buffer it waits.
            && let Ok(mut packet) = pool.alloc_from(frame)
        {
            packet.set_timestamp(now);
            packet.set_device(DeviceId(0));
            self.monitor.arrived.count(frame.len());
            frames.pop_front();
            burst.push(packet);
            received += 1;
        }
        received
    }

    fn backlog(&self) -> usize {
        match self.monitor.is_stopped.load(Ordering::Relaxed) {
            true => 0,
            false => self.monitor.inbound.queue(self.number).len(),
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Sender {
    number: usize,
    outbound: Arc<Direction>,
    monitor: Arc<Monitor>,
}

impl TxQueue for Sender {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let open = self.outbound.open.load(Ordering::Acquire);
        if open == 0 {
            return 0;
        }
        let mut frames = self.outbound.queue(self.number % open);
        let count = burst.len().min(CAPACITY.saturating_sub(frames.len()));
        for packet in burst.drain(..count) {
            self.monitor.sent.count(packet.len());
            frames.push_back(packet.to_vec());
            pool.free(packet);
        }
        count
    }
}

impl std::fmt::Debug for CableDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CableDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rheostat_packet::{Mempool, MempoolConfig};

    use super::*;

    #[test]
    fn frames_come_out_at_the_other_end_in_order_and_none_before_it_is_open() {
        let [near, far] = cable();
        let pool =
            Mempool::new(&MempoolConfig { buffers: 8_192, ..MempoolConfig::default() }).unwrap();
        let (mut cache, mut burst) = (PoolCache::new(pool), Burst::default());
        let mut near = near.open("near", 1);
        let mut sender = near.queues().remove(0).tx;
        let mut send = |burst: &mut Burst, cache: &mut PoolCache, first: u8, count: u8| {
            (first..first + count)
                .for_each(|byte| burst.push(cache.alloc_from(&[byte; 60]).unwrap()));
            sender.send(burst, cache, Time::ZERO)
        };
        assert_eq!(send(&mut burst, &mut cache, 0, 2), 0, "nobody is there");
        burst.drain(..).for_each(|packet| cache.free(packet));
        let mut far = far.open("far", 2);
        let mut receivers = far.queues();
        assert_eq!(send(&mut burst, &mut cache, 1, 3), 3);
        let received = receivers[0].rx.recv(&mut burst, &mut cache, Time::ZERO);
        let first: Vec<_> =
            burst.drain(..).map(|packet| (packet.to_vec()[0], cache.free(packet))).collect();
        assert_eq!((received, first), (3, vec![(1, ()), (2, ()), (3, ())]));
        assert_eq!(receivers[1].rx.recv(&mut burst, &mut cache, Time::ZERO), 0);
        assert_eq!(near.monitor().counters().sent, 3);
        assert_eq!(far.monitor().counters().arrived_bytes, 180);
        let mut sent = 0;
        for _ in 0..CAPACITY {
            sent += send(&mut burst, &mut cache, 9, 1);
            burst.drain(..).for_each(|packet| cache.free(packet));
        }
        assert_eq!(sent, CAPACITY);
        assert_eq!(send(&mut burst, &mut cache, 9, 1), 0, "it is full");
        burst.drain(..).for_each(|packet| cache.free(packet));
        far.monitor().stop();
        assert!(far.monitor().is_exhausted() && receivers[0].rx.backlog() == 0);
    }
}
