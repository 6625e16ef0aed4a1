//! Nothing is shared.

use super::{Engine, Tries};
use crate::error::BenchError;
use crate::txn::packets::{ELEMENTS, TxnPacket};

/// A lane with elements of its own.
#[derive(Debug)]
pub(crate) struct Unshared(Vec<u64>);

impl Engine for Unshared {
    fn lanes(count: usize) -> Result<Vec<Unshared>, BenchError> {
        Ok((0..count).map(|_| Unshared(vec![0; ELEMENTS])).collect())
    }

    #[inline]
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64 {
        *tries += Tries::successful(batch.len());
        let values = &mut self.0;
        let mut sum = 0_u64;
        for packet in batch {
            let first = usize::from(packet.elements[0]);
            sum = sum.wrapping_add(values[first]);
            for element in &packet.elements[1..N] {
                sum = sum.wrapping_add(values[usize::from(*element)]);
            }
            if packet.writes {
                values[first] += 1;
            }
        }
        sum
    }

    fn total(lanes: &[Unshared]) -> u64 {
        lanes.iter().flat_map(|lane| &lane.0).sum()
    }
}
