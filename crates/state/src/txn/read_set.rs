//! What a transaction has read.

use std::ptr::NonNull;

use rheostat_base::sync::atomic::AtomicU64;

use super::access::Touch;
use super::slab::{Cell, HEAD};
use super::word::Word;

/// A cell, without the borrow of its slab: a transaction keeps cells of many objects in vectors that it uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellRef(NonNull<[AtomicU64]>);

// SAFETY: a `CellRef` is used like a reference to atomics, which may go to and be shared with other threads.
unsafe impl Send for CellRef {}

impl CellRef {
    #[inline]
    pub(super) fn new(cell: Cell<'_>) -> CellRef {
        CellRef(NonNull::from(cell.words()))
    }

    /// The cell again.
    ///
    /// # Safety
    /// Its slab must still be alive, and stay so for `'a`.
    #[inline]
    pub(super) unsafe fn cell<'a>(self) -> Cell<'a> {
        // SAFETY: the pointer was made from a reference, and the slab it led into is alive by the caller's word.
        Cell::of_words(unsafe { self.0.as_ref() })
    }

    /// A number of the cell's own.
    #[inline]
    pub(super) fn address(self) -> usize {
        self.0.cast::<u8>().as_ptr().addr()
    }

    /// Whether it is the cell of a read.
    pub(super) fn is(self, read: &ReadRecord) -> bool {
        self.0.cast() == read.state.0
    }
}

/// The state of a cell that was read, by its word alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateRef(NonNull<AtomicU64>);

// SAFETY: as for `CellRef`.
unsafe impl Send for StateRef {}

impl StateRef {
    /// The same number as [`CellRef::address`].
    pub(super) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The state and, next to it, the access that wrote the cell last.
    ///
    /// # Safety
    /// As for [`CellRef::cell`].
    #[inline]
    pub(super) unsafe fn cell<'a>(self) -> Cell<'a> {
        // SAFETY: the pointer was made from the first word of a cell, whose head it leads to, and the slab is alive by
        // the caller's word.
        Cell::of_words(unsafe { std::slice::from_raw_parts(self.0.as_ptr(), HEAD) })
    }
}

/// One read.
#[derive(Debug)]
pub(super) struct ReadRecord {
    pub(super) state: StateRef,
    /// The cell's word then.
    pub(super) seen: Word,
    pub(super) touch: Touch,
}

const _: () = assert!(cfg!(loom) || size_of::<ReadRecord>() <= 32);

impl ReadRecord {
    #[inline]
    pub(super) fn new(cell: Cell<'_>, seen: Word, touch: Touch) -> ReadRecord {
        ReadRecord { state: StateRef(NonNull::from(cell.words()).cast()), seen, touch }
    }
}
