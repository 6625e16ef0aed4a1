//! The lane's part in shards that it owns together with the other claimants of its receive queue.
//!
//! The packets of a batch are processed shard by shard, those of one shard in their order. The lane takes the shards that are
//! free first; while others have all that are left, it spins for a moment and then yields the processor, which the lane that
//! has the shard may need.

use std::ops::{Deref, DerefMut};

use rheostat_base::sync::{hint, thread};
use rheostat_base::{DropReason, LaneId};

use super::{HandoffPacket, Lane, PacketInfo, PacketKind};
use crate::shard_set::{Entry, ShardSet};

/// Tries in vain, one after the other, behind which the lane yields the processor between two tries.
const SPINS: u32 = 6;

/// Shards of a lane while its service works on them. Whatever ends the work, a panic too, the joint one that is here is left.
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

impl Lane {
    /// Has the batch processed shard by shard.
    #[inline(never)]
    pub(super) fn process_jointly(&mut self) {
        let mut packets = std::mem::take(&mut self.by_shard);
        let drained = self.batch.drain();
        packets.extend(drained.map(|(packet, &info)| HandoffPacket { packet, info }));
        packets.make_contiguous().sort_by_key(|placed| placed.info.shard);
        let mut misses = 0;
        while let Some(first) = packets.front() {
            let shard = first.info.shard;
            let count = packets.iter().take_while(|placed| placed.info.shard == shard).count();
            match self.shards.enter(shard) {
                Entry::Entered => {
                    misses = 0;
                    self.process_visiting(packets.drain(..count));
                }
                Entry::Elsewhere => {
                    self.counters.shard_retries.increment();
                    packets.rotate_left(count);
                    pause(misses);
                    misses += 1;
                }
                Entry::Poisoned => {
                    for HandoffPacket { packet, .. } in packets.drain(..count) {
                        self.out.drop(packet, DropReason::HandlerPanic);
                    }
                }
            }
        }
        self.by_shard = packets;
    }

    /// Has packets of the shard processed that is here, and leaves the shard.
    fn process_visiting(&mut self, packets: impl Iterator<Item = HandoffPacket>) {
        self.counters.shard_visits.increment();
        packets.for_each(|placed| self.batch.push(placed));
        let mut shards = Visit(&mut self.shards);
        self.service.process(&mut self.batch, &mut shards, &mut self.out);
        debug_assert!(self.batch.is_empty(), "a service leaves no packet behind");
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
