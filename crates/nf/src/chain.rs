//! Chains of network functions. Those that are composed at compile time: [`Stage`] makes a chain of one function,
//! [`Chain2`] joins two chains. The compiler sees the whole chain, so a packet passes it without a virtual call. And the
//! one that is put together at run time, of any functions or none (`dynamic`).

mod chain2;
pub(crate) mod dynamic;
mod mode;
mod stage;
mod visit;

pub use chain2::Chain2;
pub use mode::{Mode, OnObjects, Owned};
pub use stage::Stage;
pub use visit::Visit;

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_run::listing::ListedFields;
use rheostat_state::FlowMut;
use rheostat_state::txn::Objects;

use crate::chain_service::FastPath;
use crate::cx::Scope;
use crate::function::{Ahead, ShardInfo};
use crate::function_spec::FunctionSpec;
use crate::listing::{ListedFlow, WantedEntries};
use crate::packet::Packet;
use crate::reading::{Reading, Unread};
use crate::steady::SteadyChain;
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
    /// The functions' states of a new flow, as far as they have seen it; at first, none has.
    type States: Default;

    /// What [`Chain::save`] keeps of a flow.
    type Saved: Default + Send;

    /// Whether handlers run in transactions on objects that all lanes share, so that whatever they do can
    /// be undone.
    const SHARED: bool = false;

    /// Whether handlers may run in transactions.
    const TRANSACTIONS: bool = Self::SHARED;

    /// Whether functions on the fast path can stop packets and originate some.
    const STOPS: bool = false;

    /// Properties of the functions together.
    fn spec(&self) -> FunctionSpec;

    /// Whether flows are looked up at all: there is a function.
    fn is_stateful(&self) -> bool {
        true
    }

    /// The fast path of the chain on packets of a lane, if its functions have one. It counts in `counts`: those that
    /// [`Chain::spec`] names.
    fn fast_path<'a>(&'a self, counts: &'a [Counter]) -> impl FastPath;

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

    /// Adapts the state of a shard, which another chain of this type made or adapted before, to this one.
    fn follow(&self, _shard: &mut Self::Shard, _info: &ShardInfo) {}

    /// Whether `next` has the same functions as this chain, so that it can take its place.
    fn has_functions_of(&self, _next: &Self) -> bool {
        true
    }

    /// Bytes that the functions have beside the state of one shard, whose table has room for so many flows.
    fn bytes_beside(&self, _flows: usize) -> BytesBeside {
        BytesBeside::default()
    }

    /// Executes the functions on a packet, until one decides that it does not go on. When the verdict on the first packet of a
    /// flow is [`Verdict::Drop`], its states are to be discarded.
    fn visit(
        &self,
        shard: &mut Self::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: Visit<'_, '_, Self::States>,
    ) -> Outcome<Verdict>;

    /// Puts the states of an admitted flow into its entry.
    fn install(&self, shard: &mut Self::Shard, flow: &mut FlowMut<'_>, states: Self::States);

    /// Gives up the states of a flow that was not installed, last function first.
    fn discarded(&self, shard: &mut Self::Shard, scope: &mut Scope<'_>, states: Self::States);

    /// Requests what the end of a flow will need, which may be the next to end.
    #[inline]
    fn prefetch_end(&self, _shard: &Self::Shard, _flow: &mut FlowMut<'_>) {}

    /// The deadline of a flow has come, which is the scope's time: ends it for the functions that have a deadline of their own which
    /// has passed. Returns whether the flow lives on for others; then it has a later deadline.
    #[inline(always)]
    fn lapsed(
        &self,
        _shard: &mut Self::Shard,
        _scope: &mut Scope<'_>,
        _flow: &mut FlowMut<'_>,
    ) -> bool {
        false
    }

    /// Notifies the functions that the flow ends.
    fn ended(
        &self,
        shard: &mut Self::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    );

    /// Calls the functions' periodic handlers.
    fn periodic(&self, shard: &mut Self::Shard, scope: &mut Scope<'_>) -> Outcome<()>;

    /// The run is over: ends flows that are not in the table of the shard, if a function wants that.
    fn stopped(&self, _shard: &mut Self::Shard, _scope: &mut Scope<'_>) {}

    /// Adds what each function with a state of the flow lists of it.
    fn list(&self, _shard: &Self::Shard, _flow: &mut ListedFlow<'_, '_>) {}

    /// Adds entries that a function has in tables of its own in the shard, and returns the number of the next one.
    fn entries(&self, _shard: &Self::Shard, _wanted: WantedEntries<'_>) -> Option<u32> {
        None
    }

    /// Adds the entries of the function with this name that are the same in all shards.
    fn fixed_entries(&self, _function: &str, _into: &mut Vec<ListedFields>) {}

    /// Adds what the functions have counted in one shard to the metrics of a run; with `None`, what they have counted in shared
    /// objects.
    fn metrics(&self, shard: Option<&Self::Shard>, metrics: &mut Metrics);
}

/// A chain that is compiled as a whole, and so can stand in another one.
pub trait CompiledChain: Chain {
    /// The length of [`FunctionSpec::counts`].
    fn counts(&self) -> usize;

    /// The fast path of the chain, if its functions have one.
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain;
}

/// Bytes that the functions of a chain have beside the states of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesBeside {
    /// Those that the state of one shard points to, as far as they are the same for all shards and known before.
    pub boxed: usize,
    /// Those of the tables that functions have of their own in one shard.
    pub tables: usize,
}
