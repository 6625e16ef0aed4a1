//! An array that programs in the kernel and this process both have in memory.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::{io, mem};

use memmap2::{MmapOptions, MmapRaw};

/// A `BPF_MAP_TYPE_ARRAY` made with `BPF_F_MMAPABLE`.
pub(super) struct SharedArray {
    memory: MmapRaw,
    entries: usize,
    /// Bytes from one entry to the next: the kernel rounds up to eight.
    stride: usize,
}

impl SharedArray {
    /// Maps a map of `entries` values of `value_size` bytes.
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        entries: usize,
        value_size: usize,
    ) -> io::Result<SharedArray> {
        let stride = value_size.next_multiple_of(8);
        let memory = MmapOptions::new().len(entries * stride).map_raw(fd.as_raw_fd())?;
        Ok(SharedArray { memory, entries, stride })
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// The 32-bit word at byte `at` of an entry.
    pub(super) fn u32(&self, entry: usize, at: usize) -> &AtomicU32 {
        // SAFETY: `word` gives an aligned address inside the mapping, which lives as long as `self`.
        // The kernel's programs read and write the word as a whole.
        unsafe { AtomicU32::from_ptr(self.word(entry, at, mem::size_of::<u32>()).cast()) }
    }

    /// The 64-bit word at byte `at` of an entry.
    pub(super) fn u64(&self, entry: usize, at: usize) -> &AtomicU64 {
        // SAFETY: as for `u32`.
        unsafe { AtomicU64::from_ptr(self.word(entry, at, mem::size_of::<u64>()).cast()) }
    }

    fn word(&self, entry: usize, at: usize, size: usize) -> *mut u8 {
        assert!(entry < self.entries && at + size <= self.stride && at.is_multiple_of(size));
        self.memory.as_mut_ptr().wrapping_add(entry * self.stride + at)
    }
}
