//! The receive queue of a lane: its RX rings on all hardware queues.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, PoolCache};

use super::assembly::Assembly;
use super::open::PacketRing;
use super::receiving_lane::ReceivingLane;
use super::ring::{Consumer, Gauge};
use crate::device::{ArrivalOrder, Rest, RingProgress, RxQueue, SharedQueue};
use crate::sys::xdp_socket::CONTINUED;

/// The receive queue of a lane.
pub(super) struct XdpRx {
    // Before the lane, which has the attachment: its mappings must go first.
    rings: Vec<RxRing>,
    /// Which ring is asked first next time.
    turn: usize,
    /// Whether other lanes receive from the queue, too, and so keep off the transmit queue of this one.
    leaves_transmit: bool,
    lane: ReceivingLane,
}

/// One RX ring.
struct RxRing {
    ring: Consumer<PacketRing>,
    waiting: Gauge<PacketRing>,
    /// Buffers that the kernel has filled and not been given others for.
    owed: usize,
    assembly: Assembly,
}

impl XdpRx {
    /// The receive queue of `lane`.
    pub(super) fn new(rings: Vec<Consumer<PacketRing>>, lane: ReceivingLane) -> XdpRx {
        let ring = |ring: Consumer<PacketRing>| RxRing {
            waiting: ring.gauge(),
            ring,
            owed: 0,
            assembly: Assembly::default(),
        };
        XdpRx {
            rings: rings.into_iter().map(ring).collect(),
            turn: 0,
            leaves_transmit: false,
            lane,
        }
    }

    /// Takes packets from the ring of hardware queue `queue` until `burst` is full or it is empty.
    fn take(&mut self, queue: usize, burst: &mut Burst, pool: &mut PoolCache) {
        let counters = self.lane.counters();
        let loans = self.lane.attachment.queues[queue].loans();
        let ring = &mut self.rings[queue];
        let before = ring.owed;
        while !burst.is_full() {
            let Some(descriptor) = ring.ring.take() else { break };
            ring.owed += 1;
            let continues = descriptor.options & CONTINUED != 0;
            // SAFETY: the kernel has put the address on the RX ring, so it is done with the buffer.
            let part = unsafe { loans.receive(descriptor.address, descriptor.len) };
            if let Some(packet) = ring.assembly.add(part.ok(), continues, counters, pool) {
                burst.push(packet);
            }
        }
        if ring.owed != before {
            ring.ring.release();
        }
    }

    /// Gives the kernel empty buffers for those it has filled: some at a time while packets come, all
    /// when none do.
    fn refill(&mut self, queue: usize, idle: bool, pool: &mut PoolCache) {
        let ring = &mut self.rings[queue];
        let enough = if idle { 1 } else { BURST };
        if ring.owed >= enough {
            ring.owed -= self.lane.attachment.queues[queue].refill(ring.owed, pool);
        }
        self.lane.wake_kernel(queue);
    }
}

impl RxQueue for XdpRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let first = burst.len();
        let queues = self.rings.len();
        self.lane.poll_driver(|queue| self.rings[queue].waiting.waiting() == 0);
        for place in 0..queues {
            if burst.is_full() {
                break;
            }
            self.take((self.turn + place) % queues, burst, pool);
        }
        self.turn = (self.turn + 1) % queues;
        let count = burst.len() - first;
        if count > 0 {
            // Relaxed: the order of bursts is all there is to it.
            let stamp = self.lane.attachment.stamps.fetch_add(count as u32, Ordering::Relaxed);
            self.lane.describe(burst, first, stamp, now);
        }
        for queue in 0..queues {
            self.refill(queue, count == 0, pool);
            self.lane.reap(queue, count == 0, pool);
        }
        if !self.leaves_transmit {
            self.lane.come_by(now);
        }
        count
    }

    fn backlog(&self) -> usize {
        self.rings.iter().map(|ring| ring.waiting.waiting() as usize).sum()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.lane.reap_all(pool);
        self.lane.send_before_rest(now);
        Rest::after_look(self.backlog(), self.wait_fd().is_some())
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder::on_receipt(&self.lane.attachment.stamps, self)
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.lane.waits_to_send() { None } else { self.lane.watched() }
    }
}

/// One figure per ring: of several, some may be read while others wait.
impl RingProgress for XdpRx {
    fn ends(&self) -> Vec<u64> {
        self.rings.iter().map(|ring| ring.waiting.produced().into()).collect()
    }

    fn has_read(&self, ends: &[u64]) -> bool {
        self.rings.iter().zip(ends).all(|(ring, end)| ring.waiting.has_consumed(*end as u32))
    }
}

impl SharedQueue for XdpRx {
    fn leave_transmit(&mut self) {
        self.leaves_transmit = true;
    }
}
