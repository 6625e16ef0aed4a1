//! A lane's part in RX rings that several lanes empty at once.
//!
//! Each of the lanes claims packets of one ring per poll. Buffers taken out of a ring are noted for all; whichever
//! lane gets the lock of the FILL ring gives the kernel others.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, PoolCache};

use super::assembly::Assembly;
use super::claimed_ring::ClaimedRing;
use super::open::PacketRing;
use super::receiving_lane::ReceivingLane;
use super::ring::Consumer;
use crate::backend::padded::Padded;
use crate::backend::shared_ring::{Claimants, NoClaim};
use crate::device::{ArrivalOrder, ClaimBound, Rest, RingProgress, RxQueue, SharedQueue};
use crate::sys::xdp_socket::CONTINUED;

/// One RX ring, which lanes share.
pub(super) struct SharedRing {
    ring: ClaimedRing<PacketRing>,
    /// Buffers that the kernel has filled and not been given others for. Relaxed: a lane that takes them out of the figure has to
    /// give so many or put them back.
    owed: Padded<AtomicUsize>,
}

impl SharedRing {
    /// Lets lanes share a ring.
    pub(super) fn new(ring: Consumer<PacketRing>) -> SharedRing {
        SharedRing { ring: ClaimedRing::new(ring), owed: Padded(AtomicUsize::new(0)) }
    }
}

/// A lane's part in the rings.
pub(super) struct SharedXdpRx {
    // Before the lane, which has the attachment: the mappings must go first.
    rings: Arc<[SharedRing]>,
    /// Which ring is asked first next time.
    turn: usize,
    /// Which of the lanes of a queue it is, and which of the queues that is.
    claimant: usize,
    queue: usize,
    /// What was claimed last, if anything.
    latest: Option<(u64, u64)>,
    /// Below what claims have to stay.
    bound: Option<ClaimBound>,
    lane: ReceivingLane,
}

impl SharedXdpRx {
    /// The part of lane `number` of `claimants` that share `rings`, in turn.
    pub(super) fn new(
        rings: Arc<[SharedRing]>,
        (number, claimants): (usize, usize),
        lane: ReceivingLane,
    ) -> SharedXdpRx {
        let (queue, claimant) = (number / claimants, number % claimants);
        SharedXdpRx { rings, turn: 0, claimant, queue, latest: None, bound: None, lane }
    }

    fn claimants(&self, ring: usize) -> &Claimants {
        &self.lane.attachment.counters.claimants[self.queue][ring]
    }

    /// Claims packets of a ring and takes them; returns how many there are in `burst` afterwards that were not before.
    fn take(&mut self, number: usize, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let ring = &self.rings[number];
        let (first, stamps) = (burst.len(), &self.lane.attachment.stamps);
        let bound = self.bound.as_ref().map_or(u64::MAX, |bound| bound());
        // Relaxed: the claims order the stamps.
        let draw = |count| stamps.fetch_add(count as u32, Ordering::Relaxed);
        let claimed = match ring.ring.claim(burst.remaining_capacity(), bound, draw) {
            Ok(claimed) => claimed,
            Err(NoClaim::Empty) => return 0,
            Err(NoClaim::UsedUp) => {
                self.claimants(number).note_used_up(now);
                return 0;
            }
        };
        let (range, stamp) = (claimed.range(), claimed.ticket());
        let packets = claimed.packets() as u64;
        let claimants = self.claimants(number);
        claimants.note_claim(self.claimant, range.0, packets, claimed.retries(), now);
        let counters = self.lane.counters();
        let loans = self.lane.attachment.queues[number].loans();
        let mut assembly = Assembly::default();
        let taken = claimed.take(|descriptor| {
            let continues = descriptor.options & CONTINUED != 0;
            // SAFETY: the kernel has put the address on the RX ring, so it is done with the buffer.
            let part = unsafe { loans.receive(descriptor.address, descriptor.len) };
            if let Some(packet) = assembly.add(part.ok(), continues, counters, pool) {
                burst.push(packet);
            }
        });
        taken.finish();
        ring.owed.0.fetch_add((range.1 - range.0) as usize, Ordering::Relaxed);
        if self.bound.is_none() {
            claimants.note_done(self.claimant);
        }
        self.lane.describe(burst, first, stamp, now);
        self.latest = Some(range);
        burst.len() - first
    }

    /// Gives the kernel empty buffers for those it has filled, whichever lane took them: some at a time while packets come,
    /// all when none do.
    fn refill(&self, number: usize, idle: bool, pool: &mut PoolCache) {
        let owed = &self.rings[number].owed.0;
        let enough = if idle { 1 } else { BURST };
        if owed.load(Ordering::Relaxed) >= enough {
            let wanted = owed.swap(0, Ordering::Relaxed);
            let given = self.lane.attachment.queues[number].refill(wanted, pool);
            if given < wanted {
                owed.fetch_add(wanted - given, Ordering::Relaxed);
            }
        }
        self.lane.wake_kernel(number);
    }

    /// Whether packets leave in order, through a transmit queue that the lanes share; its owner has the kernel send.
    fn leaves_in_order(&self) -> bool {
        self.bound.is_some()
    }
}

impl RxQueue for SharedXdpRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if self.latest.take().is_some() && self.leaves_in_order() {
            (0..self.rings.len()).for_each(|ring| self.claimants(ring).note_done(self.claimant));
        }
        let rings = self.rings.len();
        self.lane.poll_driver(|ring| self.rings[ring].ring.backlog() == 0);
        let mut count = 0;
        for place in 0..rings {
            count = self.take((self.turn + place) % rings, burst, pool, now);
            if self.latest.is_some() {
                break;
            }
        }
        self.turn = (self.turn + 1) % rings;
        let idle = self.latest.is_none();
        for ring in 0..rings {
            self.refill(ring, idle, pool);
            self.lane.reap(ring, idle, pool);
        }
        if !self.leaves_in_order() {
            self.lane.come_by(now);
        }
        count
    }

    fn backlog(&self) -> usize {
        self.rings.iter().map(|ring| ring.ring.backlog() as usize).sum()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.lane.reap_all(pool);
        if !self.leaves_in_order() {
            self.lane.send_before_rest(now);
        }
        // The kernel may have no buffer left to wake a lane with.
        let owes = self.rings.iter().any(|ring| ring.owed.0.load(Ordering::Relaxed) > 0);
        Rest::after_look(self.backlog(), self.wait_fd().is_some() && !owes)
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder::on_receipt(&self.lane.attachment.stamps, self)
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        let waits = !self.leaves_in_order() && self.lane.waits_to_send();
        if waits { None } else { self.lane.watched() }
    }
}

impl RingProgress for SharedXdpRx {
    fn ends(&self) -> Vec<u64> {
        self.rings.iter().map(|ring| ring.ring.end()).collect()
    }

    fn has_read(&self, ends: &[u64]) -> bool {
        self.rings.iter().zip(ends).all(|(ring, end)| ring.ring.has_read(*end))
    }
}

impl SharedQueue for SharedXdpRx {
    fn descriptors(&mut self) -> Option<u64> {
        self.rings.first().map(|ring| ring.ring.size())
    }

    fn claimed(&mut self) -> u64 {
        self.rings.iter().map(|ring| ring.ring.claimed()).sum()
    }

    fn latest_claim(&mut self) -> Option<(u64, u64)> {
        self.latest
    }

    fn bound_claims(&mut self, bound: ClaimBound) {
        self.bound = Some(bound);
    }
}
