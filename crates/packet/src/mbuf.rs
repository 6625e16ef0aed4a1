//! Packet buffers. A [`Mempool`] owns all buffers of the process; an [`Mbuf`] is the handle of the one
//! packet that lies in one of them, or in a chain of several; a [`PoolCache`] is a lane's stock of free
//! ones, so that taking and returning a buffer touches nothing shared.
#![allow(unsafe_code)]

mod cache;
mod chain;
mod head;
mod loan;
mod pool;

pub use cache::{AllocError, PoolCache};
pub use chain::{MAX_SEGMENTS, Segments};
pub use head::{HashKind, LinkType};
pub use loan::{Loans, Piece, PoolArea, ReturnError};
pub use pool::{Mempool, MempoolConfig, PoolError};

use std::fmt;
use std::ptr::NonNull;
use std::slice;

use head::MbufHead;
use pool::PoolInner;

/// Marks the end of a chain of segments.
const NO_SEGMENT: u32 = u32::MAX;

/// The handle of one packet: it owns a buffer of a [`Mempool`], or a chain of buffers of which the
/// first holds all headers. It is a pointer to the head of the first buffer, one cache line apart from the
/// buffer, so that polling, steering and sending move eight bytes and do not touch the buffers.
///
/// Return it through [`PoolCache::free`]; one that is merely dropped finds its way back through the
/// pool's lock.
#[repr(transparent)]
pub struct Mbuf(NonNull<MbufHead>);

const _: () = assert!(size_of::<Mbuf>() == 8 && size_of::<Option<Mbuf>>() == 8);

// SAFETY: the handle owns its buffers and their heads exclusively, and the pool they lie in is `Sync` and outlives
// every handle (see `pool::Owner`).
unsafe impl Send for Mbuf {}
// SAFETY: `&Mbuf` allows only reading.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// Bytes of the packet, all segments together.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet without bytes is not a special case")]
    pub fn len(&self) -> usize {
        self.head().total as usize
    }

    /// The bytes of the first segment, where all headers lie.
    #[inline]
    pub fn data(&self) -> &[u8] {
        let head = self.head();
        // SAFETY: `len` bytes from `data` lie inside the buffer (kept by every method that changes them),
        // the handle owns the buffer, and buffers are zeroed when the pool is made, so no byte is
        // uninitialised.
        unsafe { slice::from_raw_parts(head.data.as_ptr(), head.len.into()) }
    }

    /// The bytes of the first segment, to write.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let head = self.head();
        // SAFETY: as for `data`; `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(head.data.as_ptr(), head.len.into()) }
    }

    /// Whether the packet lies in more than one buffer.
    #[inline]
    pub fn is_chained(&self) -> bool {
        self.head().next != NO_SEGMENT
    }

    /// Whether its buffers are those of `pool`.
    #[inline]
    pub fn is_of(&self, pool: &Mempool) -> bool {
        self.head().pool == pool.pointer()
    }

    /// Asks the processor to fetch the first line of the headers.
    #[inline]
    pub fn prefetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch cannot fault, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(self.head().data.as_ptr().cast(), _MM_HINT_T0);
        }
    }

    /// Asks the processor to fetch the line that holds the byte in front of the packet.
    #[inline]
    pub fn prefetch_front(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch cannot fault, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(self.head().data.as_ptr().wrapping_sub(1).cast(), _MM_HINT_T0);
        }
    }

    /// The `count` bytes in front of the packet, whatever they hold; `None` when the headroom is smaller.
    #[inline]
    pub fn front(&self, count: usize) -> Option<&[u8]> {
        if count > self.headroom() {
            return None;
        }
        // SAFETY: so many bytes lie between the start of the buffer and the packet; the handle owns the buffer, whose memory
        // is initialised from the start.
        Some(unsafe { slice::from_raw_parts(self.head().data.as_ptr().sub(count), count) })
    }

    /// Bytes in front of the packet that [`Mbuf::prepend`] can still claim.
    pub fn headroom(&self) -> usize {
        self.head().data.as_ptr().addr() - self.pool().buffer(self.index()).as_ptr().addr()
    }

    /// Makes the packet `count` bytes longer at the front and returns them to be written, or `None`
    /// when the headroom is smaller.
    pub fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        // A headroom is below 64 KiB.
        let count16 = u16::try_from(count).ok().filter(|_| count <= self.headroom())?;
        let head = self.head_mut();
        // SAFETY: so many bytes lie between the start of the buffer and the packet.
        head.data = unsafe { head.data.sub(count) };
        head.len += count16;
        head.total += u32::from(count16);
        Some(&mut self.data_mut()[..count])
    }

    /// Cuts `count` bytes off the front. `false`, and nothing changed, when the first segment has
    /// fewer.
    pub fn advance(&mut self, count: usize) -> bool {
        let head = self.head_mut();
        match u16::try_from(count) {
            Ok(count) if count <= head.len => {
                // SAFETY: the first segment has so many bytes.
                head.data = unsafe { head.data.add(count.into()) };
                head.len -= count;
                head.total -= u32::from(count);
                true
            }
            _ => false,
        }
    }

    /// Cuts the packet, which must lie in one buffer, down to `len` bytes. `false`, and nothing changed,
    /// when it is shorter or chained.
    pub fn truncate(&mut self, len: usize) -> bool {
        let is_chained = self.is_chained();
        let head = self.head_mut();
        match u16::try_from(len) {
            Ok(len) if len <= head.len && !is_chained => {
                head.len = len;
                head.total = len.into();
                self.set_wire_len(len.into());
                true
            }
            _ => false,
        }
    }

    fn pool(&self) -> &PoolInner {
        // SAFETY: the pool is freed only once every buffer is home, and this handle holds one.
        unsafe { self.head().pool.as_ref() }
    }

    /// The number of the first buffer.
    fn index(&self) -> u32 {
        self.pool().index_of(self.0)
    }

    #[inline]
    fn head(&self) -> &MbufHead {
        // SAFETY: the head was written when the handle was made, the pool outlives the handle, and only
        // the owner of a buffer accesses its head.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn head_mut(&mut self) -> &mut MbufHead {
        // SAFETY: as for `head`; `&mut self` makes the access exclusive.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for Mbuf {
    fn drop(&mut self) {
        self.pool().release_chain(self.index(), self.head().next);
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf")
            .field("len", &self.len())
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}
