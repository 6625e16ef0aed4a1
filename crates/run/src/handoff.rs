//! What passes between lanes: packets to the lane that owns their shard, and, when shards move, the
//! shards. One link from each lane to each other, each with a single sender and a single receiver, so that
//! packets of one flow keep their order, also against the shard that they belong to.

pub(crate) mod link;

use rheostat_base::clock::Cycles;
use rheostat_base::{LaneId, ShardId};
use rheostat_state::{DetachedFlow, Shard};

use self::link::{Delivery, Receiver, Sender};
use crate::crew::LaneNotifier;
use crate::lane::{HandoffPacket, LinkPacket};
use crate::offload::FlowNumber;

/// What passes between lanes beside packets.
#[derive(Debug)]
pub(crate) enum Control {
    /// The sender hands packets of this shard to the receiver no more.
    Redirected(ShardId),
    /// The shard, which is the receiver's from now on.
    Shard {
        /// The shard.
        shard: Box<Shard>,
        /// How many shards the sender had redirected by then.
        ownership_epoch: u64,
    },
    /// The sender has given this shard away: what it handed to the receiver because its device placed it by
    /// the shard's buckets was sent before.
    Released {
        /// The shard.
        shard: ShardId,
        /// Its owner from now on.
        to: LaneId,
    },
    /// The sender has taken what the former owner of this shard, the receiver's from now on, had handed to it.
    Drained(ShardId),
    /// A flow of the sender's, whose packets follow.
    Offload {
        /// Its name while it is away.
        number: FlowNumber,
        /// The flow.
        flow: DetachedFlow,
    },
    /// The flow is to come home: all its packets were sent before.
    Recall(FlowNumber),
    /// A flow that was recalled, behind its packets that were refused.
    Return {
        /// Its name while it was away.
        number: FlowNumber,
        /// The flow.
        flow: DetachedFlow,
    },
}

/// Bytes of the rings between `lanes` lanes of a run with `shards` shards, each for at least `capacity` packets, where up to `flows`
/// flows of each lane are away at a time.
pub fn handoff_bytes(lanes: usize, capacity: usize, shards: usize, flows: usize) -> usize {
    // What a message holds is a pointer and a few numbers, whatever the service keeps.
    let link = capacity.next_power_of_two() * size_of::<LinkPacket>()
        + messages(shards, flows).next_power_of_two() * link::control_bytes::<Control>();
    lanes * lanes.saturating_sub(1) * link
}

/// How many messages there is room for in each direction between two lanes.
fn messages(shards: usize, flows: usize) -> usize {
    shards + 2 * flows
}

/// The ends of the links that one lane holds.
#[derive(Debug)]
pub struct Handoff {
    /// To every other lane; none to itself.
    outbound: Vec<Option<Outbound>>,
    /// From every other lane; none from itself.
    inbound: Vec<Option<Receiver<LinkPacket, Control>>>,
    /// One per lane; none before the workers are known.
    notifiers: Vec<LaneNotifier>,
    /// Flows of each lane that may be away at a time.
    flows: usize,
    /// Where the next round of taking starts, so that no sender is always last.
    start: usize,
}

#[derive(Debug)]
struct Outbound {
    link: Sender<LinkPacket, Control>,
    /// Packets of this poll, published together.
    staged: Vec<LinkPacket>,
}

impl Handoff {
    /// Connects `lanes` lanes of a run with `shards` shards, each pair by a ring for at least
    /// `capacity` packets each way.
    ///
    /// There is room for a message per shard. More are never under way between two lanes: moving a
    /// shard takes one message from any lane to any other at most, and a shard moves again only when
    /// all of them have arrived. Beside them, there is room for two messages per flow of up to `flows` of each lane that are away:
    /// it is sent and recalled before its number names another.
    pub fn mesh(lanes: usize, capacity: usize, shards: usize, flows: usize) -> Vec<Handoff> {
        let mut ends: Vec<Handoff> = (0..lanes)
            .map(|_| Handoff {
                outbound: Vec::new(),
                inbound: Vec::new(),
                notifiers: Vec::new(),
                flows,
                start: 0,
            })
            .collect();
        for from in 0..lanes {
            for to in 0..lanes {
                if from == to {
                    ends[from].outbound.push(None);
                    ends[to].inbound.push(None);
                } else {
                    let (link, receiver) = link::link(capacity, messages(shards, flows));
                    ends[from].outbound.push(Some(Outbound { link, staged: Vec::new() }));
                    ends[to].inbound.push(Some(receiver));
                }
            }
        }
        ends
    }

    /// Flows of each lane that may be away at a time.
    pub(crate) fn flows(&self) -> usize {
        self.flows
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.outbound.len()
    }

    /// Lets the lane wake workers for other lanes; `notifiers` has one per lane.
    pub(crate) fn wake_by(&mut self, notifiers: Vec<LaneNotifier>) {
        self.notifiers = notifiers;
    }

    /// Lays a packet aside for lane `to`; [`Handoff::publish`] sends it.
    ///
    /// # Panics
    /// When `to` is this lane: a packet that is home already is not handed off.
    pub fn stage(&mut self, to: LaneId, HandoffPacket { packet, info }: HandoffPacket) {
        let outbound = self.outbound[to.index()].as_mut();
        let staged = &mut outbound.expect("a packet is handed to another lane").staged;
        staged.push(LinkPacket::new(packet, &info));
    }

    /// Lays packets aside as [`Handoff::stage`] does, and leaves `packets` empty.
    pub(crate) fn stage_all(&mut self, to: LaneId, packets: &mut Vec<LinkPacket>) {
        let outbound = self.outbound[to.index()].as_mut();
        let staged = &mut outbound.expect("packets are handed to another lane").staged;
        if staged.is_empty() {
            std::mem::swap(staged, packets);
        } else {
            staged.append(packets);
        }
    }

    /// Notes on what was laid aside when it is sent.
    #[cold]
    pub(crate) fn note_published(&mut self, now: Cycles) {
        let staged = self.outbound.iter_mut().flatten().flat_map(|outbound| &mut outbound.staged);
        staged.for_each(|placed| placed.set_published(now));
    }

    /// Sends what was laid aside. Packets for which a ring has no room are passed to `refused`, oldest
    /// first. Returns how many were sent.
    pub fn publish(&mut self, mut refused: impl FnMut(HandoffPacket)) -> usize {
        let mut sent = 0;
        for (to, outbound) in self.outbound.iter_mut().enumerate() {
            let Some(Outbound { link, staged }) = outbound else { continue };
            if staged.is_empty() {
                continue;
            }
            let mut packets = staged.drain(..);
            sent += link.push_all(&mut packets);
            packets.for_each(|packet| refused(packet.unpack()));
            if let Some(notifier) = self.notifiers.get(to) {
                notifier.wake();
            }
        }
        sent
    }

    /// Sends a message to lane `to`, behind the packets published so far. Those laid aside come later,
    /// so there should be none.
    pub(crate) fn send_control(&mut self, to: LaneId, message: Control) {
        let outbound = self.outbound[to.index()].as_mut().expect("a message is for another lane");
        debug_assert!(outbound.staged.is_empty(), "a message overtakes no packet");
        outbound.link.send_control(message);
        if let Some(notifier) = self.notifiers.get(to.index()) {
            notifier.wake();
        }
    }

    /// Takes up to `limit` packets from each sender, and the messages between them, in order per sender.
    pub(crate) fn take(
        &mut self,
        limit: usize,
        mut f: impl FnMut(Delivery<HandoffPacket, Control>),
    ) {
        let lanes = self.inbound.len();
        self.start = (self.start + 1) % lanes.max(1);
        for step in 0..lanes {
            if let Some(link) = &mut self.inbound[(self.start + step) % lanes] {
                link.take(limit, |delivery| f(delivery.map(LinkPacket::unpack)));
            }
        }
    }

    /// Packets and messages waiting to be taken by this lane.
    pub fn waiting(&self) -> usize {
        self.inbound.iter().flatten().map(Receiver::waiting).sum()
    }
}
