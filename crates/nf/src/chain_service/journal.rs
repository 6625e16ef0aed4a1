//! Changes that a chain makes to flows, packets and counters while it is executed: where it is executed in transactions, they are
//! kept until these are committed, and can be undone; otherwise each is made at once.

use std::fmt;

use rheostat_base::ShardId;
use rheostat_packet::Mbuf;
use rheostat_run::{LaneCounters, Output, PacketInfo, ShardSet};
use rheostat_state::{FlowId, FlowMarks, FlowMut};

use crate::chain::Chain;
use crate::cx::{Outbox, OutboxMark};
use crate::packet::Packet;
use crate::packet_log::PacketLog;

/// The changes of one transaction of a lane, oldest first; empty for a chain without transactions.
pub(super) struct Journal<C: Chain> {
    steps: Vec<Step<C::Saved>>,
    /// What packets were.
    packets: PacketLog,
    /// What had been originated before.
    made: OutboxMark,
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

impl<C: Chain> Default for Journal<C> {
    fn default() -> Journal<C> {
        Journal {
            steps: Vec::new(),
            packets: PacketLog::default(),
            made: OutboxMark::default(),
            after: After::default(),
        }
    }
}

impl<C: Chain> fmt::Debug for Journal<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl<C: Chain> Journal<C> {
    /// A transaction begins: what has been originated so far stays.
    pub(super) fn start(&mut self, made: OutboxMark) {
        debug_assert!(self.steps.is_empty(), "the last transaction was neither kept nor undone");
        self.made = made;
    }

    /// The changes from now on are to the packet with this number.
    #[inline]
    pub(super) fn turn_to(&mut self, packet: usize) {
        self.packets.turn_to(packet);
    }

    /// A handler is about to see a flow of this shard.
    #[inline]
    pub(super) fn seen(&mut self, chain: &C, shard: ShardId, flow: &mut FlowMut<'_>) {
        if C::SHARED {
            let (id, marks) = (flow.id(), flow.marks());
            self.steps.push(Step::Seen { shard, flow: id, marks, states: chain.save(flow) });
        }
    }

    /// A flow has entered the table of a shard.
    #[inline]
    pub(super) fn created(&mut self, shard: ShardId, flow: FlowId, counters: &LaneCounters) {
        match C::SHARED {
            true => {
                self.steps.push(Step::Created { shard, flow });
                self.after.created += 1;
            }
            false => counters.flows_created.increment(),
        }
    }

    /// A packet came after a younger one of its flow.
    #[inline]
    pub(super) fn late(&mut self, counters: &LaneCounters) {
        match C::SHARED {
            true => self.after.late += 1,
            false => counters.reordered.increment(),
        }
    }

    /// The flow may be evicted from now on, or may no longer.
    #[inline]
    pub(super) fn evictable(&mut self, shard: ShardId, flow: &mut FlowMut<'_>, evictable: bool) {
        match C::SHARED {
            true => self.after.evictable.push((shard, flow.id(), evictable)),
            false => flow.set_evictable(evictable),
        }
    }

    /// A packet for handlers to change.
    #[inline(always)]
    pub(super) fn packet<'a>(
        &'a mut self,
        packet: &'a mut Mbuf,
        info: &'a PacketInfo,
    ) -> Packet<'a> {
        match C::SHARED {
            true => Packet::logged(packet, info, &mut self.packets),
            false => Packet::new(packet, info),
        }
    }

    /// The transaction is committed: what could wait is done and counted now.
    pub(super) fn keep(&mut self, shards: &mut ShardSet, counters: &LaneCounters) {
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

    /// Undoes the transaction.
    pub(super) fn roll_back(
        &mut self,
        chain: &C,
        packets: &mut [Mbuf],
        outbox: &mut Outbox,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
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
        outbox.go_back_to(self.made, out.pool());
        self.after.evictable.clear();
        (self.after.late, self.after.created) = (0, 0);
    }
}
