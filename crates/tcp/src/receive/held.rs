//! Ranges received beyond a gap, and the SACK blocks about them (RFC 2018, 2883).

use arrayvec::ArrayVec;

use crate::options::MAX_BLOCKS;
use crate::sequence::{SequenceNumber, SequenceRange};

/// Ranges that are held at most. Segments that would start another one are dropped.
pub(crate) const MAX_HELD: usize = 32;

/// What has been received beyond the next number expected: disjoint ranges in order, at most [`MAX_HELD`]. All work is linear in
/// their number.
#[derive(Debug, Default)]
pub(crate) struct HeldRanges {
    /// None while there are no ranges: few connections have any, most of the time.
    held: Option<Box<Ranges>>,
    updates: u64,
}

type Ranges = ArrayVec<HeldRange, MAX_HELD>;

#[derive(Clone, Copy, Debug)]
struct HeldRange {
    range: SequenceRange,
    /// Higher for the range that a segment was received in later.
    updated: u64,
}

impl HeldRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    fn ranges(&self) -> &[HeldRange] {
        self.held.as_deref().map_or(&[], |held| held)
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> u32 {
        self.ranges().iter().map(|held| held.range.len()).sum()
    }

    /// The number after the last one held.
    pub(crate) fn end(&self) -> Option<SequenceNumber> {
        self.ranges().last().map(|held| held.range.end)
    }

    /// Adds a range and joins it with those it touches. Returns whether there was room.
    pub(crate) fn insert(&mut self, range: SequenceRange) -> bool {
        let held = self.held.get_or_insert_default();
        let first = held.partition_point(|held| held.range.end.is_before(range.start));
        let touching = held[first..].iter().take_while(|held| held.range.touches(range)).count();
        if touching == 0 && held.is_full() {
            return false;
        }
        let mut joined = range;
        for held in held.drain(first..first + touching) {
            joined.start = joined.start.min(held.range.start);
            joined.end = joined.end.max(held.range.end);
        }
        self.updates += 1;
        held.insert(first, HeldRange { range: joined, updated: self.updates });
        true
    }

    /// Whether ranges are disjoint, in order and within `room`, and take no memory when there are none.
    pub(super) fn is_sound(&self, room: SequenceRange) -> bool {
        let is_inside = |held: &HeldRange| !held.range.is_empty() && room.contains(held.range);
        let held = self.ranges();
        held.is_sorted_by(|held, next| held.range.end.is_before(next.range.start))
            && held.iter().all(is_inside)
            && self.held.as_ref().is_none_or(|held| !held.is_empty())
    }

    /// Segments that have arrived beyond a gap; one of which a part was held already counts twice.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// Removes the range that continues at `next`, if there is one, and returns its end.
    pub(crate) fn take_from(&mut self, next: SequenceNumber) -> Option<SequenceNumber> {
        let held = self.held.as_mut()?;
        let first = held.first()?.range;
        if first.start.is_after(next) {
            return None;
        }
        held.remove(0);
        if held.is_empty() {
            self.held = None;
        }
        Some(first.end)
    }

    /// What of `range` is held already, up to the first gap. The range it is in counts as the latest.
    pub(crate) fn duplicate(&mut self, range: SequenceRange) -> Option<SequenceRange> {
        let mut held = self.held.as_mut()?.iter_mut();
        let held = held.find(|held| !held.range.intersection(range).is_empty())?;
        self.updates += 1;
        held.updated = self.updates;
        Some(held.range.intersection(range))
    }

    /// The blocks of an acknowledgement, at most `room`: what was received twice, then the ranges, the latest first.
    pub(crate) fn blocks(
        &self,
        duplicate: Option<SequenceRange>,
        room: usize,
    ) -> ArrayVec<SequenceRange, MAX_BLOCKS> {
        let mut blocks: ArrayVec<SequenceRange, MAX_BLOCKS> = duplicate.into_iter().collect();
        let mut before = u64::MAX;
        while blocks.len() < room.min(MAX_BLOCKS) {
            let earlier = self.ranges().iter().filter(|held| held.updated < before);
            let Some(held) = earlier.max_by_key(|held| held.updated) else { break };
            before = held.updated;
            blocks.push(held.range);
        }
        blocks.truncate(room);
        blocks
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(start: u32, len: u32) -> SequenceRange {
        SequenceRange::of_len(SequenceNumber(start), len)
    }

    #[test]
    fn the_first_block_holds_the_latest_segment() {
        let mut held = HeldRanges::default();
        for start in [100, 300, 200] {
            assert!(held.insert(range(start, 10)));
        }
        assert_eq!(held.blocks(None, 4)[..], [range(200, 10), range(300, 10), range(100, 10)]);
        assert!(held.insert(range(110, 10)));
        assert_eq!(held.blocks(None, 2)[..], [range(100, 20), range(200, 10)]);
    }

    #[test]
    fn a_duplicate_is_reported_before_the_range_it_lies_in() {
        let mut held = HeldRanges::default();
        held.insert(range(100, 50));
        held.insert(range(300, 10));
        let duplicate = held.duplicate(range(110, 10));
        assert_eq!(duplicate, Some(range(110, 10)));
        assert_eq!(held.blocks(duplicate, 3)[..], [range(110, 10), range(100, 50), range(300, 10)]);
    }

    #[test]
    fn ranges_beyond_the_limit_are_refused_and_growth_of_known_ones_is_not() {
        let mut held = HeldRanges::default();
        assert!((0..MAX_HELD as u32).all(|i| held.insert(range(i * 10, 5))));
        assert!(!held.insert(range(1_000, 5)));
        assert!(held.insert(range(5, 5)));
        assert!(held.insert(range(1_000, 5)));
    }

    proptest! {
        #[test]
        fn ranges_are_a_set_of_numbers(
            base: u32,
            parts in prop::collection::vec((0_u32..200, 1_u32..40), 1..20),
        ) {
            let mut held = HeldRanges::default();
            let mut model = BTreeSet::new();
            for (start, len) in parts {
                let expected = (start..start + len).find(|n| model.contains(n));
                let part = SequenceRange::of_len(SequenceNumber(base) + start, len);
                let duplicate = held.duplicate(part);
                prop_assert_eq!(duplicate.map(|d| d.start.since(SequenceNumber(base))), expected);
                prop_assert!(held.insert(part));
                model.extend(start..start + len);
            }
            let mut taken = BTreeSet::new();
            let mut next = SequenceNumber(base);
            for n in 0..300 {
                next = next.max(SequenceNumber(base) + n);
                let from = next.since(SequenceNumber(base));
                if let Some(end) = held.take_from(next) {
                    taken.extend(from..end.since(SequenceNumber(base)));
                    next = end;
                }
            }
            prop_assert_eq!(taken, model);
        }
    }
}
