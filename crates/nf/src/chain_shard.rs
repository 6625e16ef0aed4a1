//! The functions' states of one shard, and by which chain of a run these are.

use rheostat_state::{FlowTable, Shard};

use crate::chain::Chain;
use crate::function::ShardInfo;

/// What a chain keeps for one shard as a whole.
#[derive(Debug)]
pub struct ChainShard<S> {
    /// The functions' states.
    pub state: S,
    origin: ShardInfo,
    /// The generation of the chain that the states are adapted to.
    generation: u64,
}

impl<S> ChainShard<S> {
    /// The states of a new shard, made by the chain of this generation.
    pub(crate) fn new(state: S, origin: ShardInfo, generation: u64) -> ChainShard<S> {
        ChainShard { state, origin, generation }
    }

    /// Adapts the states to a chain that has taken the place of the one that they are by, unless they are adapted already.
    pub(crate) fn follow<C: Chain<Shard = S>>(&mut self, chain: &C, generation: u64) {
        if self.generation < generation {
            chain.follow(&mut self.state, &self.origin);
            self.generation = generation;
        }
    }
}

/// The flows of a shard, and the functions' states of it.
#[inline]
pub(crate) fn split<C: Chain>(shard: &mut Shard) -> (&mut FlowTable, &mut C::Shard) {
    let (table, local) = shard.split::<ChainShard<C::Shard>>();
    (table, &mut local.state)
}
