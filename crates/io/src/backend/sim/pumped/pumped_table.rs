//! The indirection table of a pumped NIC.

use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::QueueId;
use rheostat_steer::{Fence, GenerationTable, IndirectionTable, RewriteError};

use super::Pump;

/// A table that holds from the moment it is rewritten: packets that are due later are placed by the new entries, and the
/// fence has passed when [`IndirectionTable::rewrite`] returns.
pub(in crate::backend::sim) struct PumpedTable {
    entries: Mutex<Arc<GenerationTable>>,
    pump: Arc<Pump>,
}

impl PumpedTable {
    /// The table of `pump`, which was made with the entries that `entries` has.
    pub(in crate::backend::sim) fn new(
        entries: Arc<GenerationTable>,
        pump: Arc<Pump>,
    ) -> PumpedTable {
        PumpedTable { entries: Mutex::new(entries), pump }
    }
}

impl IndirectionTable for PumpedTable {
    fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn read(&self) -> Vec<QueueId> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).read()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        // Held to the end: tables come to the queues in the order in which they can be read.
        let table = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let fence = table.rewrite(entries)?;
        self.pump.rewrite(entries);
        table.acknowledge();
        Ok(fence)
    }
}
