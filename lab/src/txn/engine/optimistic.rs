//! Transactions on shared objects.

use std::sync::Arc;

use rheostat_base::{LaneId, Time};
use rheostat_state::object::Vector;
use rheostat_state::txn::{Objects, Outcome, Txn};

use super::{Engine, Tries};
use crate::error::BenchError;
use crate::txn::packets::{ELEMENTS, TxnPacket};

/// After so many aborts of a single packet it runs alone, as in a run.
const TIMEOUT: u32 = 8;

/// A lane with its transactions.
#[derive(Debug)]
pub(crate) struct Optimistic {
    elements: Arc<Vector<u64>>,
    txn: Txn,
    /// Packets to a transaction for now: halved by a conflict, one more after each commit.
    size: usize,
}

impl Optimistic {
    fn attempt<const N: usize>(&mut self, packets: &[TxnPacket]) -> Outcome<u64> {
        let Optimistic { elements, txn, .. } = self;
        txn.begin(Time::ZERO);
        let mut sum = 0_u64;
        for packet in packets {
            let first = usize::from(packet.elements[0]);
            let value = match packet.writes {
                true => {
                    elements.update(txn, first, |value| std::mem::replace(value, *value + 1))?
                }
                false => elements.read(txn, first)?,
            };
            sum = sum.wrapping_add(value);
            for element in &packet.elements[1..N] {
                sum = sum.wrapping_add(elements.read(txn, usize::from(*element))?);
            }
        }
        txn.commit()?;
        Ok(sum)
    }
}

impl Engine for Optimistic {
    fn lanes(count: usize) -> Result<Vec<Optimistic>, BenchError> {
        let objects = Objects::new(count);
        let elements = Arc::new(Vector::new(&objects, "elements", vec![0; ELEMENTS]));
        let lane = |lane| {
            let txn = Txn::new(&objects, LaneId(lane as u16));
            Optimistic { elements: elements.clone(), txn, size: usize::MAX }
        };
        Ok((0..count).map(lane).collect())
    }

    #[inline]
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64 {
        let (mut sum, mut left, mut failed) = (0_u64, batch, 0);
        while !left.is_empty() {
            self.size = self.size.min(batch.len());
            let (part, behind) = left.split_at(self.size.min(left.len()));
            tries.all += 1;
            match self.attempt::<N>(part) {
                Ok(read) => {
                    sum = sum.wrapping_add(read);
                    (left, failed) = (behind, 0);
                    self.size += usize::from(part.len() >= self.size);
                }
                Err(_) => {
                    tries.aborted += 1;
                    self.txn.roll_back();
                    self.size = (part.len() / 2).max(1);
                    failed += u32::from(part.len() == 1);
                    if failed >= TIMEOUT {
                        self.txn.make_serial();
                    }
                }
            }
        }
        sum
    }

    fn end_burst(&mut self) {
        self.txn.rest();
    }

    fn total(lanes: &[Optimistic]) -> u64 {
        let Some(Optimistic { elements, txn, .. }) = lanes.first() else { return 0 };
        // Another transaction of a lane that does not run.
        let mut txn = Txn::new(txn.objects(), txn.lane());
        txn.begin(Time::ZERO);
        let read = |element| elements.read(&mut txn, element).expect("no other lane runs");
        (0..ELEMENTS).map(read).sum()
    }
}
