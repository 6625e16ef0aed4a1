//! The concurrent flow table of `rheo bench sharing`, an element being a flow.

use std::sync::Arc;

use super::{Engine, Tries};
use crate::error::BenchError;
use crate::sharing::{SharedTables, SharingAction, SharingArrivals, Tables};
use crate::txn::packets::{ELEMENTS, TxnPacket};

/// A lane with its share of the table.
pub(crate) struct SharedTable(Arc<TxnFlows>);

struct TxnFlows {
    /// Of these only the flows; there are no packets.
    arrivals: SharingArrivals,
    tables: SharedTables,
}

impl Engine for SharedTable {
    fn lanes(count: usize) -> Result<Vec<SharedTable>, BenchError> {
        let arrivals = SharingArrivals::draw(ELEMENTS as u32, 0, count)?;
        let tables = SharedTables::new(&arrivals, SharingAction::Write)?;
        let flows = Arc::new(TxnFlows { arrivals, tables });
        Ok((0..count).map(|_| SharedTable(flows.clone())).collect())
    }

    /// Access by access.
    #[inline]
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64 {
        *tries += Tries::successful(batch.len());
        let TxnFlows { arrivals, tables } = &*self.0;
        let (mut tables, mut sum) = (tables, 0_u64);
        for packet in batch {
            let first = &arrivals.flows[usize::from(packet.elements[0])];
            sum = sum.wrapping_add(tables.with(first, |state| {
                let before = state.packets();
                if packet.writes {
                    state.pass(0);
                }
                before
            }));
            for element in &packet.elements[1..N] {
                let flow = &arrivals.flows[usize::from(*element)];
                sum = sum.wrapping_add(tables.with(flow, |state| state.packets()));
            }
        }
        sum
    }

    fn total(lanes: &[SharedTable]) -> u64 {
        let Some(SharedTable(flows)) = lanes.first() else { return 0 };
        let mut tables = &flows.tables;
        flows.arrivals.flows.iter().map(|flow| tables.with(flow, |state| state.packets())).sum()
    }
}
