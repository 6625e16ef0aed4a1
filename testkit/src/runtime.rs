//! Settings and shards of lanes, for tests that care about neither.

use std::sync::Arc;

use rheostat_base::ShardId;
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::RuntimeConfig;
use rheostat_state::{
    FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard, StateLayout, TableConfig,
};
use rheostat_steer::{HashKey, Orientation, Steering};

/// A pool of `buffers` buffers of the usual size.
///
/// # Panics
/// When there is no memory for it.
pub fn pool(buffers: u32) -> Mempool {
    let config = MempoolConfig { buffers, ..MempoolConfig::default() };
    Mempool::new(&config).expect("memory for packets")
}

/// `lanes` lanes, each with a worker that polls without pause and is bound to no core, over `shards` shards. Time is that
/// of the poll; what lanes report is the load of shards.
///
/// # Panics
/// When `shards` is no power of two.
pub fn config(lanes: usize, shards: usize, pool: Mempool) -> RuntimeConfig {
    let steering = Steering::new(&HashKey::MICROSOFT, shards, shards, vec![Orientation::Inside]);
    RuntimeConfig::new(
        lanes,
        pool,
        Arc::new(steering.expect("a power of two")),
        FlowHasher::fixed(),
    )
}

/// `count` shards with room for `flows` flows each, and with `local` as what the service keeps for each.
///
/// # Panics
/// When there is no memory for them.
pub fn shards<L: Send + Clone + 'static>(
    count: usize,
    flows: usize,
    local: L,
) -> impl Iterator<Item = Box<Shard>> {
    (0..count).map(move |id| shard(ShardId(id as u16), flows, local.clone()))
}

/// A shard with room for `flows` flows, and with `local` as what the service keeps for it.
///
/// # Panics
/// When there is no memory for it.
pub fn shard<L: Send + 'static>(id: ShardId, flows: usize, local: L) -> Box<Shard> {
    let table = TableConfig { capacity: flows, aliases: false };
    let table = FlowTable::new(table, Arc::new(StateLayout::new()), FlowHasher::fixed());
    let fragments = FragmentTracker::new(FragmentConfig::default());
    Box::new(Shard { id, table: table.expect("memory for flows"), fragments, local })
}
