//! The indirection table of whatever stands behind the queues of a device.

use std::sync::Arc;

use rheostat_base::QueueId;
use rheostat_steer::{Fence, IndirectionTable, RewriteError};

use super::device::Shared;
use crate::lock::lock;

/// The table of the device behind; a rewrite while there is none is kept for the next one.
pub(super) struct ReopenableTable {
    pub(super) shared: Arc<Shared>,
    pub(super) entries: usize,
}

impl IndirectionTable for ReopenableTable {
    fn len(&self) -> usize {
        self.entries
    }

    fn read(&self) -> Vec<QueueId> {
        lock(&self.shared.behind).table.as_ref().map_or_else(Vec::new, |table| table.read())
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        // Locked meanwhile, so that a device that is opened anew gets these entries or is rewritten itself.
        let behind = lock(&self.shared.behind);
        match &behind.table {
            Some(table) => table.rewrite(entries),
            None => Ok(Fence::new(|| true)),
        }
    }

    fn is_strict(&self) -> bool {
        lock(&self.shared.behind).table.as_ref().is_none_or(|table| table.is_strict())
    }
}
