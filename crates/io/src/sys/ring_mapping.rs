//! The memory of one ring that a socket shares with the kernel.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::xdp::XdpRingOffset;

/// A mapped ring of entries `T`: two positions, a word of flags, and the entries. The mapping keeps the
/// socket behind it alive, so it must go before a queue can be bound anew.
#[derive(Debug)]
pub(crate) struct RingMapping<T> {
    start: NonNull<c_void>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    size: u32,
}

// SAFETY: the mapping is plain memory that stays where it is; its words are atomics, and access to its
// entries is the contract of `read` and `write`.
unsafe impl<T: Send> Send for RingMapping<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for RingMapping<T> {}

impl<T: Copy> RingMapping<T> {
    /// Maps the ring of `size` entries that `socket` offers at `page_offset`, laid out as `offset`
    /// states.
    ///
    /// # Safety
    /// The socket has a ring of `size` entries `T` there, for all of whose values every pattern of bits
    /// is valid, and `offset` is the kernel's own word for it.
    pub(crate) unsafe fn new(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        offset: XdpRingOffset,
        size: u32,
    ) -> io::Result<RingMapping<T>> {
        let bytes = offset.desc as usize + size as usize * size_of::<T>();
        // SAFETY: the kernel chooses the place, so no existing mapping is touched.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                socket,
                page_offset,
            )
        }?;
        let start = NonNull::new(start).expect("a mapping is never at address zero");
        // SAFETY: the kernel's offsets lie inside the mapping, which ends behind the last entry.
        let at = |offset: u64| unsafe { start.byte_add(offset as usize) };
        Ok(RingMapping {
            start,
            bytes,
            producer: at(offset.producer).cast(),
            consumer: at(offset.consumer).cast(),
            flags: offset.flags.map(|flags| at(flags).cast()),
            entries: at(offset.desc).cast(),
            size,
        })
    }

    /// How many entries the ring has: a power of two.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// How many entries were ever produced, modulo 2^32.
    pub(crate) fn producer(&self) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned by the kernel; both sides access it as an atomic.
        unsafe { self.producer.as_ref() }
    }

    /// How many entries were ever consumed, modulo 2^32.
    pub(crate) fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.consumer.as_ref() }
    }

    /// The flags that the kernel has set; none where it knows of none (before Linux 5.4).
    pub(crate) fn flags(&self) -> u32 {
        // SAFETY: as for `producer`.
        let word = self.flags.map(|flags| unsafe { flags.as_ref() });
        // Relaxed: a flag is a hint, and orders nothing.
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Reads the entry at `position`, which is reduced to the size of the ring.
    ///
    /// # Safety
    /// The entry is the caller's to access: it is not written at the same time.
    pub(crate) unsafe fn read(&self, position: u32) -> T {
        let index = (position & (self.size - 1)) as usize;
        // SAFETY: the index is below the size, and by the contract the entry is not written meanwhile.
        unsafe { self.entries.add(index).read() }
    }

    /// The word `offset` bytes into the entry at `position`, which is reduced to the size of the ring. The other side may
    /// write it meanwhile.
    ///
    /// # Safety
    /// Entries have an aligned word of 32 bits at this offset.
    pub(crate) unsafe fn word(&self, position: u32, offset: usize) -> &AtomicU32 {
        let index = (position & (self.size - 1)) as usize;
        // SAFETY: the index is below the size, and by the contract the word lies in the entry and is aligned. This side writes
        // entries of rings of which it is the producer alone, and asks this of the others.
        unsafe { self.entries.add(index).byte_add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// Writes the entry at `position`, which is reduced to the size of the ring.
    ///
    /// # Safety
    /// The entry is the caller's to access: no other thread, nor the kernel, reads or writes it at the same time.
    pub(crate) unsafe fn write(&self, position: u32, entry: T) {
        let index = (position & (self.size - 1)) as usize;
        // SAFETY: the index is below the size, and by the contract the entry is not accessed elsewhere.
        unsafe { self.entries.add(index).write(entry) }
    }
}

impl<T> Drop for RingMapping<T> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made; references into it borrow `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
    }
}
