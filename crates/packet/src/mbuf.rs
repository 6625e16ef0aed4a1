//! Packet buffers. A [`Mempool`] owns all buffers of the process; an [`Mbuf`] is the handle of the one
//! packet that lies in one of them, or in a chain of several; a [`PoolCache`] is a lane's stock of free
//! ones, so that taking and returning a buffer touches nothing shared.
#![allow(unsafe_code)]

mod cache;
mod chain;
mod loan;
mod pool;

pub use cache::{AllocError, PoolCache};
pub use chain::{MAX_SEGMENTS, Segments};
pub use loan::{Loans, Piece, PoolArea, ReturnError};
pub use pool::{Mempool, MempoolConfig, PoolError};

use std::fmt;
use std::ptr::NonNull;
use std::slice;

use rheostat_base::{DeviceId, Time};

use pool::Inner;

/// Marks the end of a chain of segments.
const NO_SEGMENT: u32 = u32::MAX;

/// What the first bytes of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum LinkType {
    /// An Ethernet header (IEEE 802.3, DLT 1).
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header at once (DLT 101, 12, 14, 228, 229).
    Raw,
    /// BSD loopback: a four-byte address family in the byte order of the capturing host (DLT 0), or
    /// in network order (DLT 108).
    Null,
    /// Linux cooked capture, 16 bytes (DLT 113).
    LinuxCooked,
    /// Linux cooked capture version 2, 20 bytes (DLT 276).
    LinuxCooked2,
}

impl LinkType {
    /// All of them, each in the place that its number as `u8` says.
    pub const ALL: [LinkType; 5] = [
        LinkType::Ethernet,
        LinkType::Raw,
        LinkType::Null,
        LinkType::LinuxCooked,
        LinkType::LinuxCooked2,
    ];
}

/// What a device hashed a packet over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum HashKind {
    /// Nothing: the device found no IP header, or does not hash.
    #[default]
    None,
    /// The addresses.
    Addresses,
    /// The addresses and the ports.
    Ports,
}

/// What a device tells of a packet beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta {
    /// When the packet arrived.
    pub timestamp: Time,
    /// The device's hash of the fields that [`Meta::hash_kind`] names, after the device's
    /// orientation.
    pub hash: u32,
    /// Bytes the frame had on the wire; more than the packet holds when a capture cut it short.
    pub wire_len: u32,
    /// The place of the packet in the order of arrival at its device, modulo 2^32.
    pub stamp: u32,
    /// The device the packet arrived on.
    pub device: DeviceId,
    // As numbers, so that the only forbidden value in an `Mbuf` is that of its first pointer: an
    // `Option<Mbuf>` that tells its cases apart by a byte in the middle is copied in odd pieces, and
    // each copy then waits for the stores before it.
    link: u8,
    /// What the hash covers, and in the highest bit whether the packet is returning.
    hash_kind: u8,
    /// Names the packet while it is followed through a run; zero for all others.
    mark: u8,
}

/// The bit of `Meta::hash_kind` that says that a packet is returning: there is no byte left.
const RETURNING: u8 = 0x80;

impl Meta {
    /// Whether the packet comes from the lane itself, and not from a device.
    #[inline]
    pub fn is_returning(&self) -> bool {
        self.hash_kind & RETURNING != 0
    }

    /// Says that the packet comes from the lane itself: no device received it as it is now.
    #[inline]
    pub fn set_returning(&mut self) {
        self.hash_kind |= RETURNING;
    }

    /// What the first bytes of the packet are.
    #[inline]
    pub fn link(&self) -> LinkType {
        LinkType::ALL[usize::from(self.link)]
    }

    /// Says what the first bytes of the packet are.
    #[inline]
    pub fn set_link(&mut self, link: LinkType) {
        self.link = link as u8;
    }

    /// What the device's hash covers.
    #[inline]
    pub fn hash_kind(&self) -> HashKind {
        const KINDS: [HashKind; 3] = [HashKind::None, HashKind::Addresses, HashKind::Ports];
        KINDS[usize::from(self.hash_kind & !RETURNING)]
    }

    /// The mark of a packet that is followed through the run; zero for one that is not.
    #[inline]
    pub fn mark(&self) -> u8 {
        self.mark
    }

    /// Marks the packet, or takes its mark away.
    #[inline]
    pub fn set_mark(&mut self, mark: u8) {
        self.mark = mark;
    }

    /// Notes the device's hash, and what it covers.
    #[inline]
    pub fn set_hash(&mut self, hash: u32, kind: HashKind) {
        self.hash = hash;
        self.hash_kind = self.hash_kind & RETURNING | kind as u8;
    }
}

/// The handle of one packet: it owns a buffer of a [`Mempool`], or a chain of buffers of which the
/// first holds all headers. Handles are 56 bytes, so that polling, steering and sending move them
/// without touching the buffers.
///
/// Return it through [`PoolCache::free`]; one that is merely dropped finds its way back through the
/// pool's lock.
pub struct Mbuf {
    buffer: NonNull<u8>,
    pool: NonNull<Inner>,
    index: u32,
    next: u32,
    offset: u16,
    len: u16,
    total: u32,
    /// What the device told of the packet.
    pub meta: Meta,
}

const _: () = assert!(size_of::<Mbuf>() == 56 && size_of::<Option<Mbuf>>() == 56);

// SAFETY: the handle owns its buffers exclusively, and the pool it points to is `Sync` and outlives
// every handle (see `pool::Owner`).
unsafe impl Send for Mbuf {}
// SAFETY: `&Mbuf` allows only reading.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// Bytes of the packet, all segments together.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet without bytes is not a special case")]
    pub fn len(&self) -> usize {
        self.total as usize
    }

    /// The bytes of the first segment, where all headers lie.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: offset + len lies inside the buffer (kept by every method that changes them), the
        // handle owns the buffer, and buffers are zeroed when the pool is made, so no byte is
        // uninitialised.
        unsafe {
            slice::from_raw_parts(self.buffer.as_ptr().add(self.offset.into()), self.len.into())
        }
    }

    /// The bytes of the first segment, to write.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `data`; `&mut self` makes the access exclusive.
        unsafe {
            slice::from_raw_parts_mut(self.buffer.as_ptr().add(self.offset.into()), self.len.into())
        }
    }

    /// Whether the packet lies in more than one buffer.
    #[inline]
    pub fn is_chained(&self) -> bool {
        self.next != NO_SEGMENT
    }

    /// Whether its buffers are those of `pool`.
    #[inline]
    pub fn is_of(&self, pool: &Mempool) -> bool {
        self.pool == pool.pointer()
    }

    /// Asks the processor to fetch the first line of the headers.
    #[inline]
    pub fn prefetch(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch cannot fault, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch(self.buffer.as_ptr().wrapping_add(self.offset.into()).cast(), _MM_HINT_T0);
        }
    }

    /// Bytes in front of the packet that [`Mbuf::prepend`] can still claim.
    pub fn headroom(&self) -> usize {
        self.offset.into()
    }

    /// Makes the packet `count` bytes longer at the front and returns them to be written, or `None`
    /// when the headroom is smaller.
    pub fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        let count16 = u16::try_from(count).ok()?;
        self.offset = self.offset.checked_sub(count16)?;
        self.len += count16;
        self.total += u32::from(count16);
        Some(&mut self.data_mut()[..count])
    }

    /// Cuts `count` bytes off the front. `false`, and nothing changed, when the first segment has
    /// fewer.
    pub fn advance(&mut self, count: usize) -> bool {
        match u16::try_from(count) {
            Ok(count) if count <= self.len => {
                self.offset += count;
                self.len -= count;
                self.total -= u32::from(count);
                true
            }
            _ => false,
        }
    }

    /// Cuts the packet, which must lie in one buffer, down to `len` bytes. `false`, and nothing changed,
    /// when it is shorter or chained.
    pub fn truncate(&mut self, len: usize) -> bool {
        match u16::try_from(len) {
            Ok(len) if len <= self.len && !self.is_chained() => {
                self.len = len;
                self.total = len.into();
                self.meta.wire_len = len.into();
                true
            }
            _ => false,
        }
    }

    fn pool(&self) -> &Inner {
        // SAFETY: the pool is freed only once every buffer is home, and this handle holds one.
        unsafe { self.pool.as_ref() }
    }
}

impl Drop for Mbuf {
    fn drop(&mut self) {
        self.pool().release_chain(self.index, self.next);
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf").field("len", &self.total).field("meta", &self.meta).finish()
    }
}
