//! The pool that owns all packet buffers.

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;
use rheostat_base::sync::UnsafeCell;
use thiserror::Error;

use super::head::MbufHead;
use super::{Mbuf, NO_SEGMENT};

/// How a pool is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MempoolConfig {
    /// How many buffers the pool has.
    pub buffers: u32,
    /// Bytes of packet that fit into one buffer.
    pub data_room: u16,
    /// Bytes kept free in front of an arriving packet, for headers that a function adds.
    pub headroom: u16,
}

impl Default for MempoolConfig {
    /// Room for an Ethernet frame of full size with two VLAN tags, and an odd number of cache lines
    /// per buffer, so that headers of neighbouring buffers fall into different cache sets.
    fn default() -> MempoolConfig {
        MempoolConfig { buffers: 16_384, data_room: 2_112, headroom: 128 }
    }
}

impl MempoolConfig {
    /// A layout that a kernel can share (AF_XDP's UMEM in its aligned mode): buffers of 2,048 bytes,
    /// of which the kernel keeps the first 256 for itself when a packet arrives.
    pub fn umem(buffers: u32) -> MempoolConfig {
        MempoolConfig { buffers, data_room: 2_048 - 256, headroom: 256 }
    }

    /// Bytes from one buffer to the next.
    pub fn stride(&self) -> usize {
        (usize::from(self.headroom) + usize::from(self.data_room)).next_multiple_of(64)
    }

    /// Bytes that a pool takes, once every buffer has been in use.
    pub fn bytes(&self) -> usize {
        let each = self.stride()
            + size_of::<MbufHead>()
            + size_of::<u32>()
            + size_of::<UnsafeCell<PoolLink>>();
        each * self.buffers as usize
    }
}

/// Why a pool could not be made.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The operating system did not give the memory.
    #[error("cannot map {bytes} bytes for packet buffers: {source}")]
    Map {
        /// The size asked for.
        bytes: usize,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The configuration has no buffers, or buffers without room.
    #[error("a packet pool needs at least one buffer with room for 64 bytes")]
    Empty,
}

/// All packet buffers of the process. Cloning shares the pool.
#[derive(Clone)]
pub struct Mempool {
    owner: Arc<Owner>,
}

/// Frees the pool when the last [`Mempool`] and [`super::PoolCache`] are gone, unless a packet is
/// still alive somewhere: then the memory stays for good, so that the packet's handle never dangles.
struct Owner(NonNull<PoolInner>);

// SAFETY: `Inner` is `Send + Sync`, and `Owner` only points to it.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

/// Which bytes of a buffer belong to a chain, and where the chain goes on.
#[derive(Clone, Copy)]
pub(super) struct PoolLink {
    pub(super) next: u32,
    /// From the start of this buffer to its bytes.
    pub(super) offset: u16,
    /// How many bytes of this buffer belong to the packet.
    pub(super) len: u16,
}

pub(super) struct PoolInner {
    /// Keeps the mappings alive; accessed through `base` and `heads` only.
    _memory: [MmapMut; 2],
    base: NonNull<u8>,
    /// One head per buffer, accessed only by the owner of the buffer.
    heads: NonNull<MbufHead>,
    pub(super) stride: usize,
    pub(super) headroom: u16,
    pub(super) data_room: u16,
    pub(super) count: u32,
    free: Mutex<Vec<u32>>,
    /// One link per buffer, accessed only by the owner of the buffer.
    links: Box<[UnsafeCell<PoolLink>]>,
}

// SAFETY: the free list is behind a lock; buffers, heads and links are accessed only through the handle that
// owns them, and a buffer index is in exactly one place: the free list, a cache or a handle.
unsafe impl Send for PoolInner {}
// SAFETY: as above.
unsafe impl Sync for PoolInner {}

impl Mempool {
    /// Maps the memory, on huge pages where the kernel grants them on advice.
    pub fn new(config: &MempoolConfig) -> Result<Mempool, PoolError> {
        if config.buffers == 0 || config.buffers == NO_SEGMENT || config.data_room < 64 {
            return Err(PoolError::Empty);
        }
        let stride = config.stride();
        let count = config.buffers as usize;
        let (memory, base) = map(stride * count)?;
        let (heads_memory, heads) = map(size_of::<MbufHead>() * count)?;
        let inner = PoolInner {
            _memory: [memory, heads_memory],
            base,
            // Mappings start at pages.
            heads: heads.cast(),
            stride,
            headroom: config.headroom,
            data_room: config.data_room,
            count: config.buffers,
            // Reversed, so that buffers are handed out in the order of their addresses.
            free: Mutex::new((0..config.buffers).rev().collect()),
            links: (0..config.buffers)
                .map(|_| UnsafeCell::new(PoolLink { next: NO_SEGMENT, offset: 0, len: 0 }))
                .collect(),
        };
        let inner = NonNull::from(Box::leak(Box::new(inner)));
        Ok(Mempool { owner: Arc::new(Owner(inner)) })
    }

    /// Buffers in the pool.
    pub fn capacity(&self) -> usize {
        self.inner().count as usize
    }

    /// Bytes of the longest packet that one buffer holds.
    pub fn buffer_room(&self) -> usize {
        self.inner().data_room.into()
    }

    /// Bytes of the longest packet that a chain of buffers holds.
    pub fn longest_packet(&self) -> usize {
        usize::from(self.inner().data_room) * super::MAX_SEGMENTS
    }

    /// Buffers that are home. Buffers in a [`super::PoolCache`] or under a packet are not.
    pub fn available(&self) -> usize {
        self.inner().lock_free().len()
    }

    pub(super) fn inner(&self) -> &PoolInner {
        // SAFETY: `Owner` frees the pool only when it is dropped, and we hold it.
        unsafe { self.owner.0.as_ref() }
    }

    pub(super) fn pointer(&self) -> NonNull<PoolInner> {
        self.owner.0
    }
}

/// Zeroed memory, and where it starts.
fn map(bytes: usize) -> Result<(MmapMut, NonNull<u8>), PoolError> {
    let mut memory = MmapMut::map_anon(bytes).map_err(|source| PoolError::Map { bytes, source })?;
    // A refusal costs speed, not correctness.
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = memory.advise(memmap2::Advice::HugePage);
    let start = NonNull::new(memory.as_mut_ptr()).expect("a mapping is never at address zero");
    Ok((memory, start))
}

impl fmt::Debug for Mempool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mempool").field("capacity", &self.capacity()).finish()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let all_home = {
            // SAFETY: the pool is alive until this function frees it.
            let inner = unsafe { self.0.as_ref() };
            inner.lock_free().len() == inner.count as usize
        };
        if all_home {
            // SAFETY: it came from `Box::leak`; no handle exists, because every handle owns a buffer
            // and all buffers are home; no cache or `Mempool` exists, because they hold the `Owner`.
            // The last buffer was returned under the lock that this thread took after it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl PoolInner {
    /// The start of the first buffer.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.base
    }

    /// The start of buffer `index`.
    pub(super) fn buffer(&self, index: u32) -> NonNull<u8> {
        assert!(index < self.count);
        // SAFETY: index < count, so the address lies inside the mapping.
        unsafe { self.base.add(index as usize * self.stride) }
    }

    /// Makes buffer `index` a packet with this head.
    ///
    /// # Safety
    /// The caller owns the buffer, and gives it to the handle; the head states where in this buffer the packet lies.
    #[inline]
    pub(super) unsafe fn own(&self, index: u32, head: MbufHead) -> Mbuf {
        assert!(index < self.count);
        // SAFETY: index < count, so the place lies inside the mapping, and its owner is the caller.
        unsafe {
            let place = self.heads.add(index as usize);
            place.write(head);
            Mbuf(place)
        }
    }

    /// The number of the buffer that a head belongs to.
    #[inline]
    pub(super) fn index_of(&self, head: NonNull<MbufHead>) -> u32 {
        // SAFETY: every handle's head lies in the array of its pool.
        unsafe { head.offset_from(self.heads) as u32 }
    }

    /// The link behind buffer `index`; the caller must own that buffer.
    pub(super) fn link(&self, index: u32) -> PoolLink {
        // SAFETY: only the owner of a buffer accesses its link, and the caller owns it.
        self.links[index as usize].with(|link| unsafe { *link })
    }

    /// Sets the link behind buffer `index`; the caller must own that buffer.
    pub(super) fn set_link(&self, index: u32, link: PoolLink) {
        // SAFETY: as for `link`.
        self.links[index as usize].with_mut(|place| unsafe { *place = link });
    }

    pub(super) fn lock_free(&self) -> MutexGuard<'_, Vec<u32>> {
        // A panic under this lock cannot leave the list half changed.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a packet's buffers to the pool.
    pub(super) fn release_chain(&self, first: u32, next: u32) {
        let mut free = self.lock_free();
        free.push(first);
        let mut segment = next;
        while segment != NO_SEGMENT {
            let link = self.link(segment);
            free.push(segment);
            segment = link.next;
        }
    }
}
