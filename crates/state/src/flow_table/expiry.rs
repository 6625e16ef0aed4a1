//! Reclaiming the entries of flows past their deadline.

use rheostat_base::Time;
use rheostat_packet::Family;

use super::entries::WheelLinks;
use super::entry;
use super::{FlowMut, FlowTable};
use crate::timer_wheel;

/// What [`FlowTable::expire`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Reclaimed {
    /// Flows that were ended.
    pub flows: usize,
    /// Entries that were looked at: those, and others whose deadline had moved.
    pub looked_at: usize,
    /// Whether nothing is left to reclaim before the next tick; `false` when the budget ran out.
    pub complete: bool,
}

/// What [`FlowTable::expire_ahead`] names a flow for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It may be the next to end: a hint, to ask for the memory that its end will need.
    Soon,
    /// It ends now.
    Now,
}

impl FlowTable {
    /// Ends flows past their deadline, calling `ending` on each before, so that the chain can clean
    /// up. At most `budget` entries are looked at.
    ///
    /// Once complete, the flows left are those whose deadline does not lie in an earlier tick (2^29
    /// ns) than `now`, or than the latest `now` seen: whether it was called often or rarely before,
    /// with large budgets or small ones. That a flow past its deadline may stay for the rest of the
    /// tick is not seen by packets, which decide by the deadline.
    pub fn expire(
        &mut self,
        now: Time,
        budget: usize,
        mut ending: impl FnMut(FlowMut<'_>),
    ) -> Reclaimed {
        self.expire_ahead(now, budget, |flow, expiry| match expiry {
            Expiry::Soon => {}
            Expiry::Now => ending(flow),
        })
    }

    /// As [`FlowTable::expire`], and names flows to `visit` one flow before they are looked at, too. A flow lives on whose deadline
    /// `visit` puts off; when that has passed as well, it is visited again.
    pub fn expire_ahead(
        &mut self,
        now: Time,
        budget: usize,
        mut visit: impl FnMut(FlowMut<'_>, Expiry),
    ) -> Reclaimed {
        let target = self.wheel.reach(now);
        let mut flows = 0;
        let mut looked_at = 0;
        while let Some(index) = self.wheel.next(&mut WheelLinks(&mut self.entries), target) {
            if looked_at == budget {
                return Reclaimed { flows, looked_at, complete: false };
            }
            looked_at += 1;
            if let Some(next) = self.prefetch_behind(index) {
                visit(FlowMut::new(self, next), Expiry::Soon);
            }
            let deadline = |table: &FlowTable| table.entries.hot(index).ending.deadline();
            loop {
                let due = deadline(self);
                let tick = timer_wheel::tick(due);
                if tick >= target {
                    let mut links = WheelLinks(&mut self.entries);
                    self.wheel.disarm(&mut links, index);
                    let slot = self.wheel.arm(&mut links, index, tick);
                    self.entries.cold_mut(index).slot = slot;
                    break;
                }
                visit(FlowMut::new(self, index), Expiry::Now);
                if deadline(self) <= due {
                    self.end(index);
                    flows += 1;
                    break;
                }
            }
        }
        Reclaimed { flows, looked_at, complete: true }
    }

    /// Asks for what the flows behind the one in entry `index` will need, as it is known from which lines: for the next one,
    /// whose entry was asked for one flow ago, the buckets of its keys, and for the one behind that its entry. Returns the next
    /// one.
    #[inline]
    fn prefetch_behind(&mut self, index: u32) -> Option<u32> {
        let mut links = WheelLinks(&mut self.entries);
        let next = self.wheel.behind(&mut links, index)?;
        if let Some(later) = self.wheel.behind(&mut links, next) {
            links.0.prefetch_whole(later);
        }
        let (hot, cold) = (self.entries.hot(next), self.entries.cold(next));
        let ((words, family), alias) = (entry::primary(hot, cold), entry::alias(hot, cold));
        self.index.prefetch(self.shared.hasher.hash_words(&words, family));
        if let Some(words) = alias {
            self.index.prefetch(self.shared.hasher.hash_words(&words, Family::V4));
        }
        Some(next)
    }

    /// Whether [`FlowTable::expire`] may have something to do at `now`: as [`FlowTable::next_due`], for the price of a look at
    /// the ticks that have passed since it was last called.
    #[inline]
    pub fn has_due(&self, now: Time) -> bool {
        self.wheel.has_due(now)
    }

    /// The earliest time at which [`FlowTable::expire`] may have something to do; `None` when it never
    /// will as things are.
    pub fn next_due(&self) -> Option<Time> {
        self.wheel.next_due()
    }
}
