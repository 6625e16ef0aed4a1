//! Chains of network functions. Those that are composed at compile time: [`Stage`] makes a chain of one function,
//! [`Chain2`] joins two chains, [`Passthrough`] forwards everything. The compiler sees the whole chain, so a
//! packet passes it without a virtual call. And the one that is put together at run time, of any functions (`dynamic`).

mod chain2;
pub(crate) mod dynamic;
mod mode;
mod passthrough;
mod stage;

pub use chain2::Chain2;
pub use mode::{Mode, OnObjects, Owned};
pub use passthrough::Passthrough;
pub use stage::Stage;

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;
use rheostat_steer::{Steering, SteeringError};

use crate::chain_service::FastPath;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
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
            `Stage::on_objects(function, &objects, &mut layout)?`",
    note = "a tuple is no chain: `Chain2(first, second)` joins two chains, `AnyChain::of(vec![link(a), link(b)])?` any functions"
)]
pub trait Chain: Send + Sync + 'static {
    /// The functions' states per shard.
    type Shard: Send + 'static;
    /// The functions' states of one flow, as far as they have seen it.
    type States;

    /// What [`Chain::save`] keeps of a flow.
    type Saved: Default + Send;

    /// Whether flows are looked up at all.
    const STATEFUL: bool;

    /// Whether handlers run in transactions on objects that all lanes share, so that whatever they do can
    /// be undone.
    const SHARED: bool = false;

    /// Whether handlers may run in transactions.
    const TRANSACTIONS: bool = Self::SHARED;

    /// Whether functions on the fast path can stop packets and originate some.
    const STOPS: bool = false;

    /// Properties of the functions together.
    fn spec(&self) -> FunctionSpec;

    /// How many things the functions' fast paths count.
    fn counts(&self) -> usize {
        0
    }

    /// The fast path of the chain, if its functions have one. It counts in `counts`, of which there are [`Chain::counts`].
    fn steady<'a>(&'a self, _counts: &'a [Counter]) -> impl SteadyChain {
        General(Unread)
    }

    /// The same on packets of a lane.
    #[inline(always)]
    fn fast_path<'a>(&'a self, counts: &'a [Counter]) -> impl FastPath {
        self.steady(counts)
    }

    /// The fast path of a chain on shared objects, if its function has one.
    fn reading<'a>(&'a self, _counts: &'a [Counter]) -> impl Reading {
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
    fn save(&self, _flow: &mut FlowMut<'_>) -> Self::Saved {
        Self::Saved::default()
    }

    /// Gives a flow the states back that it had.
    fn restore(&self, _flow: &mut FlowMut<'_>, _saved: Self::Saved) {}

    /// Makes the state of one shard.
    fn shard(&self, shard: ShardInfo) -> Self::Shard;

    /// Bytes that the state of one shard points to, as far as they are the same for all shards and known before.
    fn boxed_bytes(&self) -> usize {
        0
    }

    /// Bytes of the tables that functions have of their own in one shard, beside that of the shard, which has room for so many flows.
    fn own_table_bytes(&self, _flows: usize) -> usize {
        0
    }

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

    /// Requests what the end of a flow will need, which may be the next to end.
    #[inline]
    fn prefetch_end(&self, _shard: &Self::Shard, _flow: &mut FlowMut<'_>) {}

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

    /// Adds what the functions have counted in one shard to the metrics of a run; with `None`, what they have counted in shared
    /// objects.
    fn metrics(&self, shard: Option<&Self::Shard>, metrics: &mut Metrics);
}

/// Adapts `steering` to a chain: its sets and its translation.
///
/// # Errors
/// [`SteeringError::NothingInCommon`] when the chain's functions cannot agree how to place packets.
pub fn steering_for<C: Chain>(chain: &C, steering: Steering) -> Result<Steering, SteeringError> {
    chain.spec().place(steering)
}
