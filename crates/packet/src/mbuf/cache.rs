//! A lane's stock of free buffers.

use std::mem::ManuallyDrop;

use thiserror::Error;

use super::head::MbufHead;
use super::pool::PoolLink;
use super::{MAX_SEGMENTS, Mbuf, Mempool, NO_SEGMENT};

/// How many buffers a cache takes from the pool, or returns to it, at once.
const BATCH: usize = 64;

/// Why no packet could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocError {
    /// The pool has too few free buffers.
    #[error("the packet pool is empty")]
    Empty,
    /// The packet would need more than [`MAX_SEGMENTS`] buffers.
    #[error("the frame needs a longer chain of buffers than is allowed")]
    Oversize,
}

/// Free buffers that one lane keeps for itself. It goes to the pool only when it runs dry or over.
#[derive(Debug)]
pub struct PoolCache {
    pool: Mempool,
    free: Vec<u32>,
    batch: usize,
}

impl PoolCache {
    /// An empty cache of `pool` that holds at most an eighth of the pool's buffers.
    pub fn new(pool: Mempool) -> PoolCache {
        let batch = BATCH.min(pool.capacity() / 16).max(1);
        PoolCache { pool, free: Vec::with_capacity(2 * batch), batch }
    }

    /// The pool behind the cache.
    pub fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// Takes a buffer and makes it a packet of `len` bytes, whose contents are whatever the buffer
    /// held before.
    ///
    /// # Errors
    /// [`AllocError::Empty`] without a free buffer, [`AllocError::Oversize`] when `len` does not fit
    /// into one buffer.
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Result<Mbuf, AllocError> {
        let inner = self.pool.inner();
        let room = inner.data_room;
        let headroom = inner.headroom;
        let len = u16::try_from(len).ok().filter(|&len| len <= room).ok_or(AllocError::Oversize)?;
        let index = self.take().ok_or(AllocError::Empty)?;
        let inner = self.pool.inner();
        // SAFETY: the headroom lies inside the buffer.
        let data = unsafe { inner.buffer(index).add(headroom.into()) };
        // SAFETY: the index was in the cache, so no other handle has the buffer.
        Ok(unsafe { inner.own(index, MbufHead::new(data, self.pool.pointer(), len)) })
    }

    /// Makes a packet of `len` bytes in the buffer of one that is done with, as [`PoolCache::free`] and
    /// [`PoolCache::alloc`] would, whose contents are whatever the buffer held before.
    ///
    /// # Errors
    /// As for [`PoolCache::alloc`]; the packet is freed then.
    #[inline]
    pub fn renew(&mut self, packet: Mbuf, len: usize) -> Result<Mbuf, AllocError> {
        let inner = self.pool.inner();
        let is_simple = packet.is_of(&self.pool) && !packet.is_chained();
        let fits = u16::try_from(len).ok().filter(|&len| len <= inner.data_room);
        let Some(len) = fits.filter(|_| is_simple) else {
            self.free(packet);
            return self.alloc(len);
        };
        let index = ManuallyDrop::new(packet).index();
        // SAFETY: the headroom lies inside the buffer.
        let data = unsafe { inner.buffer(index).add(inner.headroom.into()) };
        // SAFETY: the buffer was the packet's, whose handle is gone.
        Ok(unsafe { inner.own(index, MbufHead::new(data, self.pool.pointer(), len)) })
    }

    /// Makes a packet of `bytes`, in as many buffers as it needs.
    ///
    /// # Errors
    /// [`AllocError::Empty`] with too few free buffers, [`AllocError::Oversize`] when more than
    /// [`MAX_SEGMENTS`] would be needed. No buffer is lost in either case.
    pub fn alloc_from(&mut self, bytes: &[u8]) -> Result<Mbuf, AllocError> {
        let room = usize::from(self.pool.inner().data_room);
        if bytes.len() > self.pool.longest_packet() {
            return Err(AllocError::Oversize);
        }
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        let mut packet = self.alloc(head.len())?;
        packet.data_mut().copy_from_slice(head);
        // Segments are linked from the last to the first, so that each link is final when written.
        for segment in rest.chunks(room).rev() {
            let Some(index) = self.take() else {
                self.free(packet);
                return Err(AllocError::Empty);
            };
            packet.link_segment(index, segment);
        }
        packet.set_wire_len(packet.head().total);
        Ok(packet)
    }

    /// Copies `packet`, which may be of another pool, into as few buffers as hold it. What the device
    /// reported of it is copied too.
    ///
    /// # Errors
    /// As for [`PoolCache::alloc_from`].
    pub fn copy(&mut self, packet: &Mbuf) -> Result<Mbuf, AllocError> {
        let room = usize::from(self.pool.inner().data_room);
        let mut left = packet.len();
        if left > room * MAX_SEGMENTS {
            return Err(AllocError::Oversize);
        }
        let mut whole: Option<Mbuf> = None;
        let mut segments = packet.segments();
        let mut from: &[u8] = &[];
        loop {
            let mut part = match self.alloc(left.min(room)) {
                Ok(part) => part,
                Err(error) => {
                    whole.into_iter().for_each(|whole| self.free(whole));
                    return Err(error);
                }
            };
            let mut to = part.data_mut();
            while !to.is_empty() {
                if from.is_empty() {
                    from = segments.next().expect("a packet is as long as its segments");
                    continue;
                }
                let count = from.len().min(to.len());
                let (now, later) = to.split_at_mut(count);
                now.copy_from_slice(&from[..count]);
                (from, to) = (&from[count..], later);
            }
            left -= part.len();
            match &mut whole {
                Some(whole) => whole.append(part).expect("its length was checked above"),
                None => whole = Some(part),
            }
            if left == 0 {
                let mut whole = whole.expect("the first part was made above");
                whole.describe_as(packet);
                return Ok(whole);
            }
        }
    }

    /// Returns a packet's buffers. A packet of another pool goes back to that pool.
    #[inline]
    pub fn free(&mut self, packet: Mbuf) {
        if !packet.is_of(&self.pool) {
            return drop(packet);
        }
        let packet = ManuallyDrop::new(packet);
        // Afterwards the head is no longer ours to read.
        let mut segment = packet.head().next;
        self.put(packet.index());
        while segment != NO_SEGMENT {
            let PoolLink { next, .. } = self.pool.inner().link(segment);
            self.put(segment);
            segment = next;
        }
    }

    /// Returns all free buffers of the cache to the pool.
    pub fn flush(&mut self) {
        self.pool.inner().lock_free().append(&mut self.free);
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.refill();
        }
        self.free.pop()
    }

    #[cold]
    fn refill(&mut self) {
        let mut home = self.pool.inner().lock_free();
        let keep = home.len().saturating_sub(self.batch);
        self.free.extend(home.drain(keep..));
    }

    #[inline]
    pub(super) fn put(&mut self, index: u32) {
        if self.free.len() >= 2 * self.batch {
            self.spill();
        }
        self.free.push(index);
    }

    /// Returns the older half: the younger buffers are still in the processor's cache.
    #[cold]
    fn spill(&mut self) {
        self.pool.inner().lock_free().extend(self.free.drain(..self.batch));
    }
}

impl Drop for PoolCache {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MempoolConfig;

    fn pool(buffers: u32) -> Mempool {
        let config = MempoolConfig { buffers, data_room: 128, headroom: 64 };
        Mempool::new(&config).unwrap()
    }

    #[test]
    fn a_packet_that_is_done_with_becomes_another_in_its_own_buffer() {
        let (mine, other) = (pool(4), pool(4));
        let mut cache = PoolCache::new(mine.clone());
        let mut packet = cache.alloc_from(b"headers and data").unwrap();
        packet.set_stamp(7);
        packet.set_mark(1);
        assert!(packet.advance(8));
        let place = packet.data().as_ptr().wrapping_sub(8);
        let mut renewed = cache.renew(packet, 60).unwrap();
        assert_eq!((renewed.data().as_ptr(), renewed.len()), (place, 60));
        assert_eq!((renewed.stamp(), renewed.mark(), renewed.headroom()), (0, 0, 64));

        // What has more buffers, or those of another pool, gives them back.
        renewed.append(cache.alloc_from(&[1; 200]).unwrap()).unwrap();
        let renewed = cache.renew(renewed, 128).unwrap();
        assert!(!renewed.is_chained());
        let stranger = PoolCache::new(other.clone()).alloc(1).unwrap();
        let second = cache.renew(stranger, 1).unwrap();
        assert!(second.is_of(&mine));
        assert_eq!(other.available(), 4);

        // So does what becomes nothing.
        assert_eq!(cache.renew(second, 129).unwrap_err(), AllocError::Oversize);
        cache.free(renewed);
        drop(cache);
        assert_eq!(mine.available(), 4);
    }
}
