//! A lock per element, all of a packet's taken before the first access and given back after the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Engine, Tries};
use crate::error::BenchError;
use crate::txn::lock::ReadWrite;
use crate::txn::packets::{ELEMENTS, TxnPacket};

/// A lane with its share of the elements.
#[derive(Debug)]
pub(crate) struct TwoPhase(Arc<[Element]>);

/// On a cache line of its own, together with its lock.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Element {
    lock: ReadWrite,
    value: AtomicU64,
}

impl TwoPhase {
    /// The elements of a packet in the order in which all lanes lock them, so that no two wait for each
    /// other; each with whether it is written.
    #[inline]
    fn locks<const N: usize>(&self, packet: &TxnPacket, mut act: impl FnMut(&Element, bool)) {
        let first = packet.elements[0];
        if N == 1 {
            return act(&self.0[usize::from(first)], packet.writes);
        }
        let mut order: [u16; N] = std::array::from_fn(|at| packet.elements[at]);
        order.sort_unstable();
        let mut before = None;
        for element in order {
            if before != Some(element) {
                act(&self.0[usize::from(element)], packet.writes && element == first);
            }
            before = Some(element);
        }
    }
}

impl Engine for TwoPhase {
    fn lanes(count: usize) -> Result<Vec<TwoPhase>, BenchError> {
        let elements: Arc<[Element]> = (0..ELEMENTS).map(|_| Element::default()).collect();
        Ok((0..count).map(|_| TwoPhase(elements.clone())).collect())
    }

    /// Packet by packet: to lock for several saves nothing.
    #[inline]
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64 {
        *tries += Tries::successful(batch.len());
        let mut sum = 0_u64;
        for packet in batch {
            self.locks::<N>(packet, |element, writes| element.lock.lock(writes));
            let value = |element: u16| self.0[usize::from(element)].value.load(Ordering::Relaxed);
            let first = value(packet.elements[0]);
            sum = sum.wrapping_add(first);
            for element in &packet.elements[1..N] {
                sum = sum.wrapping_add(value(*element));
            }
            if packet.writes {
                let element = &self.0[usize::from(packet.elements[0])];
                element.value.store(first + 1, Ordering::Relaxed);
            }
            self.locks::<N>(packet, |element, wrote| element.lock.unlock(wrote));
        }
        sum
    }

    fn total(lanes: &[TwoPhase]) -> u64 {
        let elements = lanes.first().into_iter().flat_map(|lane| lane.0.iter());
        elements.map(|element| element.value.load(Ordering::Relaxed)).sum()
    }
}
