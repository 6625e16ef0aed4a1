//! A ring of bytes that grows up to a limit.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Mark, MemoryBudget};

/// Bytes in order, the first of which leaves first. Memory is allocated when it is needed, doubling up to the limit; while the
/// ring grows, the old bytes exist beside the new ones.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Buffer,
    head: u32,
    len: u32,
    limit: u32,
    /// So much may be allocated while memory is scarce.
    under_pressure: u32,
}

/// Bytes that are allocated at first.
const FIRST: usize = 128;

/// The largest limit: windows are no larger.
pub(crate) const MAX_LIMIT: usize = 1 << 30;

impl Ring {
    /// Holds at most `limit` bytes, and no more than [`MAX_LIMIT`].
    pub(crate) fn new(limit: usize) -> Ring {
        Ring {
            bytes: Buffer::default(),
            head: 0,
            len: 0,
            limit: limit.min(MAX_LIMIT) as u32,
            under_pressure: u32::MAX,
        }
    }

    /// Charges this budget for what is allocated.
    pub(crate) fn set_memory(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.bytes.move_to(budget);
    }

    /// The budget that is charged.
    pub(crate) fn memory(&self) -> Option<&Arc<MemoryBudget>> {
        self.bytes.budget()
    }

    /// Lets the ring grow to so many bytes at most while memory is scarce.
    pub(crate) fn limit_under_pressure(&mut self, bytes: u32) {
        self.under_pressure = bytes;
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.bytes.is_exhausted()
    }

    pub(crate) fn is_under_pressure(&self) -> bool {
        self.bytes.is_under_pressure()
    }

    /// Sets the limit, but to no less than what is allocated.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(self.bytes.len()).min(MAX_LIMIT) as u32;
    }

    /// Bytes that find room in memory that is held already.
    pub(crate) fn held_room(&self) -> usize {
        self.bytes.len() - self.len()
    }

    /// Gives back the memory of an empty ring. Nothing may have been placed ahead.
    pub(crate) fn give_back(&mut self) {
        if self.len == 0 {
            self.bytes.free();
            self.head = 0;
        }
    }

    /// Gives back the memory that the bytes in the ring do not need, where that is more than half. Nothing may have been placed
    /// ahead. Moves the bytes in the ring.
    pub(crate) fn fit(&mut self) {
        if self.bytes.len() <= (2 * self.len()).max(FIRST) {
            return;
        }
        if self.len == 0 {
            return self.give_back();
        }
        let (len, head) = (self.len(), self.head as usize);
        let Some(old) = self.bytes.try_replace(len, Mark::Limit) else { return };
        let first = len.min(old.len() - head);
        self.bytes[..first].copy_from_slice(&old[head..head + first]);
        self.bytes[first..].copy_from_slice(&old[..len - first]);
        self.head = 0;
    }

    /// Whether the ring has no memory, and would take some of the first size that this budget is charged with.
    pub(crate) fn takes_spare(&self, budget: &Arc<MemoryBudget>) -> bool {
        self.bytes.is_empty() && self.limit() >= FIRST && self.bytes.is_charged_to(budget)
    }

    /// Makes bytes of the first size the memory of a ring that takes them.
    pub(crate) fn put_spare(&mut self, bytes: Box<[u8]>) {
        debug_assert!(self.bytes.is_empty() && bytes.len() == FIRST, "a ring without memory");
        self.bytes.put(bytes);
    }

    /// The memory of an empty ring, if it is of the first size and charged to this budget, which stays so. Nothing may have been
    /// placed ahead.
    pub(crate) fn take_spare(&mut self, budget: &Arc<MemoryBudget>) -> Option<Box<[u8]>> {
        let is_spare = self.len == 0 && self.bytes.len() == FIRST;
        if !is_spare || !self.bytes.is_charged_to(budget) {
            return None;
        }
        self.head = 0;
        Some(self.bytes.take())
    }

    /// Bytes in the ring.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes that may still be added.
    pub(crate) fn room(&self) -> usize {
        self.limit() - self.len()
    }

    /// Bytes that it holds at most.
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Bytes of memory that it holds: at most the limit.
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.len()
    }

    /// Adds as much of `data` as there is room and memory for, and returns how much that is.
    pub(crate) fn push(&mut self, data: &[u8]) -> usize {
        let mut taken = data.len().min(self.room());
        if !self.has_memory_for(0, taken) {
            let least = (self.under_pressure as usize).saturating_sub(self.len()).min(taken);
            self.has_memory_for(0, least);
            taken = self.held_room().min(taken);
        }
        self.place(0, &data[..taken]);
        self.advance(taken);
        taken
    }

    /// Writes `data` so many bytes behind the last one, without making it part of the ring.
    ///
    /// # Panics
    /// When it would lie beyond the limit, or [`Ring::has_memory_for`] has not found memory for it.
    pub(crate) fn place(&mut self, distance: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        assert!(distance + data.len() <= self.room(), "bytes within the limit");
        let start = self.len() + distance;
        assert!(self.reserve(start + data.len()), "memory for the bytes");
        let start = self.index(start);
        let first = data.len().min(self.bytes.len() - start);
        self.bytes[start..start + first].copy_from_slice(&data[..first]);
        self.bytes[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// Whether there is memory for so many bytes so far behind the last one, which is allocated if need be.
    pub(crate) fn has_memory_for(&mut self, distance: usize, bytes: usize) -> bool {
        self.reserve(self.len() + distance + bytes)
    }

    /// Makes the next bytes, which have been placed, part of the ring.
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(self.len() + bytes <= self.bytes.len(), "bytes that have been placed");
        self.len += bytes as u32;
    }

    /// Some of the bytes, in two pieces.
    ///
    /// # Panics
    /// When there are not that many.
    pub(crate) fn pieces(&self, at: usize, len: usize) -> [&[u8]; 2] {
        assert!(at + len <= self.len(), "bytes in the ring");
        if len == 0 {
            return [&[], &[]];
        }
        let start = self.index(at);
        let first = len.min(self.bytes.len() - start);
        [&self.bytes[start..start + first], &self.bytes[..len - first]]
    }

    /// Removes the first bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len(), "bytes in the ring");
        if bytes > 0 {
            self.head = self.index(bytes) as u32;
            self.len -= bytes as u32;
        }
    }

    /// Moves bytes to `out`, as many as there are and fit, and returns how many.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let len = self.len().min(out.len());
        let [first, second] = self.pieces(0, len);
        out[..first.len()].copy_from_slice(first);
        out[first.len()..len].copy_from_slice(second);
        self.consume(len);
        len
    }

    fn index(&self, at: usize) -> usize {
        let index = self.head as usize + at;
        if index >= self.bytes.len() { index - self.bytes.len() } else { index }
    }

    fn try_replace(&mut self, size: usize) -> Option<Box<[u8]>> {
        let up_to = if size <= self.under_pressure as usize { Mark::Limit } else { Mark::Pressure };
        self.bytes.try_replace(size, up_to)
    }

    /// Allocates for so many bytes, if the budget has them: twice as many as there are, or as many as are needed. All bytes move,
    /// since those placed ahead are not told apart.
    fn reserve(&mut self, needed: usize) -> bool {
        if needed <= self.bytes.len() {
            return true;
        }
        let size = needed.max(self.bytes.len() * 2).max(FIRST).min(self.limit());
        let Some(old) = self.try_replace(size).or_else(|| self.try_replace(needed)) else {
            return false;
        };
        let (behind, first) = old.split_at(self.head as usize);
        self.bytes[..first.len()].copy_from_slice(first);
        self.bytes[first.len()..old.len()].copy_from_slice(behind);
        self.head = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_bounded_queue(
            limit in 1_usize..1_200,
            steps in prop::collection::vec((any::<bool>(), 0_usize..400), 0..60),
        ) {
            let mut ring = Ring::new(limit);
            let mut model = VecDeque::new();
            let mut next = 0_u8;
            for (is_push, amount) in steps {
                if is_push {
                    let data: Vec<u8> = (0..amount).map(|i| next.wrapping_add(i as u8)).collect();
                    let taken = ring.push(&data);
                    prop_assert_eq!(taken, amount.min(limit - model.len()));
                    model.extend(&data[..taken]);
                    next = next.wrapping_add(taken as u8);
                } else {
                    let mut out = vec![0; amount];
                    let len = ring.read(&mut out);
                    let expected: Vec<u8> = model.drain(..amount.min(model.len())).collect();
                    prop_assert_eq!(&out[..len], &expected[..]);
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert!(ring.allocated() <= limit);
                prop_assert_eq!(ring.pieces(0, ring.len()).concat(), Vec::from(model.clone()));
            }
        }

        #[test]
        fn a_ring_that_is_fitted_keeps_its_bytes_and_little_else(
            read in 0_usize..900,
            more in 0_usize..900,
            rest in 0_usize..900,
        ) {
            let mut ring = Ring::new(1_200);
            let data: Vec<u8> = (0..1_800).map(|at| at as u8).collect();
            let pushed = ring.push(&data[..900]);
            ring.consume(read);
            let pushed = pushed + ring.push(&data[pushed..pushed + more]);
            let left = ring.len().saturating_sub(rest);
            ring.consume(left);
            let kept = data[read + left..pushed].to_vec();
            ring.fit();
            prop_assert_eq!(ring.pieces(0, ring.len()).concat(), &kept[..]);
            prop_assert!(ring.allocated() <= (2 * kept.len()).max(FIRST));
            let taken = ring.push(&data[..100]);
            prop_assert_eq!(ring.pieces(0, ring.len()).concat(), [&kept[..], &data[..taken]].concat());
        }

        #[test]
        fn placed_bytes_survive_growth_and_wrapping(
            head in 0_usize..300,
            distance in 0_usize..600,
            early in prop::collection::vec(any::<u8>(), 1..200),
        ) {
            let mut ring = Ring::new(1_200);
            ring.push(&vec![0; head]);
            ring.consume(head);
            ring.place(distance, &early);
            ring.place(0, &vec![7; distance]);
            ring.advance(distance + early.len());
            let all = ring.pieces(0, distance + early.len()).concat();
            prop_assert_eq!(&all[distance..], &early[..]);
            prop_assert!(all[..distance].iter().all(|byte| *byte == 7));
        }
    }
}
