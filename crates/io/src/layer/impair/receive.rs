//! A receive queue of a bad network.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::{Counters, Draw, Fault};
use crate::device::{ClaimBound, QueueEnd, Rest, RxQueue};

/// A receive queue whose packets were lost, doubled and reordered on the way.
pub(super) struct ImpairedRx {
    inner: Box<dyn RxQueue>,
    draw: Draw,
    counters: Arc<Counters>,
    /// Packets received from `inner`, those that were lost included.
    taken: u64,
}

impl ImpairedRx {
    pub(super) fn new(inner: Box<dyn RxQueue>, draw: Draw, counters: Arc<Counters>) -> ImpairedRx {
        ImpairedRx { inner, draw, counters, taken: 0 }
    }

    fn double(&self, packet: &Mbuf, pool: &mut PoolCache) -> Option<Mbuf> {
        let twin = pool.copy(packet).ok()?;
        self.counters.duplicated.increment();
        self.counters.duplicated_bytes.add(u64::from(packet.wire_len()));
        Some(twin)
    }
}

impl RxQueue for ImpairedRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let (before, room) = (burst.len(), burst.remaining_capacity());
        let received = self.inner.recv(burst, pool, now);
        self.taken += received as u64;
        let arrived: Burst = burst.drain(before..).collect();
        let mut left = received;
        let mut overtaken: Option<Mbuf> = None;
        for packet in arrived {
            left -= 1;
            // Doubles get the room that is left in the burst.
            let needed = burst.len() - before + usize::from(overtaken.is_some()) + 1 + left;
            let spare = needed < room;
            let mut swaps = false;
            let mut twin = None;
            match self.draw.next() {
                Some(Fault::Lose) => {
                    self.counters.lost.increment();
                    self.counters.lost_bytes.add(u64::from(packet.wire_len()));
                    pool.free(packet);
                    continue;
                }
                Some(Fault::Double) if spare => twin = self.double(&packet, pool),
                Some(Fault::Swap) => swaps = overtaken.is_none() && left > 0,
                Some(Fault::Double) | None => {}
            }
            if swaps {
                overtaken = Some(packet);
                continue;
            }
            burst.push(packet);
            burst.extend(twin);
            if let Some(late) = overtaken.take() {
                burst.push(late);
                self.counters.reordered.increment();
            }
        }
        // All behind it were lost.
        burst.extend(overtaken);
        burst.len() - before
    }

    fn release(&mut self) {
        self.inner.release();
    }

    fn left_for_others(&self) -> usize {
        self.inner.left_for_others()
    }

    fn leave_transmit(&mut self) {
        self.inner.leave_transmit();
    }

    fn backlog(&self) -> usize {
        self.inner.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wait_fd()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.inner.rest(pool, now)
    }

    /// By what was taken from the queue, since not all of it arrives.
    fn end(&self) -> QueueEnd {
        match self.inner.end() {
            QueueEnd::Packets(waiting) => QueueEnd::Rings(vec![self.taken + waiting]),
            rings => rings,
        }
    }

    fn has_read(&self, rings: &[u64]) -> bool {
        match (self.inner.end(), rings) {
            (QueueEnd::Packets(_), [end]) => self.taken >= *end,
            _ => self.inner.has_read(rings),
        }
    }

    fn shared_descriptors(&self) -> Option<u64> {
        self.inner.shared_descriptors()
    }

    fn claimed(&self) -> u64 {
        self.inner.claimed()
    }

    fn latest_claim(&self) -> Option<(u64, u64)> {
        self.inner.latest_claim()
    }

    fn bound_claims(&mut self, bound: ClaimBound) {
        self.inner.bound_claims(bound);
    }

    fn stamp_now(&self) -> Option<u32> {
        self.inner.stamp_now()
    }
}
