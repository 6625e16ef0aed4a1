//! What a transaction does beside its objects, so that it can be undone: to packets, to flows, to what is
//! to be sent and counted.

use std::fmt;

use rheostat_base::ShardId;
use rheostat_packet::Mbuf;
use rheostat_run::{LaneCounters, Output, PacketInfo, ShardSet};
use rheostat_state::{FlowId, FlowMarks, FlowMut};

use super::journal::Journal;
use crate::chain::Chain;
use crate::cx::{Outbox, OutboxLen};
use crate::packet::Packet;
use crate::packet_log::PacketLog;

/// What one transaction has done to the packets and the flows of a lane, oldest first.
pub struct Undo<S> {
    steps: Vec<Step<S>>,
    /// What packets were.
    packets: PacketLog,
    /// What had been originated before.
    made: OutboxLen,
    /// What is to be done once the transaction is committed.
    after: After,
}

/// What can wait until the transaction is committed, and so need not be undone.
#[derive(Debug, Default)]
struct After {
    /// Flows that may be evicted from now on, or may no longer. Their places among those that may would
    /// not come back.
    evictable: Vec<(ShardId, FlowId, bool)>,
    /// Packets that came late, and flows that were made: to be counted.
    late: u64,
    created: u64,
}

enum Step<S> {
    /// A handler was about to see a flow.
    Seen { shard: ShardId, flow: FlowId, marks: FlowMarks, states: S },
    /// A flow entered the table.
    Created { shard: ShardId, flow: FlowId },
}

impl<S> Default for Undo<S> {
    fn default() -> Undo<S> {
        Undo {
            steps: Vec::new(),
            packets: PacketLog::default(),
            made: OutboxLen::default(),
            after: After::default(),
        }
    }
}

impl<S> fmt::Debug for Undo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undo").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl<S: Send> Journal for Undo<S> {
    type Saved = S;
    type Of<T: Send> = Undo<T>;
    type And<J: Journal, T: Send> = Undo<T>;

    fn start(&mut self, made: OutboxLen) {
        debug_assert!(self.steps.is_empty(), "the last transaction was neither kept nor undone");
        self.made = made;
    }

    #[inline]
    fn turn_to(&mut self, packet: usize) {
        self.packets.turn_to(packet);
    }

    #[inline]
    fn seen<C>(&mut self, chain: &C, shard: ShardId, flow: &mut FlowMut<'_>)
    where
        C: Chain<Journal = Self, Saved = S>,
    {
        let (id, marks) = (flow.id(), flow.marks());
        self.steps.push(Step::Seen { shard, flow: id, marks, states: chain.save(flow) });
    }

    fn created(&mut self, shard: ShardId, flow: FlowId, _: &LaneCounters) {
        self.steps.push(Step::Created { shard, flow });
        self.after.created += 1;
    }

    #[cold]
    fn late(&mut self, _: &LaneCounters) {
        self.after.late += 1;
    }

    #[inline]
    fn evictable(&mut self, shard: ShardId, flow: &mut FlowMut<'_>, evictable: bool) {
        self.after.evictable.push((shard, flow.id(), evictable));
    }

    #[inline]
    fn packet<'a>(&'a mut self, packet: &'a mut Mbuf, info: &'a PacketInfo) -> Packet<'a> {
        Packet::logged(packet, info, &mut self.packets)
    }

    /// What could wait is done and counted now.
    fn keep(&mut self, shards: &mut ShardSet, counters: &LaneCounters) {
        self.steps.clear();
        self.packets.clear();
        for (shard, flow, evictable) in self.after.evictable.drain(..) {
            let table = shards.get_mut(shard).map(|shard| &mut shard.table);
            if let Some(mut flow) = table.and_then(|table| table.flow(flow)) {
                flow.set_evictable(evictable);
            }
        }
        counters.reordered.add(std::mem::take(&mut self.after.late));
        counters.flows_created.add(std::mem::take(&mut self.after.created));
    }

    fn roll_back<C>(
        &mut self,
        chain: &C,
        packets: &mut [Mbuf],
        outbox: &mut Outbox,
        shards: &mut ShardSet,
        out: &mut Output,
    ) where
        C: Chain<Journal = Self, Saved = S>,
    {
        for step in self.steps.drain(..).rev() {
            match step {
                Step::Seen { shard, flow, marks, states } => {
                    let table = shards.get_mut(shard).map(|shard| &mut shard.table);
                    if let Some(mut flow) = table.and_then(|table| table.flow(flow)) {
                        chain.restore(&mut flow, states);
                        flow.set_marks(marks);
                    }
                }
                Step::Created { shard, flow } => {
                    if let Some(shard) = shards.get_mut(shard) {
                        shard.table.retract(flow);
                    }
                }
            }
        }
        self.packets.undo(packets);
        outbox.go_back(self.made, out.pool());
        self.after.evictable.clear();
        (self.after.late, self.after.created) = (0, 0);
    }
}
