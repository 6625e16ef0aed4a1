//! The word of a cell: a version, or the access that writes it.

use super::access::PackedTouch;

/// The word of a cell, as it was at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u64);

const LANE_BITS: u32 = 8;
const _: () = assert!(1 + LANE_BITS + PackedTouch::BITS <= 64);

/// Lanes that a word can distinguish.
pub(super) const MAX_LANES: usize = 1 << LANE_BITS;

impl Word {
    pub(super) fn of_raw(raw: u64) -> Word {
        Word(raw)
    }

    pub(super) fn raw(self) -> u64 {
        self.0
    }

    /// It is not locked, and the last write had this time.
    pub(super) fn free(version: u64) -> Word {
        Word(version << 1)
    }

    /// `lane` writes, as part of `touch`.
    pub(super) fn locked(lane: u8, touch: PackedTouch) -> Word {
        Word((touch.raw() << LANE_BITS | u64::from(lane)) << 1 | 1)
    }

    pub(super) fn is_locked(self) -> bool {
        self.0 & 1 == 1
    }

    /// The time of the last write, if it is not locked.
    pub(super) fn version(self) -> u64 {
        debug_assert!(!self.is_locked());
        self.0 >> 1
    }

    /// The access that holds the lock.
    pub(super) fn touch(self) -> PackedTouch {
        PackedTouch::of_raw(self.0 >> (1 + LANE_BITS))
    }
}
