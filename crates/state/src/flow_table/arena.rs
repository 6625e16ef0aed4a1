//! The memory of all tables of a process.

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::MmapMut;
use thiserror::Error;

use super::FlowTable;
use super::bucket::Bucket;
use super::entries::Entries;
use super::entry::LINE;
use super::index::Index;
use super::layout::StateLayout;
use crate::FlowHasher;

/// Entries a table has beyond its capacity, so that flows ended in a burst, whose entries rest until
/// it is over, take no room from the flows that begin in it: two bursts' worth.
const SPARE: usize = 64;

/// The highest number of entries of one table: links need the bit above.
const MAX_ENTRIES: usize = 1 << 30;

/// How large each table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableConfig {
    /// Flows one table holds at most.
    pub capacity: usize,
    /// Whether every flow may have a second key: doubles the index, and the entries, of which only
    /// aliases of IPv6 use the second half.
    pub aliases: bool,
}

impl TableConfig {
    /// Entries of one table.
    fn entries(self) -> usize {
        self.keys().saturating_mul(self.capacity.saturating_add(SPARE))
    }

    /// Buckets of one table's index.
    fn buckets(self) -> usize {
        Index::buckets_for(self.keys().saturating_mul(self.capacity))
    }

    fn keys(self) -> usize {
        if self.aliases { 2 } else { 1 }
    }

    /// Bytes of one table whose entries are laid out so, once all of it has been in use; `None` for more than can be
    /// addressed.
    pub fn bytes(self, layout: &StateLayout) -> Option<usize> {
        let entries = self.entries().checked_mul(layout.entry_size())?;
        let buckets = self.buckets().checked_mul(size_of::<Bucket>())?;
        entries.checked_add(buckets)
    }
}

/// Why no memory was laid out.
#[derive(Debug, Error)]
pub enum ArenaError {
    /// No table, or tables without flows.
    #[error("a flow table needs room for at least one flow")]
    Empty,
    /// Tables beyond what the index can number or the process can address.
    #[error("{0} flows per table are more than a table can hold")]
    TooLarge(usize),
    /// The operating system did not give the memory.
    #[error("cannot map {bytes} bytes for flow tables: {source}")]
    Map {
        /// The size asked for.
        bytes: usize,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// What the tables of one arena share: it stays while any of them does.
pub(super) struct SharedArena {
    /// Keeps the mapping alive; accessed through the tables' own pointers only.
    _memory: MmapMut,
    pub(super) layout: Arc<StateLayout>,
    pub(super) hasher: FlowHasher,
}

/// The memory for the flow tables of all shards: one mapping, on huge pages where the kernel grants
/// them on advice, of which a page costs nothing until a flow lies in it. First come the indices of
/// all tables, then the entries, so that the indices, which every lookup reads at random, share as
/// few pages as they can.
pub struct Arena {
    base: NonNull<u8>,
    shards: usize,
    buckets: usize,
    entries: usize,
    config: TableConfig,
    shared: Arc<SharedArena>,
}

impl Arena {
    /// Maps the memory for `shards` tables.
    ///
    /// # Errors
    /// When the sizes are zero or too large, or the memory is not granted.
    pub fn new(
        shards: usize,
        config: TableConfig,
        layout: Arc<StateLayout>,
        hasher: FlowHasher,
    ) -> Result<Arena, ArenaError> {
        let TableConfig { capacity, .. } = config;
        if shards == 0 || capacity == 0 {
            return Err(ArenaError::Empty);
        }
        if capacity > MAX_ENTRIES / 2 - SPARE {
            return Err(ArenaError::TooLarge(capacity));
        }
        let (buckets, entries) = (config.buckets(), config.entries());
        let bytes = config.bytes(&layout).and_then(|table| table.checked_mul(shards));
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or(ArenaError::TooLarge(capacity))?;
        let mut memory =
            MmapMut::map_anon(bytes).map_err(|source| ArenaError::Map { bytes, source })?;
        // A refusal costs speed, not correctness.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = memory.advise(memmap2::Advice::HugePage);
        let base = NonNull::new(memory.as_mut_ptr()).expect("a mapping is never at address zero");
        let shared = Arc::new(SharedArena { _memory: memory, layout, hasher });
        Ok(Arena { base, shards, buckets, entries, config, shared })
    }

    /// The tables, one per shard.
    pub fn into_tables(self) -> Vec<FlowTable> {
        (0..self.shards).map(|shard| self.table(shard)).collect()
    }

    /// The table of `shard`; called once for each.
    fn table(&self, shard: usize) -> FlowTable {
        let stride = self.shared.layout.entry_size();
        let beyond_line = self.config.aliases || self.shared.layout.reaches_beyond_line();
        let index_bytes = self.buckets * size_of::<Bucket>();
        let entry_bytes = self.entries * stride;
        // SAFETY: `new` mapped room for the indices of all shards and then for their entries, and
        // `shard` is one of them.
        let (buckets, entries) = unsafe {
            let entries = self.base.add(self.shards * index_bytes);
            (self.base.add(shard * index_bytes), entries.add(shard * entry_bytes))
        };
        debug_assert_eq!(entries.as_ptr() as usize % LINE, 0);
        // SAFETY: a mapping is zero and aligned to a page, and both parts are whole lines from its
        // start; no two shards' parts overlap and each shard's table is made once (`into_tables`
        // consumes the arena); the table keeps the mapping alive through `shared`.
        let (index, entries) = unsafe {
            (
                Index::new(buckets.cast(), self.buckets as u32),
                Entries::new(entries, stride as u32, self.entries as u32, beyond_line),
            )
        };
        FlowTable::with(index, entries, self.config, self.shared.clone())
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("shards", &self.shards).field("config", &self.config).finish()
    }
}
