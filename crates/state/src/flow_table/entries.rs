//! A table's entries: memory that is touched when it is first needed, a stack of freed entries, and a
//! graveyard of those freed in the current burst.

use std::ptr::NonNull;

use rheostat_packet::{Family, FlowKey};

use super::entry::{self, COLD_OFFSET, Cold, Ending, EntryKind, Hot, LINE};
use crate::list::{Links, ListLink};

/// No entry.
const NONE: u32 = u32::MAX;

/// Entries of one size in one piece of memory.
///
/// The memory was zero when it was handed over, which is a valid free entry; only entries below
/// `fresh` have ever been used, and only they can be reached.
pub(super) struct Entries {
    base: NonNull<u8>,
    stride: u32,
    /// Whether packets of IPv4 may need more of an entry than its first line.
    beyond_line: bool,
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
    pub(super) unsafe fn new(
        base: NonNull<u8>,
        stride: u32,
        total: u32,
        beyond_line: bool,
    ) -> Entries {
        let retired = (NONE, NONE);
        Entries { base, stride, beyond_line, fresh: 0, total, free: NONE, retired }
    }

    /// Takes an entry that no flow has used since the end of the last burst.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.free != NONE {
            let index = self.free;
            self.free = self.link_of(index);
            // The entry of the next new flow, so that it does not wait for a line that no packet has touched for long.
            self.prefetch_whole(self.free);
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
        let cold = self.cold_mut(index);
        cold.generation = cold.generation.wrapping_add(1);
        let hot = self.hot_mut(index);
        hot.ending = Ending::never(EntryKind::Free);
        hot.key[0] = u64::from(first);
        self.retired = (index, if last == NONE { index } else { last });
    }

    /// Lets the entries retired in this burst be taken again.
    #[inline]
    pub(super) fn reclaim_retired(&mut self) {
        let (first, last) = self.retired;
        if first != NONE {
            self.hot_mut(last).key[0] = u64::from(self.free);
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
            self.hot_mut(first).key[0] = u64::from(self.free);
            self.free = first;
        }
    }

    /// The entry below `index`, a free one, in the stack.
    fn link_of(&self, index: u32) -> u32 {
        self.hot(index).key[0] as u32
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

    /// The hot part of entry `index`.
    #[inline]
    pub(super) fn hot(&self, index: u32) -> &Hot {
        // SAFETY: the address is a used entry's, aligned to a line; its first bytes are always a valid
        // `Hot` (zero, or written as one), and only this value accesses it.
        unsafe { self.address(index).cast::<Hot>().as_ref() }
    }

    /// The hot part of entry `index`, to write.
    #[inline]
    pub(super) fn hot_mut(&mut self, index: u32) -> &mut Hot {
        // SAFETY: as for `hot`; `&mut self` makes the access exclusive.
        unsafe { self.address(index).cast::<Hot>().as_mut() }
    }

    /// The cold part of entry `index`.
    #[inline]
    pub(super) fn cold(&self, index: u32) -> &Cold {
        // SAFETY: as for `hot`, of the end of the second line; every entry has two lines, and no state
        // lies there (`StateLayout::reserve`).
        unsafe { self.address(index).add(COLD_OFFSET).cast::<Cold>().as_ref() }
    }

    /// The cold part of entry `index`, to write.
    #[inline]
    pub(super) fn cold_mut(&mut self, index: u32) -> &mut Cold {
        // SAFETY: as for `cold`; `&mut self` makes the access exclusive.
        unsafe { self.address(index).add(COLD_OFFSET).cast::<Cold>().as_mut() }
    }

    /// Changes under which keys entry `index` can be found.
    pub(super) fn set_kind(&mut self, index: u32, kind: EntryKind) {
        let hot = self.hot_mut(index);
        let mut ending = hot.ending;
        ending.set_kind(kind);
        hot.ending = ending;
    }

    /// Whether the entry serves a flow that can be found under `key`.
    #[inline(always)]
    pub(super) fn matches(&self, index: u32, key: &FlowKey) -> bool {
        entry::matches(self.name(index), || self.cold(index), key)
    }

    /// What a lookup reads of the first line of entry `index`, also while the entry is detached.
    #[inline(always)]
    pub(super) fn name(&self, index: u32) -> entry::Name {
        // SAFETY: the address is a used entry's. Its key is written through `&mut self` alone, and so is its ending, but while it
        // is detached: then a `DetachedFlow` writes that atomically.
        unsafe { entry::Name::read(self.address(index)) }
    }

    /// Marks entry `index` as detached, or as one that is not any more.
    pub(super) fn set_detached(&mut self, index: u32, detached: bool) {
        let hot = self.hot_mut(index);
        let mut ending = hot.ending;
        ending.set_detached(detached);
        hot.ending = ending;
    }

    /// Asks the processor to fetch the lines of entry `index` that packets of this family need, up to four.
    #[inline]
    pub(super) fn prefetch(&self, index: u32, family: Family) {
        let stride = self.stride as usize;
        let entry = self.base.as_ptr().wrapping_add(index as usize * stride);
        super::prefetch(entry);
        if self.beyond_line || family == Family::V6 {
            self.prefetch_beyond(entry);
        }
    }

    /// Asks for all lines but the first.
    #[inline]
    fn prefetch_beyond(&self, entry: *const u8) {
        let stride = self.stride as usize;
        super::prefetch(entry.wrapping_add(LINE));
        if stride > 2 * LINE {
            super::prefetch(entry.wrapping_add(2 * LINE));
            super::prefetch(entry.wrapping_add((stride - LINE).min(3 * LINE)));
        }
    }

    /// Asks for what the end of a flow needs of its entry.
    #[inline]
    pub(super) fn prefetch_whole(&self, index: u32) {
        let entry = self.base.as_ptr().wrapping_add(index as usize * self.stride as usize);
        super::prefetch(entry);
        self.prefetch_beyond(entry);
    }
}

/// The links of entries in the timer wheel.
pub(super) struct WheelLinks<'a>(pub(super) &'a mut Entries);

impl Links for WheelLinks<'_> {
    #[inline]
    fn link(&mut self, member: u32) -> &mut ListLink {
        &mut self.0.cold_mut(member).wheel
    }
}

/// The links of entries in the list of those that may be evicted.
pub(super) struct EvictLinks<'a>(pub(super) &'a mut Entries);

impl Links for EvictLinks<'_> {
    #[inline]
    fn link(&mut self, member: u32) -> &mut ListLink {
        &mut self.0.cold_mut(member).evict
    }
}
