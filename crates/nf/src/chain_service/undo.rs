//! What a transaction does beside its objects, so that it can be undone: to packets, to flows, to what is
//! to be sent and counted.

use rheostat_base::ShardId;
use rheostat_packet::Mbuf;
use rheostat_run::LaneState;
use rheostat_state::{FlowId, FlowMarks};

use crate::chain::Chain;
use crate::cx::{Made, Originated};
use crate::packet_log::PacketLog;

/// What one transaction has done to the packets and the flows of a lane, oldest first.
pub(super) struct Undo<S> {
    steps: Vec<Step<S>>,
    /// What packets were.
    pub(super) packets: PacketLog,
    /// What had been originated before.
    made: Made,
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
            made: Made::default(),
            after: After::default(),
        }
    }
}

impl<S> Undo<S> {
    /// A transaction begins: what has been originated so far stays.
    pub(super) fn start(&mut self, made: Made) {
        debug_assert!(self.steps.is_empty(), "the last transaction was neither kept nor undone");
        self.made = made;
    }

    /// A handler is about to see a flow, whose functions have these states.
    #[inline]
    pub(super) fn seen(&mut self, shard: ShardId, flow: FlowId, marks: FlowMarks, states: S) {
        self.steps.push(Step::Seen { shard, flow, marks, states });
    }

    /// A flow has entered the table.
    pub(super) fn created(&mut self, shard: ShardId, flow: FlowId) {
        self.steps.push(Step::Created { shard, flow });
        self.after.created += 1;
    }

    /// A packet came after a younger one of its flow.
    #[cold]
    pub(super) fn late(&mut self) {
        self.after.late += 1;
    }

    /// The flow may be evicted from now on, or may no longer.
    #[inline]
    pub(super) fn evictable(&mut self, shard: ShardId, flow: FlowId, evictable: bool) {
        self.after.evictable.push((shard, flow, evictable));
    }

    /// The transaction is committed: everything stays, and is counted.
    pub(super) fn keep<L>(&mut self, lane: &mut LaneState<'_, L>) {
        self.steps.clear();
        self.packets.clear();
        for (shard, flow, evictable) in self.after.evictable.drain(..) {
            let table = lane.shards.get_mut(shard).map(|shard| &mut shard.table);
            if let Some(mut flow) = table.and_then(|table| table.flow(flow)) {
                flow.set_evictable(evictable);
            }
        }
        lane.counters.reordered.add(std::mem::take(&mut self.after.late));
        lane.counters.flows_created.add(std::mem::take(&mut self.after.created));
    }

    /// The transaction is not committed: everything becomes what it was.
    pub(super) fn roll_back<C: Chain<Saved = S>>(
        &mut self,
        chain: &C,
        packets: &mut [Mbuf],
        originated: &mut Originated,
        lane: &mut LaneState<'_, C::Local>,
    ) {
        for step in self.steps.drain(..).rev() {
            match step {
                Step::Seen { shard, flow, marks, states } => {
                    let table = lane.shards.get_mut(shard).map(|shard| &mut shard.table);
                    if let Some(mut flow) = table.and_then(|table| table.flow(flow)) {
                        chain.restore(&mut flow, states);
                        flow.set_marks(marks);
                    }
                }
                Step::Created { shard, flow } => {
                    if let Some(shard) = lane.shards.get_mut(shard) {
                        shard.table.retract(flow);
                    }
                }
            }
        }
        self.packets.undo(packets);
        originated.go_back(self.made, lane.pool);
        self.after.evictable.clear();
        (self.after.late, self.after.created) = (0, 0);
    }
}
