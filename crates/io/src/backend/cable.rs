//! A cable between two runs of one process: what the one sends, the other receives. For tests and examples, which need no privileges
//! then.
//!
//! Frames are copied, since each run has buffers of its own. What a queue sends, one queue of the other end receives, in order. A
//! frame for which the other end has no room, or that is sent while that end is not open, is refused. An end may also stay in the
//! hands of a program, which writes and reads its frames.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Burst, PoolCache};

use crate::device::{Device, DeviceCounters, DeviceMonitor, QueuePair, RxQueue, TxQueue};
use crate::lock::lock;

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
        lock(&self.queues[number])
    }

    /// Where frames go that this queue of the other end sends; nowhere while the receiver is not open.
    fn queue_behind(&self, sender: usize) -> Option<MutexGuard<'_, VecDeque<Vec<u8>>>> {
        // Acquire: the stores of `open` in `CableEnd`, `HeldEnd` and `Monitor` are releases.
        let open = self.open.load(Ordering::Acquire);
        (open > 0).then(|| self.queue(sender % open))
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

    /// Leaves the end in the hands of the caller. What any queue of the other end sends comes into one queue.
    pub fn hold(self) -> HeldEnd {
        self.inbound.open.store(1, Ordering::Release);
        HeldEnd { end: self }
    }
}

/// An end of a cable in a program's hands. At most 4,096 frames wait in each direction of a queue.
#[derive(Debug)]
pub struct HeldEnd {
    end: CableEnd,
}

impl HeldEnd {
    /// Sends a frame to a queue of the other end, by its number modulo how many there are.
    ///
    /// # Errors
    /// The frame, when the other end is not open or has no room for it.
    pub fn send(&self, queue: usize, frame: Vec<u8>) -> Result<(), Vec<u8>> {
        match self.end.outbound.queue_behind(queue) {
            Some(mut frames) if frames.len() < CAPACITY => {
                frames.push_back(frame);
                Ok(())
            }
            _ => Err(frame),
        }
    }

    /// What has come, in the order in which it was sent.
    pub fn receive(&self) -> Vec<Vec<u8>> {
        self.end.inbound.queue(0).drain(..).collect()
    }
}

/// Nobody receives any more: what is sent is refused.
impl Drop for HeldEnd {
    fn drop(&mut self) {
        self.end.inbound.open.store(0, Ordering::Release);
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
}

struct Sender {
    number: usize,
    outbound: Arc<Direction>,
    monitor: Arc<Monitor>,
}

impl TxQueue for Sender {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let Some(mut frames) = self.outbound.queue_behind(self.number) else { return 0 };
        let count = burst.len().min(CAPACITY.saturating_sub(frames.len()));
        for packet in burst.drain(..count) {
            self.monitor.sent.count(packet.len());
            frames.push_back(packet.to_vec());
            pool.free(packet);
        }
        count
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

    #[test]
    fn a_held_end_sends_to_the_queue_it_names_and_receives_from_all() {
        let [near, far] = cable();
        let pool =
            Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
        let (mut cache, mut burst) = (PoolCache::new(pool), Burst::default());
        let held = near.hold();
        assert_eq!(held.send(0, vec![1; 60]), Err(vec![1; 60]), "nobody is there");
        let mut far = far.open("far", 2);
        let mut queues = far.queues();
        for byte in [1, 2, 3] {
            held.send(1, vec![byte; 60]).expect("room");
        }
        held.send(4, vec![4; 60]).expect("room");
        assert_eq!([0, 1].map(|queue| queues[queue].rx.backlog()), [1, 3]);
        for (queue, byte) in [(1, 7), (0, 8), (1, 9)] {
            burst.push(cache.alloc_from(&[byte; 60]).unwrap());
            assert_eq!(queues[queue].tx.send(&mut burst, &mut cache, Time::ZERO), 1);
        }
        assert_eq!(held.receive(), [[7; 60], [8; 60], [9; 60]]);
        assert_eq!(held.receive().len(), 0);
        for _ in 1..CAPACITY {
            held.send(0, vec![0; 60]).expect("room");
        }
        assert!(held.send(0, vec![0; 60]).is_err(), "it is full");
        drop(held);
        burst.push(cache.alloc_from(&[5; 60]).unwrap());
        assert_eq!(queues[0].tx.send(&mut burst, &mut cache, Time::ZERO), 0, "nobody is there");
        burst.drain(..).for_each(|packet| cache.free(packet));
    }
}
