//! The receive queue of a lane: its RX rings on all hardware queues.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::attachment::Attachment;
use super::open::PacketRing;
use super::ring::{Consumer, Gauge};
use super::transmit_state::Kicked;
use crate::backend::bpf::{METADATA, PacketHash};
use crate::device::{QueueEnd, Rest, RxQueue};
use crate::sys::xdp_socket::CONTINUED;

/// Of so many polls that find nothing, one takes all sent buffers back, however few.
const REAP_ALL: u32 = 61;

/// The receive queue of a lane.
pub(super) struct XdpRx {
    // Before the attachment: its mappings must go first.
    rings: Vec<RxRing>,
    /// Which ring is asked first next time.
    turn: usize,
    /// Polls, of any hardware queue, that found nothing.
    idle_polls: u32,
    /// Polls readable when any of several sockets does.
    any: Option<OwnedFd>,
    lane: usize,
    device: DeviceId,
    attachment: Arc<Attachment>,
}

/// One RX ring.
struct RxRing {
    ring: Consumer<PacketRing>,
    waiting: Gauge<PacketRing>,
    /// Buffers that the kernel has filled and not been given others for.
    owed: usize,
    /// The start of a packet whose end has not come yet.
    begun: Option<Mbuf>,
    /// Whether the rest of a packet is to be thrown away.
    spoilt: bool,
}

impl XdpRx {
    /// The receive queue of `lane`. `any` watches all its sockets, where it has several.
    pub(super) fn new(
        rings: Vec<Consumer<PacketRing>>,
        any: Option<OwnedFd>,
        lane: usize,
        device: DeviceId,
        attachment: Arc<Attachment>,
    ) -> XdpRx {
        let ring = |ring: Consumer<PacketRing>| RxRing {
            waiting: ring.gauge(),
            ring,
            owed: 0,
            begun: None,
            spoilt: false,
        };
        XdpRx {
            rings: rings.into_iter().map(ring).collect(),
            turn: 0,
            idle_polls: 0,
            any,
            lane,
            device,
            attachment,
        }
    }

    /// Takes packets from the ring of hardware queue `queue` until `burst` is full or it is empty.
    fn take(&mut self, queue: usize, burst: &mut Burst, pool: &mut PoolCache) {
        let counters = &self.attachment.counters.lanes[self.lane];
        let loans = self.attachment.queues[queue].loans();
        let ring = &mut self.rings[queue];
        let before = ring.owed;
        while !burst.is_full() {
            let Some(descriptor) = ring.ring.take() else { break };
            ring.owed += 1;
            let continues = descriptor.options & CONTINUED != 0;
            // SAFETY: the kernel has put the address on the RX ring, so it is done with the buffer.
            let part = match unsafe { loans.receive(descriptor.address, descriptor.len) } {
                Ok(part) => part,
                Err(_) => {
                    counters.refused.increment();
                    ring.begun.take().into_iter().for_each(|begun| pool.free(begun));
                    ring.spoilt = continues;
                    continue;
                }
            };
            if ring.spoilt {
                ring.spoilt = continues;
                pool.free(part);
                continue;
            }
            let whole = match ring.begun.take() {
                None => part,
                Some(mut begun) => match begun.append(part) {
                    Ok(()) => begun,
                    Err(part) => {
                        pool.free(part);
                        pool.free(begun);
                        counters.oversize.increment();
                        ring.spoilt = continues;
                        continue;
                    }
                },
            };
            match continues {
                true => ring.begun = Some(whole),
                false => {
                    // Another core has just written both lines, and each packet's are needed soon after those of the one before.
                    whole.prefetch_front();
                    whole.prefetch();
                    burst.push(whole);
                }
            }
        }
        if ring.owed != before {
            ring.ring.release();
        }
    }

    /// Gives the kernel empty buffers for those it has filled: some at a time while packets come, all
    /// when none do.
    fn refill(&mut self, queue: usize, idle: bool, pool: &mut PoolCache) {
        let frames = &self.attachment.queues[queue];
        let ring = &mut self.rings[queue];
        let enough = if idle { 1 } else { BURST };
        if ring.owed >= enough {
            ring.owed -= frames.refill(ring.owed, pool);
        }
        if frames.needs_wakeup() {
            // A failure is the interface's, and has nothing new.
            let _ = self.attachment.lanes[self.lane].sockets[queue].wake();
        }
    }

    /// Takes sent buffers back: a burst at a time, since a lane that is busy with another device comes by in each of its polls
    /// (which made reaping by ones and twos 3 % of the lane's time), and now and then, or before it sleeps, all.
    fn reap(&mut self, queue: usize, idle: bool, pool: &mut PoolCache) {
        if !idle {
            return;
        }
        self.idle_polls = self.idle_polls.wrapping_add(1);
        let frames = &self.attachment.queues[queue];
        if self.idle_polls.is_multiple_of(REAP_ALL) || frames.completions() >= BURST as u32 {
            frames.reap(pool);
        }
    }

    /// Has the kernel take packets from the driver, for rings that have none.
    fn poll_driver(&self) {
        let sockets = &self.attachment.lanes[self.lane].sockets;
        for (ring, socket) in self.rings.iter().zip(sockets) {
            if ring.waiting.waiting() == 0 {
                // A failure is the interface's, and tells nothing new.
                let _ = socket.wake();
            }
        }
    }

    /// Writes down what is known of the packets of `burst` from `first` on.
    fn describe(&self, burst: &mut Burst, first: usize, now: Time) {
        let received = &mut burst[first..];
        let stamps = &self.attachment.stamps;
        // Relaxed: the order of bursts is all there is to it.
        let stamp = stamps.fetch_add(received.len() as u32, Ordering::Relaxed);
        let hashed = self.attachment.reports_hashes();
        let mut bytes = 0;
        for (packet, place) in received.iter_mut().zip(0..) {
            packet.set_timestamp(now);
            packet.set_stamp(stamp.wrapping_add(place));
            packet.set_device(self.device);
            bytes += packet.len() as u64;
            if hashed && let Some(told) = metadata(packet) {
                packet.set_hash(told.hash, told.kind);
            }
        }
        let counters = &self.attachment.counters.lanes[self.lane];
        counters.received.add(received.len() as u64);
        counters.received_bytes.add(bytes);
    }
}

/// What the program wrote in front of the packet.
#[inline]
fn metadata(packet: &Mbuf) -> Option<PacketHash> {
    packet.front(METADATA)?.first_chunk().and_then(PacketHash::read)
}

impl RxQueue for XdpRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let first = burst.len();
        let queues = self.rings.len();
        if self.attachment.busy_poll.is_some() {
            self.poll_driver();
        }
        for place in 0..queues {
            if burst.is_full() {
                break;
            }
            self.take((self.turn + place) % queues, burst, pool);
        }
        self.turn = (self.turn + 1) % queues;
        let count = burst.len() - first;
        if count > 0 {
            self.describe(burst, first, now);
        }
        for queue in 0..queues {
            self.refill(queue, count == 0, pool);
            self.reap(queue, count == 0, pool);
        }
        let lane = &self.attachment.lanes[self.lane];
        if lane.transmit.come_by(&lane.sockets[lane.transmit_queue], now) == Kicked::Gone {
            self.attachment.counters.gone.store(true, Ordering::Relaxed);
        }
        count
    }

    fn backlog(&self) -> usize {
        self.rings.iter().map(|ring| ring.waiting.waiting() as usize).sum()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        for queue in &self.attachment.queues {
            queue.reap(pool);
        }
        let lane = &self.attachment.lanes[self.lane];
        // No thread would make the call while the lane sleeps.
        if lane.transmit.is_put_off()
            && lane.transmit.kick_again(&lane.sockets[lane.transmit_queue], now) == Kicked::Gone
        {
            self.attachment.counters.gone.store(true, Ordering::Relaxed);
        }
        match self.wait_fd() {
            _ if self.backlog() > 0 => Rest::Awake,
            Some(_) => Rest::Sleep,
            None => Rest::Nap,
        }
    }

    /// One figure per ring: of several, some may be read while others wait.
    fn end(&self) -> QueueEnd {
        QueueEnd::Rings(self.rings.iter().map(|ring| ring.waiting.produced().into()).collect())
    }

    fn has_read(&self, rings: &[u64]) -> bool {
        self.rings.iter().zip(rings).all(|(ring, end)| ring.waiting.has_consumed(*end as u32))
    }

    fn stamp_now(&self) -> Option<u32> {
        Some(self.attachment.stamps.fetch_add(1, Ordering::Relaxed))
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        let lane = &self.attachment.lanes[self.lane];
        let is_gone = self.attachment.counters.gone.load(Ordering::Relaxed);
        if lane.transmit.is_waiting() && !is_gone {
            // Nothing would wake the lane to send it.
            return None;
        }
        match &self.any {
            Some(any) => Some(any.as_fd()),
            None => lane.sockets.first().map(AsFd::as_fd),
        }
    }
}
