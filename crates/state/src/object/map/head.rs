//! What a bucket states about its slots.

use super::SLOTS;
use crate::txn::Words;

/// The first word of a bucket: which slots are taken, how many keys lie in their other bucket because this one had no
/// room, and eight bits of each key's hash.
#[derive(Clone, Copy)]
pub(super) struct MapHead(u64);

impl MapHead {
    /// Of the words of a bucket.
    #[inline(always)]
    pub(super) fn of(words: &Words<'_>) -> MapHead {
        MapHead(words.get(0))
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The first slot that `is` the one, of those that may be by their tag.
    #[inline(always)]
    pub(super) fn find(self, tag: u8, is: impl Fn(usize) -> bool) -> Option<usize> {
        const ONES: u32 = 0x0101_0101;
        let different = (self.0 >> 32) as u32 ^ (u32::from(tag) * ONES);
        // The upper bit of every byte that is zero, and of some that are one above such a byte.
        let mut equal = different.wrapping_sub(ONES) & !different & (ONES << 7);
        while equal != 0 {
            let slot = equal.trailing_zeros() as usize / 8;
            if self.is_taken(slot) && is(slot) {
                return Some(slot);
            }
            equal &= equal - 1;
        }
        None
    }

    #[inline(always)]
    pub(super) fn is_taken(self, slot: usize) -> bool {
        self.0 >> slot & 1 == 1
    }

    pub(super) fn taken(self) -> usize {
        (self.0 & 15).count_ones() as usize
    }

    pub(super) fn free_slot(self) -> Option<usize> {
        (0..SLOTS).find(|slot| !self.is_taken(*slot))
    }

    #[inline(always)]
    pub(super) fn elsewhere(self) -> u64 {
        self.0 >> 8 & 0xff_ffff
    }

    pub(super) fn with(self, slot: usize, tag: u8) -> MapHead {
        let cleared = self.0 & !(0xff << (32 + 8 * slot));
        MapHead(cleared | u64::from(tag) << (32 + 8 * slot) | 1 << slot)
    }

    pub(super) fn without(self, slot: usize) -> MapHead {
        MapHead(self.0 & !(1 << slot))
    }

    pub(super) fn one_more_elsewhere(self) -> MapHead {
        MapHead(self.0 + (1 << 8))
    }

    pub(super) fn one_less_elsewhere(self) -> MapHead {
        MapHead(self.0 - (1 << 8))
    }
}
