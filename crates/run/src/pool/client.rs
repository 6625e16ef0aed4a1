//! Where a lane gives its tasks away and gets the replies, in order.

use rheostat_base::ShardId;

use super::channel::{Front, Lost, NotifierSlot};
use super::order::Order;
use crate::crew::LaneNotifier;
use crate::lane::HandoffPacket;

/// A packet that a pool has worked for.
#[derive(Debug)]
pub struct Reply<R> {
    /// The packet.
    pub placed: HandoffPacket,
    /// What came of its task.
    pub outcome: Result<R, Lost>,
}

/// A lane's place at a [`super::Pool`]: tasks of type `T` go out, results of type `R` come back. A packet
/// waits here for the reply to its task, and replies come out in the order in which the packets of their
/// shard went in, whichever member was faster.
///
/// A service owns the clients of its lane and shows them to it by [`crate::Service::pool_client`].
#[derive(Debug)]
pub struct PoolClient<T, R> {
    /// One per member.
    channels: Vec<Front<T, R>>,
    order: Order<HandoffPacket, Result<R, Lost>>,
    notifier: NotifierSlot,
    /// Which member is looked at first, so that none is always last.
    start: usize,
}

/// What a lane asks of a client, whatever its tasks are.
pub trait AnyPoolClient {
    /// Takes the replies that have come, and returns how many packets may go on now.
    fn collect(&mut self) -> usize;

    /// Wakes the members that were given tasks since this was called last.
    fn ring(&mut self);

    /// Packets at the client.
    fn len(&self) -> usize;

    /// Packets of a shard at the client. As long as there are any, the shard stays where it is.
    fn outstanding(&self, shard: ShardId) -> usize;

    /// Whether [`AnyPoolClient::collect`] would find something.
    fn has_replies(&self) -> bool;

    /// Lets members wake a worker for the lane.
    fn wake_by(&mut self, notifier: LaneNotifier);

    /// Whether no packet is at the client.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, R> PoolClient<T, R> {
    /// A client with a channel for `depth` tasks to each member, for a run with `shards` shards.
    pub(super) fn new(
        channels: Vec<Front<T, R>>,
        depth: usize,
        shards: usize,
        notifier: NotifierSlot,
    ) -> PoolClient<T, R> {
        let order = Order::new(shards, channels.len() * depth);
        PoolClient { channels, order, notifier, start: 0 }
    }

    /// Gives a packet's task to the member with the fewest of this lane's. Gives the packet back when all
    /// have as many as they may: it is the caller's to drop, or to refuse.
    #[must_use = "a packet that is given back must be sent or dropped"]
    pub fn submit(&mut self, placed: HandoffPacket, task: T) -> Option<HandoffPacket> {
        let count = self.channels.len();
        self.start = (self.start + 1) % count;
        let members = (self.start..count).chain(0..self.start);
        let loads = members.filter_map(|member| Some((self.channels[member].load()?, member)));
        // The first of equals.
        let Some((_, member)) = loads.min_by_key(|(load, _)| *load) else { return Some(placed) };
        match self.order.enter(placed.info.shard, placed) {
            Ok(ticket) => self.channels[member].submit(ticket, task),
            Err(placed) => return Some(placed),
        }
        None
    }

    /// Lets a packet that needs no work wait for its turn behind those of its shard that do; `outcome` is
    /// its reply. Gives it back when there is no room.
    #[must_use = "a packet that is given back must be sent or dropped"]
    pub fn complete(&mut self, placed: HandoffPacket, outcome: R) -> Option<HandoffPacket> {
        match self.order.enter(placed.info.shard, placed) {
            Ok(ticket) => self.order.answer(ticket, Ok(outcome)),
            Err(placed) => return Some(placed),
        }
        None
    }

    /// The next packet whose turn has come.
    pub fn next_reply(&mut self) -> Option<Reply<R>> {
        self.order.next().map(|(placed, outcome)| Reply { placed, outcome })
    }
}

impl<T, R> AnyPoolClient for PoolClient<T, R> {
    fn collect(&mut self) -> usize {
        let PoolClient { channels, order, .. } = self;
        for channel in channels {
            channel.collect(|ticket, outcome| order.answer(ticket, outcome));
        }
        order.ready()
    }

    fn ring(&mut self) {
        self.channels.iter_mut().for_each(Front::ring);
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn outstanding(&self, shard: ShardId) -> usize {
        self.order.count(shard)
    }

    fn has_replies(&self) -> bool {
        self.order.ready() > 0 || self.channels.iter().any(Front::has_replies)
    }

    fn wake_by(&mut self, notifier: LaneNotifier) {
        // Before any task is given, so members see it: the rings of tasks order the two.
        let is_first = self.notifier.set(notifier).is_ok();
        debug_assert!(is_first, "a lane is given its notifier once");
    }
}
