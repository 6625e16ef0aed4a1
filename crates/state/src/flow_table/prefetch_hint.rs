//! Where lookups in a table will read, known without a look at the table.

use std::num::NonZeroU32;

use super::bucket::Bucket;
use super::index::Index;
use crate::FlowHash;

/// Addresses to be fetched ahead of lookups in a [`FlowTable`](super::FlowTable): 24 bytes, so that those of many tables stay in
/// the cache together. Nothing is ever read through them, so that one that is out of date does no harm.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchHint {
    table: usize,
    buckets: usize,
    count: NonZeroU32,
}

impl PrefetchHint {
    pub(super) fn new(table: *const u8, index: &Index) -> PrefetchHint {
        let (buckets, count) = index.buckets();
        let count = NonZeroU32::new(count).expect("an index has a bucket");
        PrefetchHint { table: table.addr(), buckets: buckets.addr(), count }
    }

    /// Asks the processor to fetch the first line of the table, and that of the index where `hash` leads.
    #[inline(always)]
    pub fn prefetch(self, hash: FlowHash) {
        let home = Index::home(hash, self.count.get()) as usize;
        super::prefetch(std::ptr::without_provenance(self.buckets + home * size_of::<Bucket>()));
        super::prefetch(std::ptr::without_provenance(self.table));
    }
}
