//! The trait that a network function implements.

use std::sync::Arc;

use rheostat_base::{Counter, ShardId};
use rheostat_packet::FlowKey;
use rheostat_run::Metrics;
use rheostat_state::{FlowHasher, Handle};
use rheostat_steer::{PacketSet, Steering, Translation};

use crate::cx::Cx;
use crate::packet::Packet;
use crate::reading::{Reading, Unread};
use crate::steady::{General, Steady};
use crate::verdict::{Admission, Ending, Outcome, Verdict};

/// A shard, as a function that makes its local state for it sees it.
#[derive(Clone, Debug)]
pub struct ShardInfo {
    /// The shard's number.
    pub id: ShardId,
    /// How many shards the run has. Limits that hold for the whole run are divided by this.
    pub shards: usize,
    /// A random number of the shard's own, the same again for the same seed of the run.
    pub seed: u64,
    /// For how many flows the table of the shard has room.
    pub flows: usize,
    /// The hash function of flow tables.
    pub hasher: FlowHasher,
    /// How packets of the run are placed, for functions that choose endpoints.
    pub steering: Arc<Steering>,
}

/// What a function can ask the processor to fetch before packets are presented to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Where the keys lie under which it will look something up.
    Keys,
    /// What seems to lie under them.
    Values,
}

/// The state per shard of a function on shared objects: none. Only `()` is.
#[diagnostic::on_unimplemented(
    message = "a function on shared objects keeps nothing per shard, but this one has `type Shard = {Self}`",
    label = "`Shard` is not `()`",
    note = "write `type Shard = ();` and keep the state in an object that all lanes share: `Distributed` for counts, `Map`, `Vector`",
    note = "or make it a function with state per shard: `Stage::new`, `link`, `App::function`, without objects"
)]
pub trait NoShardState: Send + 'static {}

impl NoShardState for () {}

/// A network function: sequential code that sees one packet at a time.
///
/// Packets with the same key (see [`NetworkFunction::packet_set`]), in both directions, belong to one
/// flow. The runtime looks the flow up once per packet for the whole chain and hands each function
/// its own state as plain `&mut`. Nothing else runs on that flow, or on anything else in its shard,
/// at the same time. (The event model follows NFOS, section 4.3.)
///
/// Packets from inside pass the chain's functions in order, packets from outside in reverse.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a network function",
    label = "not a network function",
    note = "implement `NetworkFunction` for it; a chain of functions (`Stage`, `Chain2`) is not a function itself"
)]
pub trait NetworkFunction: Send + Sync + 'static {
    /// State per flow.
    type Flow: Send + 'static;
    /// State per shard, beside the flows: limits, counters, random numbers.
    type Shard: Send + 'static;

    /// What its fast path counts, by name: figures of the run, each of which the general handlers may add to as well.
    const COUNTS: &'static [&'static str] = &[];

    /// What people call it, in a trace of a packet: the name of its type, unless it has another.
    fn name(&self) -> &'static str {
        let path = std::any::type_name::<Self>();
        let path = path.split('<').next().unwrap_or(path);
        path.rsplit("::").next().unwrap_or(path)
    }

    /// The header fields that name a flow.
    fn packet_set(&self) -> PacketSet;

    /// The header fields that packets may be placed by, fewer than name a flow or the same. Whatever
    /// keys a flow has, these fields must lead them to one shard.
    fn steering(&self) -> PacketSet {
        self.packet_set()
    }

    /// Whether flows may have a second key (see [`Cx::alias`]).
    fn aliases(&self) -> bool {
        false
    }

    /// Whether what the function keeps per shard depends on which flows are alive. If so, flows whose time
    /// is up are ended before the first packet of another is presented: it must not matter when a lane
    /// came round to it.
    fn depends_on_flows(&self) -> bool {
        false
    }

    /// Whether the function, in a chain that is put together at run time ([`AnyChain::of`](crate::AnyChain::of)), keeps its flows in
    /// tables of its own, under the keys of packets as they come to it: one that has flows which other functions of the chain refuse.
    /// Costs a lookup per packet.
    fn keeps_own_flows(&self) -> bool {
        false
    }

    /// Whether the function, in a chain that is put together at run time, decides how long flows live for all its functions: one
    /// that tracks connections. To another function, a flow ends when its own time for it is up, and the next packet is a
    /// [`first`](NetworkFunction::first) one again, while the flow lives on for the others. A flow about which no function decides
    /// ends with the last state.
    fn decides_lifetime(&self) -> bool {
        false
    }

    /// The endpoints that the function translates, if it does.
    fn translation(&self) -> Option<Translation> {
        None
    }

    /// States where in a flow's entry the function's state lies, once, before the first packet: for functions that
    /// look at other flows (see [`Flows::look_at`](crate::Flows::look_at)).
    fn placed(&mut self, _place: Handle<Self::Flow>) {}

    /// Makes the state of one shard, at start-up.
    fn local(&self, shard: ShardInfo) -> Self::Shard;

    /// The first packet of a flow has come.
    fn first(
        &self,
        cx: &mut Cx<'_, Self::Shard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<Self::Flow>>;

    /// A packet of a live flow has come, or an ICMP error about one (see [`Packet::is_icmp_error`]).
    fn packet(
        &self,
        cx: &mut Cx<'_, Self::Shard>,
        packet: &mut Packet<'_>,
        state: &mut Self::Flow,
    ) -> Outcome<Verdict>;

    /// The function's fast path, if it has one: what it does with most packets of flows that it knows, so that these pass
    /// without what other packets may need. Asked for once per burst. What it counts, it counts in `counts`, which the lane has
    /// for it, one per name in [`NetworkFunction::COUNTS`].
    #[inline(always)]
    fn steady<'a>(&'a self, _counts: &'a [Counter]) -> impl Steady<Self::Flow> {
        General
    }

    /// The fast path of a function on shared objects, if it has one: what it decides about most packets of no flow by reading
    /// alone.
    #[inline(always)]
    fn reading(&self) -> impl Reading {
        Unread
    }

    /// A packet is about to be presented to a function on shared objects: first all packets of a burst come here for the
    /// keys, then all of them for the values, and only then the first one is presented. So memory that
    /// a packet needs is on its way while others are worked on ([`Map::prefetch`], [`Map::guess`]). Nothing may be
    /// decided by it: it happens beside all transactions.
    ///
    /// [`Map::prefetch`]: rheostat_state::object::Map::prefetch
    /// [`Map::guess`]: rheostat_state::object::Map::guess
    #[inline]
    fn prefetch(&self, _packet: &Packet<'_>, _what: Ahead) {}

    /// Undoes what the function has done to a packet of a live flow: a later function found that the
    /// packet opens a new flow, and it is to be presented again as that flow's first.
    fn undo(&self, _packet: &mut Packet<'_>, _state: &mut Self::Flow) {}

    /// The flow ends: its time is up, a function closed it, or it made room for another.
    fn expired(&self, _cx: &mut Cx<'_, Self::Shard>, _state: &mut Self::Flow) -> Outcome<()> {
        Ok(())
    }

    /// The flow may be the next to end. Nothing may be changed: this is for asking for the memory that its end will need, with
    /// [`prefetch_line`](rheostat_state::prefetch_line).
    #[inline]
    fn ends_soon(&self, _shard: &Self::Shard, _state: &Self::Flow) {}

    /// As [`NetworkFunction::expired`], which it calls unless a function has its own: for those that want
    /// to know the key under which the flow was opened, and why it ends.
    fn ended(
        &self,
        cx: &mut Cx<'_, Self::Shard>,
        _key: &FlowKey,
        state: &mut Self::Flow,
        _ending: Ending,
    ) -> Outcome<()> {
        self.expired(cx, state)
    }

    /// Whether flows that are alive when the run is over are ended then. Otherwise they are left as they
    /// are, and count as alive.
    fn ends_with_run(&self) -> bool {
        false
    }

    /// The flow that [`NetworkFunction::first`] admitted will not exist after all, because a later
    /// function refused it or the table was full.
    fn discarded(&self, _cx: &mut Cx<'_, Self::Shard>, _state: Self::Flow) {}

    /// A packet that belongs to no flow: not IP, neighbour discovery, or an ICMP error about a flow
    /// that is not known.
    fn non_flow(
        &self,
        _cx: &mut Cx<'_, Self::Shard>,
        _packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }

    /// Whether the first packet of a flow, when the function has let it through and the table has no
    /// room for the flow, passes all the same; otherwise it is dropped as
    /// [`DropReason::TableFull`](rheostat_base::DropReason::TableFull). In a chain it passes only if
    /// every function returns true. Its state is given to [`NetworkFunction::discarded`] either way.
    fn passes_without_entry(&self) -> bool {
        false
    }

    /// Called about twice a second per shard, with or without traffic.
    fn periodic(&self, _cx: &mut Cx<'_, Self::Shard>) -> Outcome<()> {
        Ok(())
    }

    /// Adds what the function has counted in one shard to the metrics of a run that is over.
    fn metrics(&self, _local: &Self::Shard, _metrics: &mut Metrics) {}

    /// Adds what the function has counted in shared objects to the metrics of a run that is over. Called once per run.
    fn shared_metrics(&self, _metrics: &mut Metrics) {}
}
