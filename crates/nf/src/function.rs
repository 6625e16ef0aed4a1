//! The trait that a network function implements.

use std::sync::Arc;

use rheostat_base::{Counter, ShardId};
use rheostat_packet::FlowKey;
use rheostat_run::Metrics;
use rheostat_state::{FlowHasher, Handle};
use rheostat_steer::Steering;

use crate::cx::Cx;
use crate::function_spec::FunctionSpec;
use crate::packet::Packet;
use crate::reading::Unread;
use crate::steady::{General, Steady};
use crate::verdict::{Admission, Ending, Outcome, Verdict};

/// A shard for which a function's state is made.
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

/// The two passes in which memory for packets is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Where the keys lie under which the function will look something up.
    Keys,
    /// The values that seem to lie under them.
    Values,
}

/// An event for which a function can have memory fetched ahead of time.
#[derive(Debug)]
pub enum Prefetch<'a, F: NetworkFunction> {
    /// A packet is about to be presented to a function on shared objects: all packets of a burst come here first for the keys
    /// and then for the values, and only then the first of them is presented (see [`Map::prefetch`] and [`Map::guess`]).
    ///
    /// [`Map::prefetch`]: rheostat_state::object::Map::prefetch
    /// [`Map::guess`]: rheostat_state::object::Map::guess
    Packet(&'a Packet<'a>, Ahead),
    /// The flow with this state may be the next of the shard to end.
    End(&'a F::Shard, &'a F::Flow),
}

/// The state that a function keeps per shard. Every type with a [`Default`] is such a state; a type without one states how it is
/// made:
///
/// ```
/// # use rheostat_nf::{Cx, NetworkFunction, Outcome, Packet, ShardInfo, ShardState, Verdict};
/// # use rheostat_state::Handle;
/// # struct Limiter { flows: usize }
/// /// The flows that a shard may have.
/// struct Limit(usize);
///
/// impl ShardState<Limiter> for Limit {
///     fn of(function: &Limiter, shard: ShardInfo, _: Handle<()>) -> Limit {
///         Limit(function.flows / shard.shards)
///     }
/// }
/// # impl NetworkFunction for Limiter {
/// #     type Flow = ();
/// #     type Shard = Limit;
/// #     fn packet(&self, _: &mut Cx<'_, Limit>, _: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
/// #         Ok(Verdict::Forward)
/// #     }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "the state per shard `{Self}` of `{F}` has no initial value",
    label = "neither `Default` nor `ShardState<{F}>`",
    note = "derive `Default` for it, or implement `ShardState` to make it from the function's settings"
)]
pub trait ShardState<F: NetworkFunction>: Send + 'static {
    /// Makes the state of one shard, at start-up. `place` is where the function's state lies in the entry of a flow, for
    /// functions that look at other flows (see [`Flows::look_at`](crate::Flows::look_at)).
    fn of(function: &F, shard: ShardInfo, place: Handle<F::Flow>) -> Self;

    /// Adapts the state to another `function`, which takes the place of the one that the state is by, with other settings: limits
    /// and rates become those of `function`, and what flows depend on stays. Without it, the state stays as it is. Runs between two
    /// bursts of the lane that has the shard; some functions between may have been left out.
    fn follow(&mut self, _function: &F, _shard: &ShardInfo) {}
}

impl<F: NetworkFunction, T: Default + Send + 'static> ShardState<F> for T {
    fn of(_: &F, _: ShardInfo, _: Handle<F::Flow>) -> T {
        T::default()
    }
}

/// The state per shard of a function on shared objects: none. Only `()` is.
#[diagnostic::on_unimplemented(
    message = "a function on shared objects keeps nothing per shard, but this one has `type Shard = {Self}`",
    label = "`Shard` is not `()`",
    note = "write `type Shard = ();` and keep the state in an object that all lanes share: `Distributed` for counts, `Map`, `Vector`",
    note = "or make it a function with state per shard: `Stage::new`, `link`, `App::function`, without objects"
)]
pub trait NoShardState: Send + 'static {
    /// The state of every shard.
    const NONE: &'static Self;
}

impl NoShardState for () {
    const NONE: &'static () = &();
}

/// A network function: sequential code that sees one packet at a time.
///
/// Packets with the same key (see [`FunctionSpec::packet_set`]), in both directions, belong to one flow. The runtime looks the
/// flow up once per packet for the whole chain and hands each function its own state as plain `&mut`. Nothing else runs on that
/// flow, or on anything else in its shard, at the same time. (The event model follows NFOS, section 4.3.)
///
/// Packets from inside pass the chain's functions in order, packets from outside in reverse.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a network function",
    label = "not a network function",
    note = "implement `NetworkFunction` for it; a chain of functions (`Stage`, `Chain2`) is not a function itself"
)]
pub trait NetworkFunction: Sized + Send + Sync + 'static {
    /// State per flow.
    type Flow: Default + Send + 'static;
    /// State per shard, beside the flows: limits, counters, random numbers.
    type Shard: ShardState<Self>;

    /// The function's properties, which may depend on its settings. Called when a run starts. Without it, flows are named by
    /// addresses, ports and protocol.
    fn spec(&self) -> FunctionSpec {
        FunctionSpec::default()
    }

    /// The first packet of a flow has come. Without it, [`packet`](NetworkFunction::packet) sees the packet with the default
    /// state, and the flow is admitted unless the packet is dropped: then the state is
    /// [`discarded`](NetworkFunction::discarded).
    fn first(
        &self,
        cx: &mut Cx<'_, Self::Shard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<Self::Flow>> {
        let mut flow = Self::Flow::default();
        let verdict = self.packet(cx, packet, &mut flow)?;
        if let Verdict::Drop(reason) = verdict {
            self.discarded(cx, flow);
            return Ok(Admission::Refuse(reason));
        }
        Ok(Admission::Admit(flow, verdict))
    }

    /// A packet of a live flow has come, or an ICMP error about one (see [`Packet::is_icmp_error`]).
    fn packet(
        &self,
        cx: &mut Cx<'_, Self::Shard>,
        packet: &mut Packet<'_>,
        flow: &mut Self::Flow,
    ) -> Outcome<Verdict>;

    /// The function's fast path, if it has one, for most packets of known flows. Requested once per burst. It counts in
    /// `counts`, which the lane has for it, one per name in [`FunctionSpec::counts`]. For a function on shared objects, it is
    /// [`General`] of a [`Reading`](crate::Reading).
    #[inline(always)]
    fn steady<'a>(&'a self, _counts: &'a [Counter]) -> impl Steady<Self::Flow> {
        General(Unread)
    }

    /// The flow, which was opened under `key`, ends. An error leaves the end as it is: there is no packet to drop.
    ///
    /// # Errors
    /// [`Abort`](crate::Abort) on a conflict of transactions.
    fn closed(
        &self,
        _cx: &mut Cx<'_, Self::Shard>,
        _key: &FlowKey,
        _flow: &mut Self::Flow,
        _why: Ending,
    ) -> Outcome<()> {
        Ok(())
    }

    /// The flow that [`NetworkFunction::first`] admitted will not exist, because a later function refused it, its first packet
    /// was dropped, or the table was full.
    fn discarded(&self, _cx: &mut Cx<'_, Self::Shard>, _flow: Self::Flow) {}

    /// A packet that belongs to no flow: not IP, neighbour discovery, an ICMP error about a flow that is not known, or any
    /// packet if the function has no flows.
    fn non_flow(
        &self,
        _cx: &mut Cx<'_, Self::Shard>,
        _packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }

    /// Requests memory that a packet or the end of a flow will need, so that it is on its way while others are worked on.
    /// Changes and decides nothing: it runs beside all transactions.
    #[inline]
    fn prefetch(&self, _stage: Prefetch<'_, Self>) {}

    /// Called about twice a second per shard, with or without traffic.
    fn periodic(&self, _cx: &mut Cx<'_, Self::Shard>) -> Outcome<()> {
        Ok(())
    }

    /// Adds the function's counts to the metrics of a run: those of one shard, or, for a function on shared objects, those of
    /// all lanes, once per run.
    fn metrics(&self, _shard: &Self::Shard, _metrics: &mut Metrics) {}
}
