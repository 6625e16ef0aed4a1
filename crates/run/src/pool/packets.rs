//! Packets that wait for a pool, and leave in the order of their shards.

use rheostat_base::ShardId;

use super::channel::Lost;
use super::client::PoolClient;
use super::order::Order;
use super::slots::PoolSlot;
use crate::crew::LaneNotifier;
use crate::lane::HandoffPacket;

/// A client with which packets wait.
pub type PacketPoolClient<T, R> = PoolClient<PacketTicket, T, R>;

/// Names a packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTicket(PoolSlot);

/// A packet that a pool has worked for.
#[derive(Debug)]
pub struct Reply<R> {
    /// The packet.
    pub placed: HandoffPacket,
    /// What came of its task.
    pub outcome: Result<R, Lost>,
}

/// A client of a pool for a service of packets. A packet waits here for the reply to its task, and replies come out in the order
/// in which the packets of their shard went in, whichever member was faster.
///
/// A service owns the clients of its lane and shows them to it by [`crate::DeferredWork::pool_client`].
#[derive(Debug)]
pub struct PacketClient<T, R> {
    client: PacketPoolClient<T, R>,
    order: Order<HandoffPacket, Result<R, Lost>>,
}

/// What a lane asks of a client, whatever waits there and what its tasks are.
pub trait AnyPoolClient {
    /// Takes what has come of tasks, and returns how many may go on now.
    fn collect(&mut self) -> usize;

    /// Wakes members for the tasks that were given since this was called last.
    fn ring(&mut self);

    /// Packets at the client, for the lane's account.
    fn packets(&self) -> usize;

    /// Packets, or other work of a shard, at the client. As long as there is any, the shard stays where it is.
    fn outstanding(&self, shard: ShardId) -> usize;

    /// Whether [`AnyPoolClient::collect`] would find something.
    fn has_replies(&self) -> bool;

    /// Lets members wake a worker for the lane.
    fn wake_by(&mut self, notifier: LaneNotifier);
}

impl<T, R> PacketClient<T, R> {
    /// A client whose packets are of `shards` shards. Nothing may be at `client` yet.
    pub fn new(client: PacketPoolClient<T, R>, shards: usize) -> PacketClient<T, R> {
        let order = Order::new(shards, client.capacity());
        PacketClient { client, order }
    }

    /// Gives a packet's task to the pool; its hash chooses the member where that matters. Gives the packet back when there is no
    /// room: it is the caller's to drop, or to refuse.
    #[must_use = "a packet that is given back must be sent or dropped"]
    pub fn submit(&mut self, placed: HandoffPacket, task: T) -> Option<HandoffPacket> {
        let hash = (placed.info.hash.0 >> 32) as u32;
        match self.order.enter(placed.info.shard, placed) {
            Ok(ticket) => {
                let refused = self.client.submit(PacketTicket(ticket), hash, task).err()?;
                let (PacketTicket(ticket), _) = refused;
                Some(self.order.retract(ticket))
            }
            Err(placed) => Some(placed),
        }
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

    /// Whether no packet is at the client.
    pub fn is_empty(&self) -> bool {
        self.order.len() == 0
    }
}

impl<T, R> AnyPoolClient for PacketClient<T, R> {
    fn collect(&mut self) -> usize {
        let PacketClient { client, order } = self;
        client.collect();
        while let Some((PacketTicket(ticket), outcome)) = client.next_outcome() {
            order.answer(ticket, outcome);
        }
        order.ready()
    }

    fn ring(&mut self) {
        self.client.ring();
    }

    fn packets(&self) -> usize {
        self.order.len()
    }

    fn outstanding(&self, shard: ShardId) -> usize {
        self.order.count(shard)
    }

    fn has_replies(&self) -> bool {
        self.order.ready() > 0 || self.client.has_replies()
    }

    fn wake_by(&mut self, notifier: LaneNotifier) {
        self.client.wake_by(notifier);
    }
}
