//! One lock for everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Engine, Tries};
use crate::error::BenchError;
use crate::txn::lock::Exclusive;
use crate::txn::packets::{ELEMENTS, TxnPacket};

/// A lane with its share of the elements, which lie as close as they can.
#[derive(Debug)]
pub(crate) struct GlobalLock(Arc<Elements>);

#[derive(Debug)]
struct Elements {
    lock: Exclusive,
    /// Only the holder of the lock touches them; they are atomic because the compiler does not know that. Relaxed loads and
    /// stores cost what plain ones cost.
    values: Vec<AtomicU64>,
}

impl Engine for GlobalLock {
    fn lanes(count: usize) -> Result<Vec<GlobalLock>, BenchError> {
        let values = (0..ELEMENTS).map(|_| AtomicU64::new(0)).collect();
        let elements = Arc::new(Elements { lock: Exclusive::default(), values });
        Ok((0..count).map(|_| GlobalLock(elements.clone())).collect())
    }

    #[inline]
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64 {
        *tries += Tries::successful(1);
        let Elements { lock, values } = &*self.0;
        lock.with(|| {
            let mut sum = 0_u64;
            for packet in batch {
                let first = &values[usize::from(packet.elements[0])];
                let value = first.load(Ordering::Relaxed);
                sum = sum.wrapping_add(value);
                for element in &packet.elements[1..N] {
                    sum = sum.wrapping_add(values[usize::from(*element)].load(Ordering::Relaxed));
                }
                if packet.writes {
                    first.store(value + 1, Ordering::Relaxed);
                }
            }
            sum
        })
    }

    fn total(lanes: &[GlobalLock]) -> u64 {
        let values = lanes.first().into_iter().flat_map(|lane| &lane.0.values);
        values.map(|value| value.load(Ordering::Relaxed)).sum()
    }
}
