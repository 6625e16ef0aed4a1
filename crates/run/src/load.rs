//! What each shard costs the lane that has it.

use std::sync::Arc;

use rheostat_base::{Counter, ShardId};

/// Packets of each shard that one lane has processed. The lane is the only writer; anyone may read while
/// it runs, and sees what each shard has cost this lane since the start of the run.
///
/// Time is not taken per packet: a shard's share of its lane's busy time is that of its packets.
#[derive(Clone, Debug)]
pub struct ShardLoads(Arc<[ShardLoad]>);

/// What one shard has cost one lane.
#[derive(Debug, Default)]
pub struct ShardLoad {
    /// Packets.
    pub packets: Counter,
    /// Their bytes.
    pub bytes: Counter,
}

impl ShardLoads {
    /// Counts for `shards` shards.
    pub fn new(shards: usize) -> ShardLoads {
        ShardLoads((0..shards).map(|_| ShardLoad::default()).collect())
    }

    /// What a shard has cost.
    pub fn get(&self, shard: ShardId) -> &ShardLoad {
        &self.0[shard.index()]
    }

    /// What each shard has cost, in the order of shards.
    pub fn iter(&self) -> impl Iterator<Item = &ShardLoad> {
        self.0.iter()
    }

    /// Counts a packet of `bytes` bytes.
    #[inline(always)]
    pub(crate) fn count(&self, shard: ShardId, bytes: usize) {
        let load = &self.0[shard.index()];
        load.packets.increment();
        load.bytes.add(bytes as u64);
    }
}
