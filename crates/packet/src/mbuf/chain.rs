//! Packets in several buffers: jumbo frames, and the large frames that segmentation offload makes.

use std::slice;

use super::pool::Link;
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
        Segments { packet: self, first: true, next: self.next }
    }

    /// A copy of all bytes; for tests, captures and other places where speed does not matter.
    pub fn to_vec(&self) -> Vec<u8> {
        self.segments().flatten().copied().collect()
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
        pool.set_link(index, Link { next: self.next, len: bytes.len() as u16 });
        self.next = index;
        self.total += bytes.len() as u32;
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
        let start = pool.buffer(self.next).as_ptr().wrapping_add(pool.headroom.into());
        self.next = link.next;
        // SAFETY: the packet owns the segment, and the link records how many bytes were written
        // behind the headroom.
        Some(unsafe { slice::from_raw_parts(start, link.len.into()) })
    }
}

#[cfg(test)]
mod tests {
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
    fn an_empty_pool_is_an_error_and_freeing_mends_it() {
        let mut cache = PoolCache::new(pool(2));
        let (a, b) = (cache.alloc(64).unwrap(), cache.alloc(64).unwrap());
        assert_eq!(cache.alloc(64).unwrap_err(), AllocError::Empty);
        cache.free(a);
        assert!(cache.alloc(129).is_err());
        cache.free(b);
        assert!(cache.alloc(64).is_ok());
    }
}
