//! The lane's part in shards that it owns together with the other claimants of its receive queue.
//!
//! The lane takes the shards of a batch that are free, all before it works on any, so that the stages of the batch are those of
//! lanes that own their shards alone; then it gives them back, and goes on with the packets of the others. While other lanes
//! have all that are left, it spins for a moment and then yields the processor, which the lane that has them may need.
//!
//! Where packets enter shards in the order of tickets, a packet whose ticket is not due waits as one whose shard another lane has.
//! What was sent is in the lane's outbox when the shards are given back ([`Output::gather`](super::Output)): the next lane may send
//! on the same connection, through another queue, and sends that first.

use std::ops::{Deref, DerefMut};

use rheostat_base::sync::{hint, thread};
use rheostat_base::{DropReason, LaneId, ShardId};

use super::{Batch, HandoffPacket, Lane, PacketInfo, PacketKind};
use crate::shard_set::{Entry, ShardSet};

/// Tries in vain, one after the other, behind which the lane yields the processor between two tries. Each waits for twice as long as
/// the one before, all of them for some ten microseconds: as long as a lane has a shard that hands segments to the operating system.
const SPINS: u32 = 10;

/// Shards of a lane while its service works on them. Whatever ends the work, a panic too, the joint ones that are here are left.
pub(super) struct Visit<'a>(pub(super) &'a mut ShardSet);

impl Deref for Visit<'_> {
    type Target = ShardSet;

    fn deref(&self) -> &ShardSet {
        self.0
    }
}

impl DerefMut for Visit<'_> {
    fn deref_mut(&mut self) -> &mut ShardSet {
        self.0
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

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

impl Lane {
    /// Has the batch processed: first the packets whose shards are free, then, once these are given back, those of the others.
    #[inline(never)]
    pub(super) fn process_jointly(&mut self) {
        let mut misses = 0;
        let has_tickets = self.shards.has_tickets();
        if has_tickets && !std::mem::take(&mut self.joint.has_drawn) {
            self.draw_tickets();
        }
        while !self.batch.is_empty() {
            self.enter_shards(has_tickets);
            if self.batch.is_empty() {
                self.send_for_blocking();
                pause(misses);
                misses += 1;
            } else {
                misses = 0;
                self.counters.shard_visits.add(self.shards.held() as u64);
                let mut shards = Visit(&mut self.shards);
                self.service.process(&mut self.batch, &mut shards, &mut self.out);
                if let Some(unsent) = self.out.gather() {
                    shards.mark_unsent(unsent);
                }
                debug_assert!(self.batch.is_empty(), "a service leaves no packet behind");
            }
            std::mem::swap(&mut self.batch, &mut self.joint.waiting);
        }
    }

    /// Sends what another lane has to send of a shard that this one is about to enter. The lane has no shard now.
    fn send_for_blocking(&mut self) {
        if let Some(claimant) = self.shards.take_blocked_by() {
            self.out.send_for(claimant);
        }
    }

    /// Sends what lanes that are at long work have to send.
    pub(super) fn send_for_others(&mut self) {
        self.send_for_blocking();
        self.out.send_for_late();
    }

    /// Draws a ticket for each packet of the batch, in order.
    fn draw_tickets(&mut self) {
        let Lane { batch, shards, .. } = self;
        for info in batch.parts().1 {
            info.set_ticket(shards.draw(info.shard));
        }
    }

    /// The packets received have been told apart: gives them their tickets, and lets other lanes receive.
    pub(super) fn end_reception(&mut self, device: usize) {
        if self.shards.has_tickets() {
            self.draw_tickets();
            self.joint.has_drawn = !self.batch.is_empty();
        }
        let queue = &mut self.reception.receivers[device];
        let left = queue.as_shared().map_or(0, |queue| queue.release());
        // Segments that were gathered do not wait for a long request though all other lanes sleep.
        let wanted = left.max(self.out.has_gathered().into());
        if wanted > 0 {
            self.reception.wake_others(self.id, wanted);
        }
    }

    /// Takes the shards of the batch that are free. Packets of others are moved to those that wait, so that packets of a shard stay
    /// in their order.
    fn enter_shards(&mut self, has_tickets: bool) {
        #[cfg(test)]
        let has_tickets = has_tickets && !self.joint.is_sabotaged;
        let Lane {
            batch, joint: JointState { waiting, elsewhere, .. }, shards, counters, out, ..
        } = self;
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
            counters.shard_retries.increment();
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
    }

    /// Does what the service has put off, while other lanes may have the shards: what comes of it enters its shard as soon as that is
    /// free. While it is not, the lane tries for a moment, and then goes on with other work.
    #[inline(never)]
    pub(super) fn do_work_jointly(&mut self) {
        let mut misses = 0;
        loop {
            let Some(work) = self.service.deferred() else { return };
            if work.expects_long_work() {
                // Nothing tells a lane that sleeps of packets in the hardware queue of this one.
                self.reception.wake_others(self.id, 1);
            }
            let works = work.work(&mut self.out);
            // Asked before anything is settled: what is settled may put more work off.
            if !works && work.unsettled().is_none() {
                return;
            }
            let mut tries = 0;
            while !self.settle_jointly() && tries < SPINS {
                pause(tries);
                tries += 1;
            }
            misses = if works { 0 } else { misses + 1 };
            if !works && self.unsettled().is_some() {
                pause(misses);
            }
        }
    }

    /// Goes on with what a pool has done: each outcome enters its shard as soon as that is free. While another lane has it, the lane
    /// tries for a moment, and then goes on with other work: the outcomes that are left are looked at in the next poll. Returns how
    /// many visits of shards there were.
    #[inline(never)]
    pub(super) fn complete_jointly(&mut self) -> usize {
        let (mut visits, mut tries) = (0, 0);
        while let Some(id) = self.unsettled() {
            match self.shards.enter(id) {
                Entry::Entered => {
                    self.counters.shard_visits.increment();
                    self.out.set_now(self.latest);
                    self.settle();
                }
                Entry::Elsewhere => {
                    self.counters.shard_retries.increment();
                    if tries == SPINS {
                        break;
                    }
                    self.send_for_blocking();
                    pause(tries);
                    tries += 1;
                    continue;
                }
                Entry::Poisoned => self.abandon(),
            }
            visits += 1;
            tries = 0;
        }
        visits
    }

    /// Takes what has come of work into its shard, if that is free. Returns whether nothing is left.
    fn settle_jointly(&mut self) -> bool {
        while let Some(id) = self.unsettled() {
            match self.shards.enter(id) {
                Entry::Entered => {
                    self.settle();
                }
                Entry::Elsewhere => {
                    self.counters.shard_retries.increment();
                    self.send_for_blocking();
                    return false;
                }
                Entry::Poisoned => self.abandon(),
            }
        }
        true
    }

    /// The shard that the next outcome of deferred work is for.
    fn unsettled(&mut self) -> Option<ShardId> {
        self.service.deferred()?.unsettled()
    }

    /// Takes outcomes into the shards that the lane has entered, and gives these back.
    fn settle(&mut self) {
        let mut shards = Visit(&mut self.shards);
        if let Some(work) = self.service.deferred() {
            work.settle(&mut shards, &mut self.out);
        }
        if let Some(unsent) = self.out.gather() {
            shards.mark_unsent(unsent);
        }
    }

    fn abandon(&mut self) {
        if let Some(work) = self.service.deferred() {
            work.abandon();
        }
    }

    /// Has the service do what timers ask for.
    pub(super) fn tick(&mut self) {
        let mut shards = Visit(&mut self.shards);
        self.service.tick(&mut shards, &mut self.out, self.latest);
    }

    /// Notes how many flows were in the joint shards at once, if this lane does so for all claimants.
    #[inline]
    pub(super) fn note_joint_flows(&self) {
        if let Some(peak) = self.shards.flows_peak() {
            self.counters.flows_peak.set(peak);
        }
    }

    /// Where a fragment meets the others of its datagram, if that is another claimant of this lane's queue.
    #[inline]
    pub(super) fn home_elsewhere(&self, info: &PacketInfo) -> Option<LaneId> {
        if info.kind() != PacketKind::Fragment {
            return None;
        }
        self.ownership.home(info.shard).filter(|home| *home != self.id)
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
