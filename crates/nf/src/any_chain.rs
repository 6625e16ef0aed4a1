//! A chain by what all chains have in common, for code that learns only at run time which one it is.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rheostat_ip::Network;
use rheostat_run::{Routes, Service};
use rheostat_state::txn::Objects;
use rheostat_state::{ArenaError, FlowHasher, FragmentConfig, Shard, StateLayout, TableConfig};
use rheostat_steer::{Steering, SteeringError};

use crate::chain::dynamic::{ChainError, DynamicChain};
use crate::chain::{Chain, Passthrough};
use crate::chain_service::{self, ChainService, Seeds};
use crate::function::ShardInfo;
use crate::function_spec::FunctionSpec;
use crate::link::Link;

/// A chain, and where its functions have their states in an entry. What packets pass is compiled as a whole where
/// [`AnyChain::new`] names the chain; from there on it is one type for all.
#[derive(Clone)]
pub struct AnyChain {
    chain: Arc<dyn Erased>,
    layout: Arc<StateLayout>,
    spec: FunctionSpec,
    objects: Option<Objects>,
    is_stateful: bool,
    is_shared: bool,
}

impl AnyChain {
    /// `chain`, whose functions have their states in `layout`.
    pub fn new<C: Chain>(chain: C, layout: StateLayout) -> AnyChain {
        AnyChain {
            spec: chain.spec(),
            objects: chain.objects().cloned(),
            is_stateful: C::STATEFUL,
            is_shared: C::SHARED,
            chain: Arc::new(chain),
            layout: Arc::new(layout),
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
        if links.is_empty() {
            return Ok(AnyChain::new(Passthrough, layout));
        }
        let chain = DynamicChain::new(links, &mut layout)?;
        Ok(AnyChain::new(chain, layout))
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

    /// Where the functions have their states in an entry.
    pub fn layout(&self) -> &StateLayout {
        &self.layout
    }

    /// Adapts `steering` to the chain, as [`steering_for`](crate::steering_for) does.
    ///
    /// # Errors
    /// As [`steering_for`](crate::steering_for).
    pub fn steering_for(&self, steering: Steering) -> Result<Steering, SteeringError> {
        self.spec.place(steering)
    }

    /// Makes every shard of a run that `steering` places packets in, with an empty table of `table.capacity` flows each.
    ///
    /// # Errors
    /// [`ArenaError`] when the operating system does not give the memory.
    pub fn make_shards(
        &self,
        steering: &Arc<Steering>,
        table: TableConfig,
        hasher: FlowHasher,
        fragments: FragmentConfig,
        seeds: Seeds,
    ) -> Result<Vec<Box<Shard>>, ArenaError> {
        self.chain.make_shards(steering, table, self.layout.clone(), hasher, fragments, seeds)
    }

    /// Bytes of a shard, without what it points to.
    pub fn shard_bytes(&self) -> usize {
        self.chain.shard_bytes()
    }

    /// Bytes of the tables that functions have of their own in one shard, beside that of the shard, which has room for so many
    /// flows.
    pub fn own_table_bytes(&self, flows: usize) -> usize {
        self.chain.own_table_bytes(flows)
    }

    /// What the functions keep for one shard.
    pub fn shard(&self, shard: ShardInfo) -> Box<dyn Any + Send> {
        self.chain.make_shard(shard)
    }

    /// The service of one lane; with `network`, behind and before the network layer.
    pub fn service(&self, routes: &Routes, network: Option<&Arc<Network>>) -> Box<dyn Service> {
        self.chain.clone().service(routes.clone(), network.cloned())
    }
}

impl fmt::Debug for AnyChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyChain").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A [`Chain`] without its types.
trait Erased: Send + Sync {
    fn make_shards(
        &self,
        steering: &Arc<Steering>,
        table: TableConfig,
        layout: Arc<StateLayout>,
        hasher: FlowHasher,
        fragments: FragmentConfig,
        seeds: Seeds,
    ) -> Result<Vec<Box<Shard>>, ArenaError>;
    fn shard_bytes(&self) -> usize;
    fn own_table_bytes(&self, flows: usize) -> usize;
    fn make_shard(&self, shard: ShardInfo) -> Box<dyn Any + Send>;
    fn service(self: Arc<Self>, routes: Routes, network: Option<Arc<Network>>) -> Box<dyn Service>;
}

impl<C: Chain> Erased for C {
    fn make_shards(
        &self,
        steering: &Arc<Steering>,
        table: TableConfig,
        layout: Arc<StateLayout>,
        hasher: FlowHasher,
        fragments: FragmentConfig,
        seeds: Seeds,
    ) -> Result<Vec<Box<Shard>>, ArenaError> {
        chain_service::make_shards(self, steering, table, layout, hasher, fragments, seeds)
    }

    fn shard_bytes(&self) -> usize {
        size_of::<Shard<C::Shard>>() + self.boxed_bytes()
    }

    fn own_table_bytes(&self, flows: usize) -> usize {
        Chain::own_table_bytes(self, flows)
    }

    fn make_shard(&self, shard: ShardInfo) -> Box<dyn Any + Send> {
        Box::new(self.shard(shard))
    }

    fn service(self: Arc<Self>, routes: Routes, network: Option<Arc<Network>>) -> Box<dyn Service> {
        let service = ChainService::new(self, routes);
        match network {
            Some(network) => Box::new(service.with_network(network)),
            None => Box::new(service),
        }
    }
}
