//! What lanes report of their load.

use std::sync::Arc;

use rheostat_base::{Counter, ShardId};

/// What lanes report of their load while a run goes on. Decided once per run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadReporting {
    /// Nothing, so that live figures show no load: to measure what the rest costs.
    Nothing,
    /// How busy lanes are, as people want to see it.
    Lanes,
    /// That, and what each shard has cost, as a policy that moves shards needs it. Packets of services without state are
    /// sorted by their shards for this.
    #[default]
    Shards,
}

/// Packets of each shard that one lane has processed. The lane is the only writer; any thread may read while
/// it runs, and sees what each shard has cost this lane since the start of the run.
///
/// Time is not taken per packet: a shard's share of its lane's busy time is that of its packets and bytes, at costs that the
/// controller fits to the lanes' busy times.
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
    /// Counts for `shards` shards, if a run reports so much.
    pub fn new(shards: usize, reporting: LoadReporting) -> ShardLoads {
        let counted = if reporting == LoadReporting::Shards { shards } else { 0 };
        ShardLoads((0..counted).map(|_| ShardLoad::default()).collect())
    }

    /// What each shard has cost, in the order of shards; nothing if shards are not counted.
    pub fn iter(&self) -> impl Iterator<Item = &ShardLoad> {
        self.0.iter()
    }

    /// Packets of each shard; none if shards are not counted.
    pub fn packets(&self) -> Vec<u64> {
        self.iter().map(|load| load.packets.get()).collect()
    }

    /// Their bytes.
    pub fn bytes(&self) -> Vec<u64> {
        self.iter().map(|load| load.bytes.get()).collect()
    }

    /// Counts a packet of `bytes` bytes, if shards are counted: whether they are costs no more to ask than
    /// whether the shard's number is in range.
    #[inline(always)]
    pub(crate) fn count(&self, shard: ShardId, bytes: usize) {
        if let Some(load) = self.0.get(shard.index()) {
            load.packets.increment();
            load.bytes.add(bytes as u64);
        }
    }
}
