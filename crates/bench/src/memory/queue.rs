//! The two ends of a memory device that a lane holds.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;
use rheostat_base::sync::spsc::{self, Consumer, Producer};
use rheostat_base::{DeviceId, Time};
use rheostat_io::{QueuePair, RxQueue, TxQueue};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::conversation::{Planned, Progress, Side};
use super::{CYCLE, LAN, Monitor, QueueCounters, WAN, frame};

/// What one device contributes to a lane.
pub(super) struct Half {
    pub(super) side: Side,
    pub(super) counters: Arc<QueueCounters>,
    pub(super) monitor: Arc<Monitor>,
}

/// A lane's queues of the device inside and of the one outside. What came from one leaves through the
/// other, and its buffer then returns to the one.
pub(super) fn pairs(inside: Half, outside: Half) -> [QueuePair; 2] {
    // Room for a device's whole round, and no more: a ring is walked from end to end however few
    // are in it, and its lines would push the packets' out of the caches.
    let (sent_outside, from_inside) = spsc::ring(CYCLE);
    let (sent_inside, from_outside) = spsc::ring(CYCLE);
    let tx = |sent, half: &Half| MemoryTx {
        sent,
        progress: half.side.progress(),
        counters: half.counters.clone(),
    };
    let (tx_inside, tx_outside) = (tx(sent_inside, &inside), tx(sent_outside, &outside));
    let rx = |device, recycled, half: Half| {
        let Half { side, counters, monitor } = half;
        MemoryRx { side, device, recycled, issued: 0, stamp: 0, counters, monitor }
    };
    [
        QueuePair { rx: Box::new(rx(LAN, from_inside, inside)), tx: Box::new(tx_inside) },
        QueuePair { rx: Box::new(rx(WAN, from_outside, outside)), tx: Box::new(tx_outside) },
    ]
}

struct MemoryRx {
    side: Side,
    device: DeviceId,
    recycled: Consumer<Mbuf>,
    /// Buffers that this queue has brought into the round.
    issued: usize,
    stamp: u32,
    counters: Arc<QueueCounters>,
    monitor: Arc<Monitor>,
}

struct MemoryTx {
    sent: Producer<Mbuf>,
    progress: Arc<Progress>,
    counters: Arc<QueueCounters>,
}

impl MemoryRx {
    /// Makes a packet in the buffer that was sent longest ago.
    #[inline(always)]
    fn make(&mut self, planned: &Planned, pool: &mut PoolCache) -> Option<Mbuf> {
        if self.issued < CYCLE {
            self.issued += 1;
        } else if let Some(oldest) = self.recycled.pop() {
            // The cache gives back what it was given last: this very buffer.
            pool.free(oldest);
        }
        let Planned { ends, step, .. } = planned;
        let mut packet = pool.alloc(step.len.into()).ok()?;
        frame::write(packet.data_mut(), ends, step);
        Some(packet)
    }
}

impl RxQueue for MemoryRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        if self.monitor.stopped.load(Ordering::Relaxed) {
            return 0;
        }
        let mut planned = Planned::default();
        let mut hashes = ArrayVec::<u32, BURST>::new();
        let (before, mut bytes, mut arrived) = (burst.len(), 0, 0);
        while !burst.is_full() && self.side.next(&mut planned) {
            arrived += 1;
            bytes += u64::from(planned.step.len);
            match self.make(&planned, pool) {
                Some(packet) => {
                    burst.push(packet);
                    hashes.push(planned.hash);
                }
                None => self.counters.no_buffer.increment(),
            }
        }
        let covered = self.side.covered();
        // Once all are written: a handle that is changed and moved at once waits for itself.
        for (packet, hash) in burst[before..].iter_mut().zip(&hashes) {
            packet.set_device(self.device);
            packet.set_hash(*hash, covered);
            packet.set_stamp(self.stamp);
            self.stamp = self.stamp.wrapping_add(1);
        }
        self.counters.arrived.add(arrived);
        self.counters.arrived_bytes.add(bytes);
        burst.len() - before
    }

    fn backlog(&self) -> usize {
        0
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl TxQueue for MemoryTx {
    fn send(&mut self, burst: &mut Burst, _: &mut PoolCache, _: Time) -> usize {
        let mut bytes = 0;
        for packet in burst.iter() {
            self.progress.passed(packet.data());
            bytes += packet.len() as u64;
        }
        let offered = burst.len();
        let mut packets = burst.drain(..);
        let sent = self.sent.push_all(&mut packets);
        // The ring holds more than the buffers that are under way.
        debug_assert_eq!(sent, offered, "a ring for all buffers is full");
        self.counters.sent.add(sent as u64);
        self.counters.sent_bytes.add(bytes);
        sent
    }
}
