//! A receive queue of a bad network.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::{Counters, Draw, Fault};
use crate::device::{ArrivalOrder, RingProgress, RxLayer, RxQueue};

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

impl RxLayer for ImpairedRx {
    fn inner(&self) -> &dyn RxQueue {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn RxQueue {
        &mut *self.inner
    }

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

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { rings: Some(self), ..self.inner.order() }
    }
}

/// By what was taken from the queue where it has no rings, since not all of it arrives.
impl RingProgress for ImpairedRx {
    fn ends(&self) -> Vec<u64> {
        match self.inner.order().rings {
            Some(rings) => rings.ends(),
            None => vec![self.taken + self.inner.backlog() as u64],
        }
    }

    fn has_read(&self, ends: &[u64]) -> bool {
        match self.inner.order().rings {
            Some(rings) => rings.has_read(ends),
            None => ends.iter().all(|end| self.taken >= *end),
        }
    }
}
