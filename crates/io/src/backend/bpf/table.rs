//! The indirection table that programs in the kernel look buckets up in.

use std::sync::atomic::Ordering;

use rheostat_base::QueueId;
use rheostat_steer::{Fence, IndirectionTable, RewriteError};

use super::fence::{FenceMode, Fencer};
use super::shared_array::SharedArray;

/// A table in memory that kernel and process share.
pub(super) struct KernelTable {
    entries: SharedArray,
    queues: usize,
    fencer: Fencer,
    mode: FenceMode,
}

impl KernelTable {
    /// A table over `entries`, laid round the queues in turn.
    pub(super) fn new(entries: SharedArray, queues: u16, mode: FenceMode) -> KernelTable {
        let table = KernelTable { entries, queues: queues.into(), fencer: Fencer::new(), mode };
        for bucket in 0..table.len() {
            table.store(bucket, QueueId((bucket % table.queues) as u16));
        }
        table
    }

    fn store(&self, bucket: usize, queue: QueueId) {
        // Relaxed: an entry stands alone, and the fence states when all processors have seen it.
        self.entries.u32(bucket, 0).store(queue.0.into(), Ordering::Relaxed);
    }

    /// A fence for a store of another kind, made before.
    pub(super) fn fence(&self) -> Fence {
        self.fencer.fence(self.mode)
    }
}

impl IndirectionTable for KernelTable {
    fn len(&self) -> usize {
        self.entries.entries()
    }

    fn read(&self) -> Vec<QueueId> {
        let load = |bucket| self.entries.u32(bucket, 0).load(Ordering::Relaxed);
        (0..self.len()).map(|bucket| QueueId(load(bucket) as u16)).collect()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        RewriteError::check(entries, self.len(), self.queues)?;
        for (bucket, queue) in entries.iter().enumerate() {
            self.store(bucket, *queue);
        }
        Ok(self.fence())
    }

    fn is_strict(&self) -> bool {
        self.mode == FenceMode::Strict
    }
}
