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
        for line in self.lines(hash) {
            super::prefetch(std::ptr::without_provenance(line));
        }
    }

    /// The addresses of the index's bucket that is the hash's home, and of the table.
    #[inline(always)]
    fn lines(self, hash: FlowHash) -> [usize; 2] {
        let home = Index::home(hash, self.count.get()) as usize;
        [self.buckets + home * size_of::<Bucket>(), self.table]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{FlowHasher, FlowTable, StateLayout, TableConfig};

    #[test]
    fn a_hint_leads_to_the_home_bucket_of_each_hash_and_to_the_table() {
        let config = TableConfig { capacity: 1_000, aliases: false };
        let layout = Arc::new(StateLayout::new());
        let table = FlowTable::new(config, layout, FlowHasher::fixed()).unwrap();
        let (first, count) = table.index.buckets();
        let hashes = (0..64_u64).map(|n| FlowHash(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        for hash in hashes {
            let home = first.wrapping_add(Index::home(hash, count) as usize);
            let expected = [home.addr(), std::ptr::from_ref(&table).addr()];
            assert_eq!(table.prefetch_hint().lines(hash), expected);
        }
    }
}
