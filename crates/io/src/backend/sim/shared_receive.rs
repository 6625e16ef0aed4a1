//! The receive queues of the simulated NIC whose rings several lanes empty at once.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::descriptor_ring::{ClaimantSide, HeldClaim};
use super::queue_event::QueueEvent;
use super::receive::Filling;
use crate::backend::shared_ring::{ClaimSize, Claimants, NoClaim};
use crate::device::{ClaimBound, Rest, RxQueue, SharedQueue};

/// One lane's part in a receive queue.
pub(super) struct SharedRx {
    ring: ClaimantSide<Mbuf>,
    filling: Filling,
    /// What is known of all of them, and which this is.
    claimants: (Arc<Claimants>, usize),
    /// What the NIC's thread wakes each of them by, where it has one.
    events: Vec<Arc<QueueEvent>>,
    /// Whether this one has armed its own.
    is_armed: bool,
    size: ClaimSize,
    /// The claim of which bursts are taken.
    held: Option<HeldClaim>,
    /// What was taken last, if anything.
    latest: Option<(u64, u64)>,
    /// Below what claims have to stay.
    bound: Option<ClaimBound>,
}

impl SharedRx {
    pub(super) fn new(
        ring: ClaimantSide<Mbuf>,
        filling: Filling,
        claimants: (Arc<Claimants>, usize),
        events: Vec<Arc<QueueEvent>>,
    ) -> SharedRx {
        let size = ClaimSize::new(ring.capacity());
        let (is_armed, held, latest, bound) = (false, None, None, None);
        SharedRx { ring, filling, claimants, events, is_armed, size, held, latest, bound }
    }

    fn left(&self) -> usize {
        self.held.as_ref().map_or(0, HeldClaim::left)
    }

    fn own_event(&self) -> Option<&QueueEvent> {
        self.events.get(self.claimants.1).map(|event| &**event)
    }
}

impl RxQueue for SharedRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if std::mem::take(&mut self.is_armed)
            && let Some(event) = self.own_event()
        {
            event.disarm();
        }
        self.filling.fill(|| self.ring.backlog(), now, pool);
        let (claimants, number) = &self.claimants;
        self.latest = None;
        let mut claimed = match self.held.take() {
            Some(held) => self.ring.resume(held),
            None => {
                claimants.note_done(*number);
                let bound = self.bound.as_ref().map_or(u64::MAX, |bound| bound());
                // A lane with little room for packets leaves the others to those that have more.
                let room = burst.remaining_capacity();
                let most = if room < BURST { room } else { usize::MAX };
                let claimed = match self.ring.claim(self.size.next(now).min(most), bound) {
                    Ok(claimed) => claimed,
                    Err(NoClaim::Empty) => {
                        self.size.found_none();
                        return 0;
                    }
                    Err(NoClaim::UsedUp) => {
                        claimants.note_used_up(now);
                        return 0;
                    }
                };
                let (first, end) = claimed.range();
                self.size.claimed(end - first, now);
                claimants.note_claim(*number, first, end - first, claimed.retries(), now);
                claimed
            }
        };
        let taken = claimed.take_some(burst.remaining_capacity(), |packet| burst.push(packet));
        self.latest = (!taken.is_empty()).then_some((taken.start, taken.end));
        self.held = claimed.finish_or_hold();
        if self.bound.is_none() && self.held.is_none() {
            claimants.note_done(*number);
        }
        // The NIC wakes one lane for packets of which there may be more than it takes.
        if !self.events.is_empty() && self.ring.backlog() > 0 {
            let _ = self.events.iter().any(|event| event.raise());
        }
        (taken.end - taken.start) as usize
    }

    fn backlog(&self) -> usize {
        self.ring.backlog() + self.left()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.events.get(self.claimants.1).map(|event| event.as_fd())
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        let is_announced = match self.own_event() {
            Some(event) => {
                // A sleeper keeps no buffer that the next packet may need.
                pool.flush();
                event.arm();
                self.is_armed = true;
                true
            }
            None => self.filling.fill_before_rest(now, pool),
        };
        Rest::after_look(self.backlog(), is_announced)
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }
}

impl SharedQueue for SharedRx {
    fn descriptors(&mut self) -> Option<u64> {
        Some(self.ring.capacity())
    }

    fn latest_claim(&mut self) -> Option<(u64, u64)> {
        self.latest
    }

    fn bound_claims(&mut self, bound: ClaimBound) {
        self.bound = Some(bound);
    }
}
