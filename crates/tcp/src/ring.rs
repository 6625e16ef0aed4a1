//! A ring of bytes that grows up to a limit.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::memory::{Mark, MemoryBudget};

/// Bytes in order, the first of which leaves first. Memory is allocated when it is needed, doubling up to the limit; while the
/// ring grows, the old bytes exist beside the new ones.
#[derive(Debug)]
pub(crate) struct ByteRing {
    bytes: Buffer,
    head: u32,
    len: u32,
    limit: u32,
    /// So much may be allocated while memory is scarce.
    under_pressure: u32,
}

/// Bytes that are allocated at first.
const FIRST: usize = 128;

/// Bytes of memory that an empty ring keeps at most.
const KEPT: usize = 256 << 10;

/// Rings with less memory than this are not shrunk: what many of them hold is small.
const LEAST_SHRUNK: usize = 64 << 10;

/// The largest limit: windows are no larger.
pub(crate) const MAX_LIMIT: usize = 1 << 30;

impl ByteRing {
    /// Holds at most `limit` bytes, and no more than [`MAX_LIMIT`].
    pub(crate) fn new(limit: usize) -> ByteRing {
        ByteRing {
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

    /// Sets the limit, but to no less than what is allocated, and to no more than the budget has left for one ring.
    pub(crate) fn tune_limit(&mut self, limit: usize) {
        let affordable =
            if limit > self.limit() { self.bytes.affordable().max(self.limit()) } else { limit };
        self.limit = limit.min(affordable).max(self.bytes.len()).min(MAX_LIMIT) as u32;
    }

    /// Bytes that find room in memory that is held already.
    pub(crate) fn held_room(&self) -> usize {
        self.bytes.len() - self.len()
    }

    /// Gives back memory that is not needed: of an empty ring all that is more than an idle connection may keep, and under pressure
    /// everything; under pressure most of one that is nearly empty. Moves a quarter of what is given back at most. Nothing may have
    /// been placed ahead.
    pub(crate) fn trim(&mut self, is_under_pressure: bool) {
        let allocated = self.bytes.len();
        if self.len == 0 {
            if allocated > KEPT || is_under_pressure {
                self.bytes.free();
                self.head = 0;
            }
        } else if is_under_pressure && allocated > LEAST_SHRUNK && allocated / 8 > self.len() {
            self.resize(2 * self.len(), Mark::Limit);
        }
    }

    /// Gives back the memory that the bytes in the ring do not need, where that is more than half. Nothing may have been placed
    /// ahead. Moves the bytes in the ring.
    pub(crate) fn fit(&mut self) {
        if self.bytes.len() <= (2 * self.len()).max(FIRST) {
            return;
        }
        if self.len == 0 {
            self.bytes.free();
            self.head = 0;
        } else {
            self.resize(self.len(), Mark::Limit);
        }
    }

    /// Moves the bytes of the ring to memory of another size, if the budget has it. Nothing may have been placed ahead, unless the
    /// size is larger.
    fn resize(&mut self, size: usize, up_to: Mark) -> bool {
        let head = self.head as usize;
        let Some(old) = self.bytes.try_replace(size, up_to) else { return false };
        let (behind, first) = old.split_at(head);
        let first = &first[..first.len().min(size)];
        let behind = &behind[..behind.len().min(size - first.len())];
        self.bytes[..first.len()].copy_from_slice(first);
        self.bytes[first.len()..first.len() + behind.len()].copy_from_slice(behind);
        self.head = 0;
        true
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
    /// When it would lie beyond the limit, or [`ByteRing::has_memory_for`] has not found memory for it.
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

    fn try_grow(&mut self, size: usize) -> bool {
        let up_to = if size <= self.under_pressure as usize { Mark::Limit } else { Mark::Pressure };
        self.resize(size, up_to)
    }

    /// Allocates for so many bytes, if the budget has them: twice as many as there are, or as many as are needed. All bytes move,
    /// since those placed ahead are not told apart.
    fn reserve(&mut self, needed: usize) -> bool {
        if needed <= self.bytes.len() {
            return true;
        }
        let size = needed.max(self.bytes.len() * 2).max(FIRST).min(self.limit());
        self.try_grow(size) || self.try_grow(needed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn under_pressure_from(mark: usize) -> (ByteRing, Arc<MemoryBudget>) {
        let budget = Arc::new(MemoryBudget::new(mark, 8 << 20));
        let mut ring = ByteRing::new(4 << 20);
        ring.set_memory(Some(budget.clone()));
        (ring, budget)
    }

    #[test]
    fn an_empty_ring_gives_back_what_it_has_grown_to() {
        let (mut ring, budget) = under_pressure_from(8 << 20);
        for (pushed, kept) in [(KEPT, KEPT), (KEPT + 1, 0)] {
            assert_eq!(ring.push(&vec![7; pushed]), pushed);
            ring.trim(false);
            assert!(ring.allocated() >= pushed, "it is not empty");
            ring.consume(pushed);
            ring.trim(false);
            assert_eq!((ring.allocated(), budget.used()), (kept, kept));
        }
    }

    #[test]
    fn under_pressure_a_nearly_empty_ring_shrinks_and_keeps_its_bytes() {
        let (mut ring, budget) = under_pressure_from(1 << 20);
        let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i >> 3) as u8).collect();
        assert_eq!(ring.push(&data), data.len());
        ring.consume(860_000);
        ring.push(&data[..20_000]);
        ring.trim(true);
        assert_eq!(ring.allocated(), 1_000_000, "more than an eighth is in use");
        ring.consume(120_000);
        ring.trim(false);
        assert_eq!(ring.allocated(), 1_000_000, "there is no pressure");
        ring.trim(true);
        assert_eq!((ring.allocated(), budget.used()), (80_000, 80_000));
        assert_eq!(ring.pieces(0, 40_000).concat(), [&data[980_000..], &data[..20_000]].concat());
    }

    #[test]
    fn a_limit_rises_to_a_part_of_the_memory_that_is_left_and_falls_freely() {
        let budget = Arc::new(MemoryBudget::new(1_000_000, 2_000_000));
        let mut ring = ByteRing::new(50_000);
        ring.set_memory(Some(budget.clone()));
        ring.tune_limit(300_000);
        assert_eq!(ring.limit(), 250_000);
        budget.charge(900_000);
        ring.tune_limit(300_000);
        assert_eq!(ring.limit(), 250_000, "what was allowed stays allowed");
        ring.tune_limit(60_000);
        ring.tune_limit(70_000);
        assert_eq!(ring.limit(), 60_000);
    }

    proptest! {
        #[test]
        fn a_ring_is_a_bounded_queue(
            limit in 1_usize..1_200,
            steps in prop::collection::vec((any::<bool>(), 0_usize..400), 0..60),
        ) {
            let mut ring = ByteRing::new(limit);
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
            let mut ring = ByteRing::new(1_200);
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
            let mut ring = ByteRing::new(1_200);
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
