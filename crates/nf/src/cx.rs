//! What a handler can ask for and do besides deciding about its packet.

use std::time::Duration;

use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::{AllocError, FlowKey, LinkType, Mbuf, PoolCache};
use rheostat_run::Step;
use rheostat_state::txn::{Transactional, Txn};
use rheostat_state::{FlowId, FlowTable, Handle};

use crate::packet::Packet;
use crate::verdict::Abort;

/// The context of one call of a handler.
#[derive(Debug)]
pub struct Cx<'a, S> {
    pub(crate) shard: &'a mut S,
    pub(crate) scope: Scope<'a>,
}

/// The part of the context that does not depend on the function.
#[derive(Debug)]
pub struct Scope<'a> {
    pub(crate) now: Time,
    pub(crate) shard: ShardId,
    pub(crate) requests: &'a mut Requests,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) pool: &'a mut PoolCache,
    /// The shard's flows, while none of them is being worked on.
    pub(crate) flows: Option<&'a FlowTable>,
}

/// What handlers requested for their flow while they ran on one packet. Done once all of them have
/// returned, and not at all when one of them aborts. Apart from [`Outbox`], so that it lives and
/// dies in registers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Whether a function has admitted the flow of a first packet, or refused it.
    pub(crate) needs_flow: bool,
    pub(crate) deadline: Option<Time>,
    pub(crate) evictable: Option<bool>,
    pub(crate) close: bool,
    /// Whether the function that runs gives up its state.
    pub(crate) delete: bool,
    /// Whether any function has given up its state.
    pub(crate) has_deleted: bool,
}

/// The packets that handlers made while they ran on one packet. Sent once all of them have returned,
/// and not at all when one of them aborts. With it, for want of a place that costs other packets less,
/// what is noted about a packet that is followed.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) packets: Vec<(DeviceId, Mbuf)>,
    /// Packets for which there was no buffer.
    pub(crate) alloc_failed: u64,
    /// The second key of a new flow.
    pub(crate) alias: Option<FlowKey>,
    /// The flow that has to end for a new one.
    pub(crate) displaced: Option<FlowId>,
    /// What each function decided about a packet that is followed.
    pub(crate) decisions: Vec<Step>,
    /// The lane's transactions, if its chain works on shared objects.
    pub(crate) txn: Option<Txn>,
    /// Handlers that panicked and were stopped there.
    pub(crate) panics: u64,
}

impl Outbox {
    /// The lane's transactions.
    ///
    /// # Panics
    /// When the chain has none: the function works on shared objects, but does not stand in it as
    /// [`Stage::on_objects`](crate::Stage::on_objects).
    #[inline]
    pub(crate) fn txn(&mut self) -> &mut Txn {
        self.txn.as_mut().expect("a function on shared objects is a `Stage::on_objects`")
    }

    /// How much has been made so far.
    #[inline]
    pub(crate) fn len(&self) -> OutboxLen {
        OutboxLen { packets: self.packets.len(), alloc_failed: self.alloc_failed }
    }

    /// What has been made and noted for a packet so far.
    pub(crate) fn mark(&self) -> OutboxMark {
        let Outbox { alias, displaced, decisions, .. } = self;
        let (made, decisions) = (self.len(), decisions.len());
        OutboxMark { made, alias: *alias, displaced: *displaced, decisions }
    }

    /// Gives up what was made and noted since.
    pub(crate) fn go_back_to(&mut self, mark: OutboxMark, pool: &mut PoolCache) {
        let OutboxMark { made, alias, displaced, decisions } = mark;
        self.packets.drain(made.packets..).for_each(|(_, packet)| pool.free(packet));
        self.alloc_failed = made.alloc_failed;
        (self.alias, self.displaced) = (alias, displaced);
        self.decisions.truncate(decisions);
    }
}

/// What has been made and noted for a packet up to some moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutboxMark {
    made: OutboxLen,
    alias: Option<FlowKey>,
    displaced: Option<FlowId>,
    decisions: usize,
}

/// How much functions have originated up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutboxLen {
    pub(crate) packets: usize,
    /// Packets for which there was no buffer.
    pub(crate) alloc_failed: u64,
}

impl OutboxLen {
    /// How much more that is.
    pub(crate) fn since(self, earlier: OutboxLen) -> OutboxLen {
        OutboxLen {
            packets: self.packets - earlier.packets,
            alloc_failed: self.alloc_failed - earlier.alloc_failed,
        }
    }

    /// All packets, also those that could not be made.
    pub(crate) fn total(self) -> usize {
        self.packets + self.alloc_failed as usize
    }
}

impl Scope<'_> {
    /// The same context for one function of a chain.
    #[inline]
    pub(crate) fn cx<'b, S>(&'b mut self, shard: &'b mut S) -> Cx<'b, S> {
        let scope =
            Scope { requests: self.requests, outbox: self.outbox, pool: self.pool, ..*self };
        Cx { shard, scope }
    }

    /// The same context, but for the flow that `requests` are about, with these flows to look at.
    pub(crate) fn about<'b>(
        &'b mut self,
        requests: &'b mut Requests,
        flows: Option<&'b FlowTable>,
    ) -> Scope<'b> {
        Scope { requests, flows, outbox: self.outbox, pool: self.pool, ..*self }
    }
}

impl<S> Cx<'_, S> {
    /// The time of the packet, or of the timer that fired.
    #[inline]
    pub fn now(&self) -> Time {
        self.scope.now
    }

    /// The shard the handler runs in.
    #[inline]
    pub fn shard_id(&self) -> ShardId {
        self.scope.shard
    }

    /// The function's state in this shard.
    #[inline]
    pub fn shard(&mut self) -> &mut S {
        self.shard
    }

    /// The function's state in this shard, and which keys have flows, at the same time.
    #[inline]
    pub fn shard_and_flows(&mut self) -> (&mut S, Flows<'_>) {
        (self.shard, Flows(self.scope.flows))
    }

    /// Lets the flow live this much longer from now; otherwise as [`Cx::expire_at`].
    #[inline]
    pub fn expire_in(&mut self, lifetime: Duration) {
        self.expire_at(self.scope.now + lifetime);
    }

    /// Lets the flow live until `deadline`. When several functions of a chain call it for one packet, the earliest time counts; in a
    /// chain that is put together at run time, those that do not [decide] about it each have a deadline of their own. When none calls
    /// it, the deadline stays. A flow for which no function ever calls it lives for [`DEFAULT_LIFETIME`].
    ///
    /// [decide]: crate::FunctionSpec::decides_lifetime
    #[inline]
    pub fn expire_at(&mut self, deadline: Time) {
        let requests = &mut self.scope.requests;
        requests.deadline = Some(requests.deadline.map_or(deadline, |other| other.min(deadline)));
    }

    /// Lets a new flow be found under `key`, too, whose first endpoint is the inner one. The key must
    /// belong to the same shard by the function's [`steering`], and it must be free; otherwise there
    /// will be no flow, and the packet is dropped. Counts in [`first`], for the last function that
    /// calls it; the function has to declare that it gives [`aliases`].
    ///
    /// [`steering`]: crate::FunctionSpec::steering
    /// [`aliases`]: crate::FunctionSpec::aliases
    /// [`first`]: crate::NetworkFunction::first
    pub fn alias(&mut self, key: FlowKey) {
        self.scope.outbox.alias = Some(key);
    }

    /// Whether no flow of the shard has `key`. Known in [`first`] and [`periodic`], where no flow is
    /// being worked on; elsewhere no key is free.
    ///
    /// [`first`]: crate::NetworkFunction::first
    /// [`periodic`]: crate::NetworkFunction::periodic
    pub fn is_free(&self, key: &FlowKey) -> bool {
        Flows(self.scope.flows).is_free(key)
    }

    /// Ends another flow, which [`Cx::shard_and_flows`] has shown, in favour of a new one: as soon as [`first`]
    /// has returned and before the new flow enters the table, whether or not it does. For functions with state per
    /// shard, and for one flow per packet.
    ///
    /// [`first`]: crate::NetworkFunction::first
    pub fn displace(&mut self, flow: FlowId) {
        self.scope.outbox.displaced = Some(flow);
    }

    /// Ends the flow once this packet is done with.
    #[inline]
    pub fn close(&mut self) {
        self.scope.requests.close = true;
    }

    /// Gives up the function's own state of the flow once this handler has returned, while the flow lives on for the other
    /// functions of the chain. The entry ends with the last state. Counts in [`packet`], and what the handler asks for the flow's
    /// deadline then does not count: the earliest of those that the others ask for does.
    ///
    /// The function is told as when the flow is [closed](Cx::close), and the others are not. The next packet of the flow is a
    /// [`first`] one to it again. A flow for which a function has no state does not leave its lane.
    ///
    /// [`packet`]: crate::NetworkFunction::packet
    /// [`first`]: crate::NetworkFunction::first
    #[inline]
    pub fn delete_state(&mut self) {
        self.scope.requests.delete = true;
    }

    /// Sets whether the flow may be evicted when its shard's table is full: that of unconfirmed flows, such as half-open
    /// connections.
    #[inline]
    pub fn set_evictable(&mut self, evictable: bool) {
        self.scope.requests.evictable = Some(evictable);
    }

    /// Answers `packet` on the device it came from, with a frame of the same kind; otherwise as
    /// [`Cx::originate`].
    ///
    /// # Errors
    /// As [`Cx::originate`].
    pub fn originate_like(
        &mut self,
        packet: &Packet<'_>,
        capacity: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), Abort> {
        self.originate(packet.device(), packet.mbuf().link(), capacity, write)
    }

    /// Sends a packet of the function's own on `device`. `write` fills a buffer of `capacity` bytes
    /// and returns how many it used; with `None` nothing is sent. Without a free buffer the packet is
    /// counted as dropped for that reason.
    ///
    /// # Errors
    /// [`Abort`] when `capacity` is more than one buffer holds.
    pub fn originate(
        &mut self,
        device: DeviceId,
        link: LinkType,
        capacity: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), Abort> {
        let mut packet = match self.scope.pool.alloc(capacity) {
            Ok(packet) => packet,
            Err(AllocError::Empty) => {
                self.scope.outbox.alloc_failed += 1;
                return Ok(());
            }
            Err(AllocError::Oversize) => return Err(Abort),
        };
        match write(packet.data_mut()) {
            Some(len) if packet.truncate(len) => {
                packet.set_timestamp(self.scope.now);
                packet.set_device(device);
                packet.set_link(link);
                self.scope.outbox.packets.push((device, packet));
            }
            _ => self.scope.pool.free(packet),
        }
        Ok(())
    }
}

/// What the methods of shared objects take. Their time is [`Cx::now`].
///
/// # Panics
/// When the function's chain does not run it in transactions (see [`OnObjects`](crate::OnObjects)).
impl<S> Transactional for Cx<'_, S> {
    #[inline]
    fn txn(&mut self) -> &mut Txn {
        self.scope.outbox.txn()
    }
}

/// A flow that another one looks at.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a, S> {
    /// What names it.
    pub id: FlowId,
    /// The state that the function keeps of it.
    pub state: &'a S,
    /// When it ends unless a packet comes.
    pub deadline: Time,
}

/// Which keys have flows.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a>(Option<&'a FlowTable>);

impl<'a> Flows<'a> {
    /// Those of a table, for tests and measurements of functions.
    pub fn of(table: &'a FlowTable) -> Flows<'a> {
        Flows(Some(table))
    }

    /// Asks the processor to fetch what says whether `key` has a flow, for a look some time later.
    pub fn prefetch(&self, key: &FlowKey) {
        if let Some(flows) = self.0 {
            flows.prefetch_hint().prefetch(flows.hash_of(key));
        }
    }

    /// The flow that has `key`.
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        self.0?.find_now(self.0?.hash_of(key), key)
    }

    /// The flow that has `key`, with what the function keeps of it at its place (see
    /// [`ShardState::of`](crate::ShardState::of)).
    pub fn look_at<S: Send + 'static>(
        &self,
        key: &FlowKey,
        place: Handle<S>,
    ) -> Option<Seen<'a, S>> {
        let flows = self.0?;
        let (id, state, deadline) = flows.look_at(flows.hash_of(key), key, place)?;
        Some(Seen { id, state, deadline })
    }

    /// As [`Cx::is_free`].
    pub fn is_free(&self, key: &FlowKey) -> bool {
        self.0.is_some_and(|flows| flows.find_now(flows.hash_of(key), key).is_none())
    }
}

/// How long a flow lives without a packet when no function states otherwise.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
