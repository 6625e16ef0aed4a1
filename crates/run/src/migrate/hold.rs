//! Packets that wait for a shard to come.

use rheostat_base::{ShardId, Time};

use crate::lane::HandoffPacket;

/// A packet, and since when it waits.
pub(crate) type Held = (HandoffPacket, Time);

/// The hold queues of a lane, one per shard, each bounded.
#[derive(Debug)]
pub(crate) struct Hold {
    queues: Vec<Vec<Held>>,
    /// Packets per queue at most.
    capacity: usize,
    len: usize,
}

impl Hold {
    /// Empty queues for `shards` shards, each for `capacity` packets.
    pub(crate) fn new(shards: usize, capacity: usize) -> Hold {
        Hold { queues: (0..shards).map(|_| Vec::new()).collect(), capacity, len: 0 }
    }

    /// Packets in all queues.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a packet, which waits for `shard` since `now`; gives it back when the queue is full.
    pub(crate) fn push(
        &mut self,
        shard: ShardId,
        placed: HandoffPacket,
        now: Time,
    ) -> Option<HandoffPacket> {
        let queue = &mut self.queues[shard.index()];
        if queue.len() >= self.capacity {
            return Some(placed);
        }
        queue.push((placed, now));
        self.len += 1;
        None
    }

    /// The packets that wait for a shard, in order.
    pub(crate) fn waiting_for(
        &mut self,
        shard: ShardId,
    ) -> impl Iterator<Item = &mut HandoffPacket> {
        self.queues[shard.index()].iter_mut().map(|(placed, _)| placed)
    }

    /// Takes out, in order, the packets that wait for a shard.
    pub(crate) fn take(&mut self, shard: ShardId) -> Vec<Held> {
        let packets = std::mem::take(&mut self.queues[shard.index()]);
        self.len -= packets.len();
        packets
    }

    /// Gives the memory of an emptied queue back, for the next time.
    pub(crate) fn recycle(&mut self, shard: ShardId, packets: Vec<Held>) {
        debug_assert!(packets.is_empty(), "packets on hold are not thrown away");
        self.queues[shard.index()] = packets;
    }
}
