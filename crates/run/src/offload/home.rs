//! What a home knows of its flows that are away. A state machine over numbers: packets and messages go in, and what the lane is to
//! do comes out.

use rheostat_base::{LaneId, ShardId};

use super::FlowNumber;

/// Where the packets of a flow go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No flow has the number.
    Free,
    /// To the offloading lane.
    Away,
    /// Nowhere until the flow is home: a message that recalls it is sent, or about to be.
    Returning,
}

#[derive(Debug)]
struct Flow<P> {
    phase: Phase,
    shard: ShardId,
    /// Packets that came back, oldest first.
    refused: Vec<P>,
    /// Packets that came since the flow was recalled, oldest first.
    held: Vec<P>,
}

/// The flows of one home that are away, and those that are about to come back.
#[derive(Debug)]
pub(crate) struct Home<P> {
    lane: LaneId,
    flows: Vec<Flow<P>>,
    free: Vec<usize>,
    /// Per shard, how many of its flows are away.
    away_of: Vec<u16>,
    /// Flows to be recalled.
    recalls: Vec<FlowNumber>,
    /// Flows that are on their way home.
    returning: usize,
    /// Packets held of each flow at most.
    hold_capacity: usize,
    /// Packets refused or held.
    waiting: usize,
}

impl<P> Home<P> {
    /// For lane `lane` of a run of `shards` shards, of which `flows` flows may be away at a time, and hold so many packets each
    /// when they come back.
    pub(crate) fn new(lane: LaneId, shards: usize, flows: usize, hold_capacity: usize) -> Home<P> {
        let flow = |_| Flow {
            phase: Phase::Free,
            shard: ShardId(0),
            refused: Vec::new(),
            held: Vec::new(),
        };
        Home {
            lane,
            flows: (0..flows).map(flow).collect(),
            free: (0..flows).rev().collect(),
            away_of: vec![0; shards],
            recalls: Vec::new(),
            returning: 0,
            hold_capacity,
            waiting: 0,
        }
    }

    /// A number for a flow of `shard` that is to leave now; `None` when as many are away as may be.
    pub(crate) fn begin(&mut self, shard: ShardId) -> Option<FlowNumber> {
        let place = self.free.pop()?;
        let flow = &mut self.flows[place];
        (flow.phase, flow.shard) = (Phase::Away, shard);
        self.away_of[shard.index()] += 1;
        Some(FlowNumber::new(self.lane, place))
    }

    /// The flow with this number stays after all: it was not sent.
    pub(crate) fn cancel(&mut self, number: FlowNumber) {
        let packets = self.end(number);
        debug_assert!(packets.is_empty(), "{number} had packets before it left");
    }

    /// Holds a packet of a flow that is on its way home; gives it back when too many are held.
    pub(crate) fn hold(&mut self, number: FlowNumber, packet: P) -> Result<(), P> {
        let flow = &mut self.flows[number.place()];
        debug_assert_eq!(flow.phase, Phase::Returning, "{number} is not on its way home");
        if flow.held.len() == self.hold_capacity {
            return Err(packet);
        }
        flow.held.push(packet);
        self.waiting += 1;
        Ok(())
    }

    /// Whether any flow is on its way home.
    #[inline]
    pub(crate) fn has_returning(&self) -> bool {
        self.returning > 0
    }

    /// Whether the flow is away, and not on its way home: its packets are sent to the offloading lane.
    #[inline]
    pub(crate) fn is_away(&self, number: FlowNumber) -> bool {
        self.flows[number.place()].phase == Phase::Away
    }

    /// Takes a flow home. Nothing if it is on its way already.
    pub(crate) fn recall(&mut self, number: FlowNumber) {
        let flow = &mut self.flows[number.place()];
        if flow.phase == Phase::Away {
            flow.phase = Phase::Returning;
            self.returning += 1;
            self.recalls.push(number);
        }
    }

    /// Takes all flows of a shard home.
    pub(crate) fn recall_shard(&mut self, shard: ShardId) {
        self.recall_where(|of| of == shard);
    }

    /// Takes all flows home.
    pub(crate) fn recall_all(&mut self) {
        self.recall_where(|_| true);
    }

    fn recall_where(&mut self, is_meant: impl Fn(ShardId) -> bool) {
        for place in 0..self.flows.len() {
            if is_meant(self.flows[place].shard) {
                self.recall(FlowNumber::new(self.lane, place));
            }
        }
    }

    /// Whether there is such a flow ([`Home::next_recall`]).
    #[inline]
    pub(crate) fn has_recalls(&self) -> bool {
        !self.recalls.is_empty()
    }

    /// A flow to which a message is to be sent that recalls it, behind all packets that were routed away.
    pub(crate) fn next_recall(&mut self) -> Option<FlowNumber> {
        self.recalls.pop()
    }

    /// A packet came back, because the offloading lane could not process it: the flow has to follow.
    pub(crate) fn take_refused(&mut self, number: FlowNumber, packet: P) {
        self.recall(number);
        self.flows[number.place()].refused.push(packet);
        self.waiting += 1;
    }

    /// The shard of a flow that is away.
    pub(crate) fn shard_of(&self, number: FlowNumber) -> ShardId {
        self.flows[number.place()].shard
    }

    /// A flow is home again: its packets that were refused or held, in order.
    pub(crate) fn end(&mut self, number: FlowNumber) -> Vec<P> {
        let flow = &mut self.flows[number.place()];
        debug_assert_ne!(flow.phase, Phase::Free, "{number} comes home twice");
        self.returning -= usize::from(flow.phase == Phase::Returning);
        flow.phase = Phase::Free;
        self.away_of[flow.shard.index()] -= 1;
        self.free.push(number.place());
        let mut packets = std::mem::take(&mut flow.refused);
        packets.append(&mut flow.held);
        self.waiting -= packets.len();
        packets
    }

    /// How many flows are away, or on their way home.
    pub(crate) fn away(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// How many flows of a shard are away, or on their way home.
    pub(crate) fn away_of(&self, shard: ShardId) -> usize {
        self.away_of[shard.index()].into()
    }

    /// Packets that wait for their flow to come home.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const S: ShardId = ShardId(0);

    #[test]
    fn packets_wait_from_the_recall_on_behind_those_refused() {
        let mut home = Home::new(LaneId(3), 2, 1, 2);
        let flow = home.begin(S).unwrap();
        assert_eq!((home.begin(S), flow.home()), (None, LaneId(3)));
        assert!(home.is_away(flow) && !home.has_returning());
        home.recall(flow);
        assert!(!home.is_away(flow) && home.has_returning());
        assert_eq!(home.hold(flow, 'd'), Ok(()));
        home.take_refused(flow, 'b');
        assert_eq!(home.hold(flow, 'e'), Ok(()));
        assert_eq!(home.hold(flow, 'f'), Err('f'), "no more than two");
        home.take_refused(flow, 'c');
        assert_eq!((home.next_recall(), home.next_recall()), (Some(flow), None), "only once");
        assert_eq!((home.waiting(), home.away_of(S)), (4, 1));
        assert_eq!(home.end(flow), ['b', 'c', 'd', 'e']);
        assert_eq!((home.waiting(), home.away(), home.away_of(S)), (0, 0, 0));
        assert!(!home.has_returning());
    }

    #[test]
    fn a_refused_packet_recalls_its_flow() {
        let mut home = Home::new(LaneId(0), 2, 4, 2);
        let (one, other) = (home.begin(S).unwrap(), home.begin(ShardId(1)).unwrap());
        home.take_refused(one, 'a');
        assert!(!home.is_away(one) && home.is_away(other), "others go on");
        assert_eq!(home.next_recall(), Some(one));
        home.recall_shard(S);
        assert_eq!(home.next_recall(), None);
        home.recall_all();
        assert_eq!(home.next_recall(), Some(other));
    }
}
