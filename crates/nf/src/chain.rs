//! Chains of network functions. Those that are composed at compile time: [`Stage`] makes a chain of one function,
//! [`Chain2`] joins two chains, [`Passthrough`] forwards everything. The compiler sees the whole chain, so a
//! packet passes it without a virtual call. And the one that is put together at run time, of any functions (`dynamic`).

mod chain2;
pub(crate) mod dynamic;
mod passthrough;
mod shared;
mod stage;

pub use chain2::Chain2;
pub use passthrough::Passthrough;
pub use shared::Shared;
pub use stage::Stage;

use rheostat_base::{Counter, Nanos};
use rheostat_run::{Batch, LaneCounters, Metrics, OffloadedFlows};
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;
use rheostat_steer::{PacketSet, Steering, SteeringError, Translation};

use crate::chain_service::{FastPathCx, Journal, fast_path, guests};
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::packet::Packet;
use crate::reading::{Reading, Unread};
use crate::steady::{General, SteadyChain};
use crate::verdict::{Ending, Outcome, Verdict};

/// Functions that packets pass one after the other: from inside in order, from outside in reverse.
///
/// The states of a new flow are kept beside the table until the whole chain has admitted it, so that
/// a packet that is refused never touches the table.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a chain",
    label = "not a chain",
    note = "a function becomes a chain by `Stage::new(function, &mut layout)?`; one on shared objects by \
            `Shared::new(function, &objects, &mut layout)?`",
    note = "a tuple is no chain: `Chain2(first, second)` joins two chains, `AnyChain::of(vec![link(a), link(b)])?` any functions"
)]
pub trait Chain: Send + Sync + 'static {
    /// The functions' states per shard.
    type Shard: Send + 'static;
    /// The functions' states of one flow, as far as they have seen it.
    type States;

    /// What [`Chain::save`] keeps of a flow.
    type Saved: Send;
    /// What is kept of what handlers do while a chain is executed: nothing unless it can be undone.
    type Journal: Journal<Saved = Self::Saved>;

    /// Whether flows are looked up at all.
    const STATEFUL: bool;

    /// Whether handlers run in transactions on objects that all lanes share, so that whatever they do can
    /// be undone.
    const SHARED: bool = false;

    /// Whether handlers may run in transactions.
    const TRANSACTIONS: bool = Self::SHARED;

    /// Whether functions on the fast path can stop packets and originate some.
    const STOPS: bool = false;

    /// How many things the functions' fast paths count.
    fn counts(&self) -> usize {
        0
    }

    /// The fast path of the chain, if its functions have one. It counts in `counts`, of which there are [`Chain::counts`].
    fn steady<'a>(&'a self, _counts: &'a [Counter]) -> impl SteadyChain {
        General
    }

    /// Whether packets of known flows can take a fast path.
    #[inline(always)]
    fn has_steady(&self, counts: &[Counter]) -> bool {
        fast_path::exists(&self.steady(counts))
    }

    /// Whether flows can leave their lanes: all functions have a fast path, which needs nothing of the shard.
    #[inline(always)]
    fn can_offload(&self, counts: &[Counter]) -> bool {
        self.has_steady(counts)
    }

    /// Runs the fast path on the packets of a batch from `first` on, up to one of which not all functions know what to do with it,
    /// and returns its place: those before it are to be forwarded, but for those that it notes as stopped.
    #[inline(always)]
    fn run_steady(&self, batch: &mut Batch, first: usize, cx: &mut FastPathCx<'_>) -> usize {
        fast_path::run(&self.steady(cx.counts), batch, first, cx.shards, cx.out.counters())
    }

    /// As [`Steady::shortest`](crate::Steady::shortest), of all functions.
    #[inline(always)]
    fn steady_shortest(&self, counts: &[Counter]) -> Nanos {
        self.steady(counts).shortest()
    }

    /// As [`Steady::may_leave`](crate::Steady::may_leave), of all functions.
    #[inline(always)]
    fn lets_leave(&self, counts: &[Counter], flow: FlowMut<'_>) -> bool {
        let chain = self.steady(counts);
        flow.open(chain.places()).is_some_and(|flow| chain.may_leave(&flow.states))
    }

    /// Runs the fast path on packets of flows of other lanes, up to one about which it does not decide, and returns how many there
    /// were: they are to be forwarded.
    #[inline(always)]
    fn run_guests(
        &self,
        counts: &[Counter],
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        counters: &LaneCounters,
    ) -> usize {
        guests::run(&self.steady(counts), batch, flows, counters)
    }

    /// Adds what a lane's fast path has counted to the figures of a run.
    fn add_counts(&self, _counts: &[Counter], _metrics: &mut Metrics) {}

    /// The fast path of a chain on shared objects, if its function has one.
    fn reading(&self) -> impl Reading {
        Unread
    }

    /// Requests what a packet will need of shared objects (see [`NetworkFunction::prefetch`]).
    ///
    /// [`NetworkFunction::prefetch`]: crate::NetworkFunction::prefetch
    #[inline]
    fn prefetch(&self, _packet: &Packet<'_>, _what: Ahead) {}

    /// The objects that the functions share, if they share any.
    fn objects(&self) -> Option<&Objects> {
        None
    }

    /// The functions' states of a flow, for [`Chain::restore`].
    fn save(&self, flow: &mut FlowMut<'_>) -> Self::Saved;

    /// Gives a flow the states back that it had.
    fn restore(&self, flow: &mut FlowMut<'_>, saved: Self::Saved);

    /// The header fields that name a flow of the chain.
    fn packet_set(&self) -> PacketSet;

    /// The header fields that packets are placed by: those that all functions allow.
    fn steering(&self) -> PacketSet;

    /// Whether flows may have a second key.
    fn aliases(&self) -> bool;

    /// Whether what the functions keep per shard depends on which flows are alive.
    fn depends_on_flows(&self) -> bool;

    /// The endpoints that are translated, if some are.
    fn translation(&self) -> Option<Translation>;

    /// Makes the state of one shard.
    fn local(&self, shard: ShardInfo) -> Self::Shard;

    /// Bytes that the state of one shard points to, as far as they are the same for all shards and known before.
    fn boxed_bytes(&self) -> usize {
        0
    }

    /// Bytes of the tables that functions have of their own in one shard, beside that of the shard, which has room for so many flows.
    fn own_table_bytes(&self, _flows: usize) -> usize {
        0
    }

    /// Whether a packet passes that was let through as the first of a flow for which the table has no
    /// room.
    fn passes_without_entry(&self) -> bool;

    /// Executes the functions on the first packet of a flow. With [`Verdict::Drop`] the states are to be discarded.
    fn first(
        &self,
        local: &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Self::States, Verdict)>;

    /// Puts the states of an admitted flow into its entry.
    fn install(&self, local: &mut Self::Shard, flow: &mut FlowMut<'_>, states: Self::States);

    /// Gives up the states of a flow that was not installed, last function first.
    fn discarded(&self, local: &mut Self::Shard, scope: &mut Scope<'_>, states: Self::States);

    /// Executes the functions on a packet of a live flow.
    fn packet(
        &self,
        local: &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict>;

    /// Undoes what the functions have done to a packet of a live flow.
    fn undo(&self, packet: &mut Packet<'_>, flow: &mut FlowMut<'_>);

    /// Tells the functions that the flow may be the next to end (see [`NetworkFunction::ends_soon`]).
    ///
    /// [`NetworkFunction::ends_soon`]: crate::NetworkFunction::ends_soon
    #[inline]
    fn ends_soon(&self, _local: &Self::Shard, _flow: &mut FlowMut<'_>) {}

    /// The deadline of a flow has come, which is the scope's time: ends it for the functions that have a deadline of their own which
    /// has passed. Returns whether the flow lives on for others; then it has a later deadline.
    #[inline(always)]
    fn lapsed(
        &self,
        _local: &mut Self::Shard,
        _scope: &mut Scope<'_>,
        _flow: &mut FlowMut<'_>,
    ) -> bool {
        false
    }

    /// Notifies the functions that the flow ends.
    fn ended(
        &self,
        local: &mut Self::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    );

    /// Whether a function wants flows ended that are alive when the run is over.
    fn ends_with_run(&self) -> bool;

    /// Executes the functions on a packet that belongs to no flow.
    fn non_flow(
        &self,
        local: &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict>;

    /// Calls the functions' periodic handlers.
    fn periodic(&self, local: &mut Self::Shard, scope: &mut Scope<'_>) -> Outcome<()>;

    /// The run is over: ends flows that are not in the table of the shard, if a function wants that.
    fn stopped(&self, _local: &mut Self::Shard, _scope: &mut Scope<'_>) {}

    /// Adds what the functions have counted in one shard to the metrics of a run.
    fn metrics(&self, local: &Self::Shard, metrics: &mut Metrics);

    /// Adds what the functions have counted in shared objects to the metrics of a run.
    fn shared_metrics(&self, _metrics: &mut Metrics) {}
}

/// Adapts `steering` to a chain: its sets and its translation.
///
/// # Errors
/// [`SteeringError::NothingInCommon`] when the chain's functions cannot agree how to place packets.
pub fn steering_for<C: Chain>(chain: &C, steering: Steering) -> Result<Steering, SteeringError> {
    let steering = steering.with_sets(&chain.packet_set(), &chain.steering())?;
    Ok(match chain.translation() {
        Some(translation) => steering.with_translation(translation),
        None => steering,
    })
}
