//! The lane's part in shards that it owns together with the other claimants of its receive queue.
//!
//! The lane takes the shards of a batch that are free, all before it works on any, so that the stages of the batch are those of
//! lanes that own their shards alone; then it gives them back, and goes on with the packets of the others. While other lanes
//! have all that are left, it spins for a moment and then yields the processor, which the lane that has them may need.
//!
//! Where packets enter shards in the order of tickets, a packet whose ticket is not due waits as one whose shard another lane has.
//! What was sent is in the lane's outbox when the shards are given back ([`Output::gather`](super::Output)): the next lane may send
//! on the same connection, through another queue, and sends that first.

use rheostat_base::sync::{hint, thread};
use rheostat_base::{DropReason, ShardId, Time};

use super::receivers::Reception;
use super::{Batch, HandoffPacket, Lane, Output};
use crate::service::{DeferredWork, Service};
use crate::shard_set::{Entry, ShardSet, Visit};

/// Tries in vain, one after the other, behind which the lane yields the processor between two tries. Each waits for twice as long as
/// the one before, all of them for some ten microseconds: as long as a lane has a shard that hands segments to the operating system.
const SPINS: u32 = 10;

/// What a lane keeps of packets whose joint shards other lanes have.
#[derive(Default)]
pub(super) struct JointState {
    pub(super) waiting: Batch,
    /// These shards, while a batch is looked through.
    elsewhere: Vec<ShardId>,
    /// Whether the packets of the batch have their tickets.
    has_drawn: bool,
    /// Does without the order of tickets, to show that somebody notices.
    #[cfg(test)]
    pub(super) is_sabotaged: bool,
}

/// A poll of a lane for which others may wait. If it panics, they do not wait any longer.
pub(super) struct AwaitedPoll<'a>(pub(super) &'a mut Lane);

impl Drop for AwaitedPoll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let queues = self.0.reception.receivers.iter_mut();
            queues.filter_map(|queue| queue.as_shared()).for_each(|queue| _ = queue.release());
            self.0.shards.break_off();
        }
    }
}

/// A lane's shards, with the service that works on them. A lane that owns its shards alone enters each whenever it wants to.
pub(super) struct Visitor<'a> {
    pub(super) shards: &'a mut ShardSet,
    pub(super) service: &'a mut dyn Service,
    pub(super) out: &'a mut Output,
}

impl JointState {
    /// Has the batch processed: first the packets whose shards are free, then, once these are given back, those of the others.
    #[inline]
    pub(super) fn process(&mut self, batch: &mut Batch, by: &mut Visitor<'_>) {
        let mut misses = 0;
        loop {
            if by.shards.is_joint() {
                self.enter_shards(batch, by);
            }
            if batch.is_empty() {
                by.send_for_blocking();
                pause(misses);
                misses += 1;
            } else {
                misses = 0;
                by.visit(|service, shards, out| service.process(batch, shards, out));
                debug_assert!(batch.is_empty(), "a service leaves no packet behind");
            }
            if self.waiting.is_empty() {
                return;
            }
            std::mem::swap(batch, &mut self.waiting);
        }
    }

    /// The packets received have been told apart: gives them their tickets, and lets other lanes receive.
    pub(super) fn end_reception(
        &mut self,
        batch: &mut Batch,
        (shards, out): (&ShardSet, &Output),
        reception: &mut Reception,
        device: usize,
    ) {
        if shards.has_tickets() {
            draw_tickets(batch, shards);
            self.has_drawn = !batch.is_empty();
        }
        let queue = &mut reception.receivers[device];
        let left = queue.as_shared().map_or(0, |queue| queue.release());
        // Segments that were gathered do not wait for a long request though all other lanes sleep.
        let wanted = left.max(out.has_gathered().into());
        if wanted > 0 {
            reception.wake_others(out.lane(), wanted);
        }
    }

    /// Takes the shards of the batch that are free. Packets of others are moved to those that wait, so that packets of a shard stay
    /// in their order.
    #[inline(never)]
    fn enter_shards(&mut self, batch: &mut Batch, by: &mut Visitor<'_>) {
        let Visitor { shards, out, .. } = by;
        let has_tickets = shards.has_tickets();
        if has_tickets && !std::mem::take(&mut self.has_drawn) {
            draw_tickets(batch, shards);
        }
        #[cfg(test)]
        let has_tickets = has_tickets && !self.is_sabotaged;
        let JointState { waiting, elsewhere, .. } = self;
        debug_assert!(waiting.is_empty(), "they are the batch");
        batch.iter().for_each(|info| shards.prefetch_entry(info.shard));
        elsewhere.clear();
        let mut is_poisoned = false;
        batch.part(waiting, |info| {
            if elsewhere.contains(&info.shard) {
                return false;
            }
            let entry = match has_tickets {
                true => shards.enter_in_order(info.shard, info.ticket()),
                false => shards.enter(info.shard),
            };
            is_poisoned |= entry == Entry::Poisoned;
            if entry == Entry::Entered {
                return true;
            }
            elsewhere.push(info.shard);
            out.counters().shard_retries.increment();
            false
        });
        if is_poisoned {
            // A run ends in which this happens.
            let others = waiting.drain().map(|(packet, &info)| HandoffPacket { packet, info });
            for placed in others.collect::<Vec<_>>() {
                match shards.is_given_up(placed.info.shard, placed.info.ticket()) {
                    true => out.drop(placed.packet, DropReason::HandlerPanic),
                    false => waiting.push(placed),
                }
            }
        }
        // Those that wait have their tickets.
        self.has_drawn = !self.waiting.is_empty();
        out.counters().shard_visits.add(shards.held() as u64);
    }
}

impl Visitor<'_> {
    /// Has the service work on the shards that are here, and gives them back. Segments that it sends are gathered before.
    #[inline]
    fn visit(&mut self, work: impl FnOnce(&mut dyn Service, &mut ShardSet, &mut Output)) {
        let mut shards = Visit(&mut *self.shards);
        work(&mut *self.service, &mut shards, &mut *self.out);
        if let Some(unsent) = self.out.gather() {
            shards.mark_unsent(unsent);
        }
    }

    /// Sends what another lane has to send of a shard that this one is about to enter. The lane has no shard now.
    pub(super) fn send_for_blocking(&mut self) {
        if let Some(claimant) = self.shards.take_blocked_by() {
            self.out.send_for(claimant);
        }
    }

    /// Does what the service has put off, while other lanes may have the shards: its outcomes enter their shards as soon as those are
    /// free.
    pub(super) fn do_work(&mut self, reception: &Reception) {
        let mut misses = 0;
        loop {
            let Some(work) = self.service.deferred() else { return };
            if work.expects_long_work() {
                // Nothing tells a lane that sleeps of packets in the hardware queue of this one.
                reception.wake_others(self.out.lane(), 1);
            }
            let works = work.work(self.out);
            // Asked before anything is settled: what is settled may put more work off.
            if !works && work.unsettled().is_none() {
                return;
            }
            self.settle(None);
            misses = if works { 0 } else { misses + 1 };
            if !works && self.unsettled().is_some() {
                pause(misses);
            }
        }
    }

    /// Has outcomes of deferred work, which a pool has brought by a time or which the lane has done, enter their shards, each as soon as
    /// that is free. While another lane has it, the lane tries for a moment, and then goes on with other work: the outcomes that are
    /// left are looked at again later. Returns how many visits of shards there were.
    pub(super) fn settle(&mut self, pooled_by: Option<Time>) -> usize {
        let (mut visits, mut tries) = (0, 0);
        while let Some(entry) = self.enter_next(visits) {
            match entry {
                Entry::Entered => {
                    if let Some(now) = pooled_by {
                        // The last packet may have come long before.
                        self.out.set_now(now);
                        self.out.counters().shard_visits.add(self.shards.held() as u64);
                    }
                    self.visit(|service, shards, out| {
                        on_work(service, |work| work.settle(shards, out));
                    });
                }
                Entry::Elsewhere => {
                    self.out.counters().shard_retries.increment();
                    self.send_for_blocking();
                    if tries == SPINS {
                        break;
                    }
                    pause(tries);
                    tries += 1;
                    continue;
                }
                Entry::Poisoned => on_work(self.service, |work| work.abandon()),
            }
            visits += 1;
            tries = 0;
        }
        visits
    }

    /// Enters the shard that the next outcome is for, if there is an outcome. Shards that the lane owns alone are here, all at once:
    /// one visit settles all outcomes.
    fn enter_next(&mut self, visits: usize) -> Option<Entry> {
        match self.shards.is_joint() {
            true => self.unsettled().map(|id| self.shards.enter(id)),
            false => (visits == 0).then_some(Entry::Entered),
        }
    }

    /// The shard that the next outcome of deferred work is for.
    fn unsettled(&mut self) -> Option<ShardId> {
        self.service.deferred()?.unsettled()
    }
}

/// Draws a ticket for each packet of the batch, in order.
fn draw_tickets(batch: &mut Batch, shards: &ShardSet) {
    for info in batch.parts().1 {
        info.set_ticket(shards.draw(info.shard));
    }
}

fn on_work(service: &mut dyn Service, act: impl FnOnce(&mut dyn DeferredWork)) {
    if let Some(work) = service.deferred() {
        act(work);
    }
}

/// Waits for a moment before the next try.
fn pause(misses: u32) {
    match misses < SPINS {
        true => (0..1 << misses).for_each(|_| hint::spin_loop()),
        false => thread::yield_now(),
    }
}

#[cfg(all(test, shuttle))]
mod exploration;
#[cfg(all(test, not(loom)))]
mod fixture;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
