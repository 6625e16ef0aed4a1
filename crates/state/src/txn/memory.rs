//! The memory of a slab.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use memmap2::MmapMut;
use rheostat_base::sync::atomic::AtomicU64;

/// From this size on, huge pages are worth asking for.
const LARGE: usize = 2 << 20;

/// Words that are zero in the beginning. Many of them are on huge pages, where the kernel grants those on advice, so that
/// random accesses do not wait for page-table walks besides; there a page costs nothing until something is written to it.
pub(super) struct Memory {
    words: NonNull<[AtomicU64]>,
    /// Whose the words are, unless they come from the allocator. Accessed through the pointer only.
    mapping: Option<MmapMut>,
}

// SAFETY: this is an owned slice of atomics, which may go to and be shared with other threads.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(super) fn new(len: usize) -> Memory {
        Memory::mapped(len).unwrap_or_else(|| {
            let words: Box<[AtomicU64]> = (0..len).map(|_| AtomicU64::new(0)).collect();
            Memory { words: NonNull::from(Box::leak(words)), mapping: None }
        })
    }

    /// `None` where there is little to map, and where atomics are not what they are elsewhere.
    fn mapped(len: usize) -> Option<Memory> {
        let bytes = len.checked_mul(size_of::<u64>()).filter(|bytes| *bytes >= LARGE)?;
        if cfg!(any(loom, shuttle, miri)) {
            return None;
        }
        let mut mapping = MmapMut::map_anon(bytes).ok()?;
        // A refusal costs speed, not correctness.
        #[cfg(target_os = "linux")]
        let _ = mapping.advise(memmap2::Advice::HugePage);
        let start = NonNull::new(mapping.as_mut_ptr())?;
        let words = NonNull::slice_from_raw_parts(start.cast(), len);
        Some(Memory { words, mapping: Some(mapping) })
    }
}

impl Deref for Memory {
    type Target = [AtomicU64];

    #[inline(always)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: so many words are there until this value is dropped: those of a mapping begin at a page, and zero is
        // an atomic. No reference to any of them is exclusive.
        unsafe { self.words.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            // SAFETY: then `new` has leaked them from a box, and they are not borrowed any more.
            drop(unsafe { Box::from_raw(self.words.as_ptr()) });
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} words)", self.words.len())
    }
}
