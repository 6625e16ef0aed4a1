//! A chain by what all chains have in common, for code that learns only at run time which one it is.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_base::sync::succession::Succession;
use rheostat_base::{LaneId, ShardId};
use rheostat_ip::Network;
use rheostat_run::listing::WalkBoard;
use rheostat_run::{Routes, Service};
use rheostat_state::txn::Objects;
use rheostat_state::{
    Arena, ArenaError, FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard, StateLayout,
    TableConfig,
};
use rheostat_steer::{Steering, SteeringError};

use crate::chain::dynamic::{ChainError, DynamicChain};
use crate::chain::{BytesBeside, Chain};
use crate::chain_service::ChainService;
use crate::chain_shard::ChainShard;
use crate::function::ShardInfo;
use crate::function_spec::FunctionSpec;
use crate::link::Link;
use crate::replacement::{Generation, Unlike};

/// A chain, and where its functions have their states in an entry. What packets pass is compiled as a whole where
/// [`AnyChain::new`] names the chain; from there on it is one type for all.
///
/// Another chain of the same functions, with other settings, can take its place while lanes run:
///
/// ```
/// # use rheostat_nf::{AnyChain, Cx, Generation, NetworkFunction, Outcome, Packet, Unlike, Verdict, link};
/// # struct Limiter { most: u32 }
/// # impl NetworkFunction for Limiter {
/// #     type Flow = u32;
/// #     type Shard = ();
/// #     fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, _: &mut u32) -> Outcome<Verdict> { Ok(Verdict::Forward) }
/// # }
/// let running = AnyChain::of(vec![link(Limiter { most: 10 })]).unwrap();
/// // Lanes run `running.service(...)`.
/// let next = running.next(vec![link(Limiter { most: 20 })]).unwrap();
/// let generation = running.replace_by(&next).unwrap();
/// assert!(running.pending(generation).is_empty(), "once each lane has begun a burst");
/// assert_eq!(running.replace_by(&AnyChain::of(Vec::new()).unwrap()), Err(Unlike::Functions));
/// ```
#[derive(Clone)]
pub struct AnyChain {
    chain: Arc<dyn Erased>,
    layout: Arc<StateLayout>,
    spec: FunctionSpec,
    objects: Option<Objects>,
    is_stateful: bool,
    is_shared: bool,
    walks: Arc<WalkBoard>,
}

impl AnyChain {
    /// `chain`, whose functions have their states in `layout`.
    pub fn new<C: Chain>(chain: C, layout: StateLayout) -> AnyChain {
        AnyChain::following(Arc::new(Succession::new(Arc::new(chain))), layout)
    }

    /// The same of chains that others follow, too.
    pub fn following<C: Chain>(chains: Arc<Succession<C>>, layout: StateLayout) -> AnyChain {
        let (_, chain) = chains.current();
        AnyChain {
            spec: chain.spec(),
            objects: chain.objects().cloned(),
            is_stateful: chain.is_stateful(),
            is_shared: C::SHARED,
            chain: Arc::new(Lineage { chains }),
            layout: Arc::new(layout),
            walks: Arc::default(),
        }
    }

    /// Any functions, one behind the other: packets from inside pass them in order, packets from outside in reverse. Without
    /// functions, packets are forwarded.
    ///
    /// A function behind others sees the packets that these forward, or for which they name devices. A flow is named by the fields
    /// of all functions' [packet sets](crate::FunctionSpec::packet_set). To a function that has flows of some protocols or of
    /// one side only, other packets are packets of no flow; one without flows sees all packets so.
    ///
    /// Each call of a function on shared objects is a transaction of its own. When a function behind it restarts a packet's flow,
    /// the function on shared objects sees the packet once more, as the first of the new flow.
    ///
    /// # Errors
    /// [`ChainError`] when these functions do not make a chain together.
    pub fn of(links: Vec<Box<dyn Link>>) -> Result<AnyChain, ChainError> {
        let mut layout = StateLayout::new();
        let chain = DynamicChain::new(links, &mut layout)?;
        Ok(AnyChain::new(chain, layout))
    }

    /// Any functions, as those of [`AnyChain::of`], that can take the place of this chain's ([`AnyChain::replace_by`]): they keep
    /// their states of flows where this chain's do.
    ///
    /// # Errors
    /// [`ChainError`] when these functions do not make a chain together, or one whose states are of other types.
    pub fn next(&self, links: Vec<Box<dyn Link>>) -> Result<AnyChain, ChainError> {
        let mut layout = self.layout.again();
        let running = self.chain.in_force().downcast::<DynamicChain>();
        let chain = match &running {
            Ok(running) => DynamicChain::next(links, &mut layout, running)?,
            Err(_) => DynamicChain::new(links, &mut layout)?,
        };
        Ok(AnyChain::new(chain, layout))
    }

    /// Puts `next`, which was built as the [next](AnyChain::next) of this chain, in its place: each lane uses it from its next burst
    /// on, or from its next regular turn, which comes twice a second at least. Flows live on, and shards keep what the functions do
    /// not adapt ([`ShardState::follow`](crate::ShardState::follow)). Packets wait for nothing. Returns the number of the
    /// replacement, for [`AnyChain::pending`].
    ///
    /// # Errors
    /// [`Unlike`] when `next` is a chain of other functions, or of other properties; nothing changes then.
    pub fn replace_by(&self, next: &AnyChain) -> Result<Generation, Unlike> {
        self.admits(next)?;
        self.chain.replace_by(&*next.chain).map(Generation).ok_or(Unlike::Functions)
    }

    /// Whether `next` can take the place of this chain ([`AnyChain::replace_by`]).
    ///
    /// # Errors
    /// [`Unlike`] when it cannot.
    pub fn admits(&self, next: &AnyChain) -> Result<(), Unlike> {
        if !self.chain.has_functions_of(&*next.chain) {
            return Err(Unlike::Functions);
        }
        if !self.layout.is_continued_by(&next.layout) {
            return Err(Unlike::Layout);
        }
        if self.objects != next.objects {
            return Err(Unlike::Objects);
        }
        self.spec.continued_by(&next.spec)
    }

    /// The lanes that may still use a chain before the one of this generation, in order. Once none does, no packet is handled by
    /// an earlier chain any more.
    pub fn pending(&self, generation: Generation) -> Vec<LaneId> {
        self.chain.pending(generation.0)
    }

    /// Whether flows are looked up at all.
    pub fn is_stateful(&self) -> bool {
        self.is_stateful
    }

    /// Whether its flows are in shards and nowhere else, so that claimants of a queue have to own these together.
    pub fn owns_flows(&self) -> bool {
        self.is_stateful && !self.is_shared
    }

    /// Properties of the functions together.
    pub fn spec(&self) -> &FunctionSpec {
        &self.spec
    }

    /// The objects that the functions share, if they share any.
    pub fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// Where clients begin walks through what the shards of the chain's lanes hold.
    pub fn walks(&self) -> &Arc<WalkBoard> {
        &self.walks
    }

    /// Where the functions have their states in an entry.
    pub fn layout(&self) -> &StateLayout {
        &self.layout
    }

    /// Adapts `steering` to the chain, as [`FunctionSpec::place`] does.
    ///
    /// # Errors
    /// As [`FunctionSpec::place`].
    pub fn steering_for(&self, steering: Steering) -> Result<Steering, SteeringError> {
        self.spec.place(steering)
    }

    /// Makes every shard of a run that `steering` places packets in, with an empty table of `table.capacity` flows each, if the
    /// chain keeps state. Each shard has a random number of its own, which follows from `seed`.
    ///
    /// # Errors
    /// [`ArenaError`] when the operating system does not give the memory.
    pub fn make_shards(
        &self,
        steering: &Arc<Steering>,
        table: TableConfig,
        hasher: FlowHasher,
        fragments: FragmentConfig,
        seed: u64,
    ) -> Result<Vec<Box<Shard>>, ArenaError> {
        let shards = steering.shards();
        // Without state, the tables stay empty.
        let flows = if self.is_stateful { table.capacity } else { 1 };
        let table = TableConfig { aliases: table.aliases || self.spec.aliases, capacity: flows };
        let tables = Arena::new(shards, table, self.layout.clone(), hasher)?.into_tables();
        let shard = |(number, table)| {
            let id = ShardId(number as u16);
            // SplitMix64's increment: neighbouring shards get unrelated numbers.
            let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1));
            let info = ShardInfo { id, shards, seed, flows, hasher, steering: steering.clone() };
            self.chain.shard_with(info, table, FragmentTracker::new(fragments))
        };
        Ok(tables.into_iter().enumerate().map(shard).collect())
    }

    /// Bytes of one shard without its table, which has room for so many flows: those of the shard with what it points to, and
    /// those of tables that functions have of their own.
    pub fn bytes_beside(&self, flows: usize) -> BytesBeside {
        self.chain.bytes_with_shard(flows)
    }

    /// What the functions keep for one shard.
    pub fn shard(&self, shard: ShardInfo) -> Box<dyn Any + Send> {
        self.chain.make_local(shard)
    }

    /// The service of `lane`; with `network`, behind and before the network layer.
    pub fn service(
        &self,
        lane: LaneId,
        routes: &Routes,
        network: Option<&Arc<Network>>,
    ) -> Box<dyn Service> {
        self.chain.service(lane, routes.clone(), network.cloned(), self.walks.clone())
    }
}

impl fmt::Debug for AnyChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyChain").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// The chains of a run, one after the other, without their type.
trait Erased: Any + Send + Sync {
    fn shard_with(
        &self,
        info: ShardInfo,
        table: FlowTable,
        fragments: FragmentTracker,
    ) -> Box<Shard>;
    fn make_local(&self, info: ShardInfo) -> Box<dyn Any + Send>;
    fn bytes_with_shard(&self, flows: usize) -> BytesBeside;
    fn service(
        &self,
        lane: LaneId,
        routes: Routes,
        network: Option<Arc<Network>>,
        walks: Arc<WalkBoard>,
    ) -> Box<dyn Service>;
    /// The chain in force.
    fn in_force(&self) -> Arc<dyn Any + Send + Sync>;
    fn has_functions_of(&self, next: &dyn Erased) -> bool;
    /// The generation of the chain in force of `next`, which takes the place of this one's; `None` for one of another type.
    fn replace_by(&self, next: &dyn Erased) -> Option<u64>;
    fn pending(&self, generation: u64) -> Vec<LaneId>;
}

/// The chains of a run, one after the other.
struct Lineage<C> {
    chains: Arc<Succession<C>>,
}

impl<C: Chain> Lineage<C> {
    fn of(other: &dyn Erased) -> Option<&Lineage<C>> {
        let other: &dyn Any = other;
        other.downcast_ref()
    }

    fn local(&self, info: ShardInfo) -> ChainShard<C::Shard> {
        let (generation, chain) = self.chains.current();
        ChainShard::new(chain.shard(info.clone()), info, generation)
    }
}

impl<C: Chain> Erased for Lineage<C> {
    fn shard_with(
        &self,
        info: ShardInfo,
        table: FlowTable,
        fragments: FragmentTracker,
    ) -> Box<Shard> {
        Box::new(Shard { id: info.id, table, fragments, local: self.local(info) })
    }

    fn make_local(&self, info: ShardInfo) -> Box<dyn Any + Send> {
        Box::new(self.local(info))
    }

    fn bytes_with_shard(&self, flows: usize) -> BytesBeside {
        let BytesBeside { boxed, tables } = self.chains.current().1.bytes_beside(flows);
        BytesBeside { boxed: size_of::<Shard<ChainShard<C::Shard>>>() + boxed, tables }
    }

    fn service(
        &self,
        lane: LaneId,
        routes: Routes,
        network: Option<Arc<Network>>,
        walks: Arc<WalkBoard>,
    ) -> Box<dyn Service> {
        let service = ChainService::following(&self.chains, lane, routes).with_walks(walks);
        match network {
            Some(network) => Box::new(service.with_network(network)),
            None => Box::new(service),
        }
    }

    fn in_force(&self) -> Arc<dyn Any + Send + Sync> {
        self.chains.current().1
    }

    fn has_functions_of(&self, next: &dyn Erased) -> bool {
        let next = Lineage::<C>::of(next).map(|next| next.chains.current().1);
        next.is_some_and(|next| self.chains.current().1.has_functions_of(&next))
    }

    fn replace_by(&self, next: &dyn Erased) -> Option<u64> {
        let next = Lineage::<C>::of(next)?;
        Some(self.chains.replace(next.chains.current().1))
    }

    fn pending(&self, generation: u64) -> Vec<LaneId> {
        self.chains.pending(generation)
    }
}
