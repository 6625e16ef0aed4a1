//! The shards of a run, with what the functions of a chain keep in each.

use std::sync::Arc;

use rheostat_base::ShardId;
use rheostat_state::{
    Arena, ArenaError, FlowHasher, FragmentConfig, FragmentTracker, Shard, StateLayout, TableConfig,
};
use rheostat_steer::Steering;

use crate::chain::Chain;
use crate::function::ShardInfo;

/// The random numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// What each shard's own number is derived from.
    pub shards: u64,
}

/// Makes every shard of a run that `steering` places packets in, with an empty table of `table.capacity` flows each, if the
/// chain keeps state.
///
/// # Errors
/// [`ArenaError`] when the operating system does not give the memory.
pub fn make_shards<C: Chain>(
    chain: &C,
    steering: &Arc<Steering>,
    table: TableConfig,
    layout: Arc<StateLayout>,
    hasher: FlowHasher,
    fragments: FragmentConfig,
    seeds: Seeds,
) -> Result<Vec<Box<Shard>>, ArenaError> {
    let shards = steering.shards();
    // Without state, the tables stay empty.
    let capacity = if C::STATEFUL { table.capacity } else { 1 };
    let table = TableConfig { aliases: table.aliases || chain.spec().aliases, capacity };
    let tables = Arena::new(shards, table, layout, hasher)?.into_tables();
    let shard = |(number, table)| {
        let id = ShardId(number as u16);
        // SplitMix64's increment: neighbouring shards get unrelated numbers.
        let seed =
            seeds.shards.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1));
        let (flows, steering) = (capacity, steering.clone());
        let local = chain.shard(ShardInfo { id, shards, seed, flows, hasher, steering });
        Box::new(Shard { id, table, fragments: FragmentTracker::new(fragments), local })
            as Box<Shard>
    };
    Ok(tables.into_iter().enumerate().map(shard).collect())
}
