//! A table's entries: memory that is touched when it is first needed, a stack of freed entries, and a
//! graveyard of those freed in the current burst.

use std::ptr::NonNull;

use super::entry::{Head, Kind, LINE, Tail};
use crate::list::{Link, Links};

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries of one size in one piece of memory.
///
/// The memory was zero when it was handed over, which is a valid free entry; only entries below
/// `fresh` have ever been used, and only they can be reached.
pub(super) struct Entries {
    base: NonNull<u8>,
    stride: u32,
    fresh: u32,
    total: u32,
    /// The top of the stack of free entries. The first word of a free entry's key is its link.
    free: u32,
    /// The first and the last of the graveyard, linked likewise.
    retired: (u32, u32),
}

impl Entries {
    /// Entries in the `total * stride` bytes at `base`.
    ///
    /// # Safety
    /// The bytes are zero, aligned to [`LINE`], exclusively this value's to access, and stay mapped
    /// while it lives. `stride` is a multiple of [`LINE`] and at least two lines.
    pub(super) unsafe fn new(base: NonNull<u8>, stride: u32, total: u32) -> Entries {
        Entries { base, stride, fresh: 0, total, free: NONE, retired: (NONE, NONE) }
    }

    /// Takes an entry that no flow has used since the end of the last burst.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.free != NONE {
            let index = self.free;
            self.free = self.link_of(index);
            // The entry of the next new flow, so that it does not wait for a line that no packet has touched for long.
            self.prefetch(self.free);
            return Some(index);
        }
        if self.fresh == self.total {
            return None;
        }
        self.fresh += 1;
        Some(self.fresh - 1)
    }

    /// Makes the entry free once the burst ends. References to its flow are stale from now on.
    pub(super) fn retire(&mut self, index: u32) {
        let (first, last) = self.retired;
        let head = self.head_mut(index);
        head.kind = Kind::Free;
        head.generation = head.generation.wrapping_add(1);
        head.flags = 0;
        head.key[0] = u64::from(first);
        self.retired = (index, if last == NONE { index } else { last });
    }

    /// Lets the entries retired in this burst be taken again.
    #[inline]
    pub(super) fn reclaim_retired(&mut self) {
        let (first, last) = self.retired;
        if first != NONE {
            self.head_mut(last).key[0] = u64::from(self.free);
            self.free = first;
            self.retired = (NONE, NONE);
        }
    }

    /// Lets the entry that was retired last be taken again.
    pub(super) fn reclaim_latest(&mut self) {
        let (first, last) = self.retired;
        if first != NONE {
            let next = self.link_of(first);
            self.retired = if first == last { (NONE, NONE) } else { (next, last) };
            self.head_mut(first).key[0] = u64::from(self.free);
            self.free = first;
        }
    }

    /// The entry below `index`, a free one, in the stack.
    fn link_of(&self, index: u32) -> u32 {
        self.head(index).key[0] as u32
    }

    /// Entries that have been used: indices below this are valid.
    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.fresh
    }

    /// Where entry `index` lies.
    #[inline]
    pub(super) fn address(&self, index: u32) -> NonNull<u8> {
        assert!(index < self.fresh);
        // SAFETY: index < fresh <= total, so the entry lies inside the memory.
        unsafe { self.base.add(index as usize * self.stride as usize) }
    }

    /// Line 0 of entry `index`.
    #[inline]
    pub(super) fn head(&self, index: u32) -> &Head {
        // SAFETY: the address is a used entry's, aligned to a line; its first line is always a valid
        // `Head` (zero, or written as one), and only this value accesses it.
        unsafe { self.address(index).cast::<Head>().as_ref() }
    }

    /// Line 0 of entry `index`, to write.
    #[inline]
    pub(super) fn head_mut(&mut self, index: u32) -> &mut Head {
        // SAFETY: as for `head`; `&mut self` makes the access exclusive.
        unsafe { self.address(index).cast::<Head>().as_mut() }
    }

    /// The fixed part of line 1 of entry `index`.
    #[inline]
    pub(super) fn tail(&self, index: u32) -> &Tail {
        // SAFETY: as for `head`, one line on; every entry has two lines.
        unsafe { self.address(index).add(LINE).cast::<Tail>().as_ref() }
    }

    /// The fixed part of line 1 of entry `index`, to write.
    #[inline]
    pub(super) fn tail_mut(&mut self, index: u32) -> &mut Tail {
        // SAFETY: as for `tail`; `&mut self` makes the access exclusive.
        unsafe { self.address(index).add(LINE).cast::<Tail>().as_mut() }
    }

    /// Asks the processor to fetch the lines of entry `index`, up to four.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        let stride = self.stride as usize;
        let entry = self.base.as_ptr().wrapping_add(index as usize * stride);
        super::prefetch(entry);
        super::prefetch(entry.wrapping_add(LINE));
        if stride > 2 * LINE {
            super::prefetch(entry.wrapping_add(2 * LINE));
            super::prefetch(entry.wrapping_add((stride - LINE).min(3 * LINE)));
        }
    }
}

/// The links of entries in the timer wheel.
pub(super) struct WheelLinks<'a>(pub(super) &'a mut Entries);

impl Links for WheelLinks<'_> {
    #[inline]
    fn link(&mut self, member: u32) -> &mut Link {
        &mut self.0.head_mut(member).wheel
    }
}

/// The links of entries in the list of those that may be evicted.
pub(super) struct EvictLinks<'a>(pub(super) &'a mut Entries);

impl Links for EvictLinks<'_> {
    #[inline]
    fn link(&mut self, member: u32) -> &mut Link {
        &mut self.0.head_mut(member).evict
    }
}
