//! Packets in several buffers: jumbo frames, and the large frames that segmentation offload makes.

use std::mem::ManuallyDrop;
use std::slice;

use super::head::MbufHead;
use super::pool::PoolLink;
use super::{Mbuf, NO_SEGMENT};

/// Buffers one packet may use at most: enough for the 64 KiB of a segmentation-offload frame.
pub const MAX_SEGMENTS: usize = 40;

/// The segments of a packet in order.
#[derive(Debug)]
pub struct Segments<'a> {
    packet: &'a Mbuf,
    first: bool,
    next: u32,
}

impl Mbuf {
    /// The packet's bytes, segment by segment.
    pub fn segments(&self) -> Segments<'_> {
        Segments { packet: self, first: true, next: self.head().next }
    }

    /// A copy of all bytes; for tests, captures and other places where speed does not matter.
    pub fn to_vec(&self) -> Vec<u8> {
        self.segments().flatten().copied().collect()
    }

    /// Makes `rest` the end of this packet, without copying. Walks the chain, so that a packet of n
    /// pieces is put together in n² steps, for the few that there are.
    ///
    /// # Errors
    /// Gives back `rest` when it is of another pool, or the chain would have more than
    /// [`MAX_SEGMENTS`].
    pub fn append(&mut self, rest: Mbuf) -> Result<(), Mbuf> {
        let segments = self.segments().count() + rest.segments().count();
        if rest.head().pool != self.head().pool || segments > MAX_SEGMENTS {
            return Err(rest);
        }
        let rest = ManuallyDrop::new(rest);
        let (pool, index) = (self.pool(), rest.index());
        pool.set_link(index, rest.first_link());
        let mut end = None;
        let mut segment = self.head().next;
        while segment != NO_SEGMENT {
            end = Some(segment);
            segment = pool.link(segment).next;
        }
        match end {
            Some(end) => pool.set_link(end, PoolLink { next: index, ..pool.link(end) }),
            None => self.head_mut().next = index,
        }
        self.head_mut().total += rest.head().total;
        self.set_wire_len(self.wire_len() + rest.wire_len());
        Ok(())
    }

    /// Where the first segment lies, as for those behind it.
    #[inline]
    pub(super) fn first_link(&self) -> PoolLink {
        let MbufHead { next, len, .. } = *self.head();
        // A buffer is shorter than 64 KiB.
        PoolLink { next, offset: self.headroom() as u16, len }
    }

    /// Puts `bytes` into buffer `index`, which the caller owns and gives up, and links it directly
    /// behind the first segment.
    pub(super) fn link_segment(&mut self, index: u32, bytes: &[u8]) {
        let pool = self.pool();
        assert!(bytes.len() <= usize::from(pool.data_room));
        let start = pool.buffer(index).as_ptr().wrapping_add(pool.headroom.into());
        // SAFETY: the caller owns the buffer, `bytes` fits behind its headroom, and a free buffer
        // cannot overlap `bytes`.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        let (offset, len) = (pool.headroom, bytes.len() as u16);
        pool.set_link(index, PoolLink { next: self.head().next, offset, len });
        let head = self.head_mut();
        head.next = index;
        head.total += bytes.len() as u32;
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.first) {
            return Some(self.packet.data());
        }
        if self.next == NO_SEGMENT {
            return None;
        }
        let pool = self.packet.pool();
        let link = pool.link(self.next);
        let start = pool.buffer(self.next).as_ptr().wrapping_add(link.offset.into());
        self.next = link.next;
        // SAFETY: the packet owns the segment, and the link records where its bytes lie: behind the
        // headroom, or where they lay when the segment was a packet of its own.
        Some(unsafe { slice::from_raw_parts(start, link.len.into()) })
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::super::{AllocError, Mempool, MempoolConfig, PoolCache};
    use super::*;

    fn pool(buffers: u32) -> Mempool {
        Mempool::new(&MempoolConfig { buffers, data_room: 128, headroom: 64 }).unwrap()
    }

    #[test]
    fn a_long_frame_is_chained_and_reads_back() {
        let pool = pool(64);
        let mut cache = PoolCache::new(pool.clone());
        let bytes: Vec<u8> = (0..1_000_u32).map(|i| (i * 31) as u8).collect();
        let packet = cache.alloc_from(&bytes).unwrap();
        assert!(packet.is_chained());
        assert_eq!(packet.len(), 1_000);
        assert_eq!(packet.segments().count(), 8);
        assert_eq!(packet.to_vec(), bytes);
        cache.free(packet);
        cache.flush();
        assert_eq!(pool.available(), 64);
    }

    #[test]
    fn a_frame_that_does_not_fit_leaves_no_buffer_behind() {
        let pool = pool(4);
        let mut cache = PoolCache::new(pool.clone());
        assert_eq!(cache.alloc_from(&[0; 128 * 5]).unwrap_err(), AllocError::Empty);
        assert_eq!(
            cache.alloc_from(&[0; 128 * (MAX_SEGMENTS + 1)]).unwrap_err(),
            AllocError::Oversize
        );
        cache.flush();
        assert_eq!(pool.available(), 4);
    }

    #[test]
    fn packets_are_joined_in_order_and_only_within_bounds() {
        let pool = pool(64);
        let mut cache = PoolCache::new(pool.clone());
        let mut packet = cache.alloc_from(b"one ").unwrap();
        let mut second = cache.alloc_from(b"xx two ").unwrap();
        assert!(second.advance(3));
        packet.append(second).unwrap();
        packet.append(cache.alloc_from(&[b'3'; 300]).unwrap()).unwrap();
        assert_eq!(packet.to_vec(), [b"one two ".as_slice(), &[b'3'; 300]].concat());
        assert_eq!((packet.len(), packet.segments().count()), (308, 5));
        let long = cache.alloc_from(&[0; 128 * 36]).unwrap();
        let long = packet.append(long).unwrap_err();
        let stranger = PoolCache::new(self::pool(1)).alloc_from(b"x").unwrap();
        assert!(packet.append(stranger).is_err());
        assert_eq!(packet.len(), 308);
        cache.free(packet);
        cache.free(long);
        drop(cache);
        assert_eq!(pool.available(), 64);
    }

    #[test]
    fn a_copy_holds_the_same_bytes_in_fewer_buffers() {
        let pool = pool(64);
        let mut cache = PoolCache::new(pool);
        for len in [0, 1, 128, 129, 500] {
            let bytes: Vec<u8> = (0..len).map(|i: u32| i as u8).collect();
            let mut original = cache.alloc_from(&[]).unwrap();
            for part in bytes.chunks(50) {
                original.append(cache.alloc_from(part).unwrap()).unwrap();
            }
            original.set_stamp(7);
            let copy = cache.copy(&original).unwrap();
            assert_eq!((copy.to_vec(), copy.stamp()), (bytes, 7));
            assert_eq!(copy.segments().count(), (len as usize).div_ceil(128).max(1));
            cache.free(original);
            cache.free(copy);
        }
        let mut small = PoolCache::new(self::pool(2));
        let long = cache.alloc_from(&[0; 300]).unwrap();
        assert_eq!(small.copy(&long).unwrap_err(), AllocError::Empty);
        small.flush();
        assert_eq!(small.pool().available(), 2);
    }

    #[test]
    fn dropping_a_packet_returns_its_chain() {
        let pool = pool(16);
        let mut cache = PoolCache::new(pool.clone());
        let packet = cache.alloc_from(&[7; 500]).unwrap();
        std::thread::spawn(move || drop(packet)).join().unwrap();
        drop(cache);
        assert_eq!(pool.available(), 16);
    }

    #[test]
    fn a_packet_may_outlive_its_pool() {
        let pool = pool(4);
        let mut packet = PoolCache::new(pool.clone()).alloc_from(b"still here").unwrap();
        drop(pool);
        packet.data_mut()[0] = b'S';
        assert_eq!(packet.data(), b"Still here");
    }

    #[test]
    fn headers_grow_into_the_headroom_and_no_further() {
        let mut cache = PoolCache::new(pool(2));
        let mut packet = cache.alloc_from(b"payload").unwrap();
        packet.prepend(4).unwrap().copy_from_slice(b"head");
        assert_eq!(packet.data(), b"headpayload");
        assert!(packet.prepend(61).is_none());
        assert_eq!(packet.headroom(), 60);
        assert!(packet.advance(4));
        assert!(!packet.advance(8));
        assert_eq!(packet.data(), b"payload");
    }

    #[test]
    fn an_empty_pool_is_an_error_and_freeing_fixes_it() {
        let mut cache = PoolCache::new(pool(2));
        let (a, b) = (cache.alloc(64).unwrap(), cache.alloc(64).unwrap());
        assert_eq!(cache.alloc(64).unwrap_err(), AllocError::Empty);
        cache.free(a);
        assert!(cache.alloc(129).is_err());
        cache.free(b);
        assert!(cache.alloc(64).is_ok());
    }
}
