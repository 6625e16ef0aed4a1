//! The indirection table of a pumped NIC.

use std::sync::{Arc, Mutex};

use rheostat_base::QueueId;
use rheostat_steer::{Fence, GenerationTable, IndirectionTable, RewriteError};

use super::Pump;
use crate::lock::lock;

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
        lock(&self.entries).len()
    }

    fn read(&self) -> Vec<QueueId> {
        lock(&self.entries).read()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        // Held to the end: tables come to the queues in the order in which they can be read.
        let table = lock(&self.entries);
        let fence = table.rewrite(entries)?;
        self.pump.rewrite(entries);
        table.acknowledge();
        Ok(fence)
    }
}
