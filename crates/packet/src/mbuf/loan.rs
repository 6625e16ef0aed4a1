//! Buffers on loan to a kernel, which fills them with packets or sends what they hold: the pool as the
//! UMEM of AF_XDP sockets. A buffer on loan is named by its address, the offset from the pool's start,
//! and belongs to the kernel until that address comes back on one of the kernel's rings.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use super::head::MbufHead;
use super::{Mbuf, Mempool, NO_SEGMENT, PoolCache};

/// The memory of a pool, as a kernel requests it that is to read and write there.
#[derive(Clone, Copy, Debug)]
pub struct PoolArea {
    /// Where it starts: the start of a page.
    pub start: NonNull<u8>,
    /// How long it is.
    pub bytes: usize,
    /// From one buffer to the next.
    pub stride: usize,
    /// From the start of a buffer to that of a packet which arrives in it.
    pub headroom: usize,
}

/// A piece of a packet that was lent to be sent: the contents of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it starts, from the start of the pool.
    pub address: u64,
    /// How many bytes it has.
    pub len: u32,
    /// Whether no further piece of the same packet follows.
    pub last: bool,
}

/// Why what a kernel gave back cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReturnError {
    /// The address is outside of the pool.
    #[error("address {0:#x} is outside of the packet pool")]
    Outside(u64),
    /// The packet would reach beyond the end of its buffer.
    #[error("{len} bytes at address {address:#x} do not lie in one buffer")]
    TooLong {
        /// Where the packet starts.
        address: u64,
        /// How many bytes it is said to have.
        len: u32,
    },
    /// The buffer was not lent, or came back already.
    #[error("the buffer at address {0:#x} was not lent")]
    NotLent(u64),
}

/// The buffers of a pool that one borrower holds. Every borrower (a hardware queue of a device) has a
/// record of its own, so that buffers which it never gives back can be called in when it is gone.
///
/// Buffers on loan when the record is dropped are lost to the pool: call [`Loans::call_in`] before, once the borrower is known to
/// be gone.
#[derive(Debug)]
pub struct Loans {
    pool: Mempool,
    /// By buffer. Relaxed throughout: only the holder of a buffer's address touches its flag, and the rings that carry the
    /// address from one holder to the next order their accesses.
    lent: Box<[AtomicBool]>,
}

impl Mempool {
    /// The pool's memory, to be registered with a kernel. Only the kernel may read or write there, in buffers on loan to it
    /// through [`Loans`].
    pub fn area(&self) -> PoolArea {
        let inner = self.inner();
        PoolArea {
            start: inner.start(),
            bytes: inner.stride * inner.count as usize,
            stride: inner.stride,
            headroom: inner.headroom.into(),
        }
    }
}

impl Loans {
    /// A record of loans from `pool`, none so far.
    pub fn new(pool: &Mempool) -> Loans {
        let lent = (0..pool.capacity()).map(|_| AtomicBool::new(false)).collect();
        Loans { pool: pool.clone(), lent }
    }

    /// The pool behind the loans.
    pub fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// Puts free buffers on loan, as many as `addresses` holds or there are, and returns how many. `cache`
    /// must be one of the same pool.
    pub fn lend_free(&self, cache: &mut PoolCache, addresses: &mut [u64]) -> usize {
        self.assert_same_pool(cache);
        let mut count = 0;
        for address in addresses {
            let Some(index) = cache.take() else { break };
            self.lent[index as usize].store(true, Ordering::Relaxed);
            *address = self.address(index, 0);
            count += 1;
        }
        count
    }

    /// Puts the buffers of `packet` on loan and calls `each` for every piece of it, in order; or gives back
    /// the packet of another pool.
    pub fn lend_packet(&self, packet: Mbuf, mut each: impl FnMut(Piece)) -> Result<(), Mbuf> {
        if !packet.is_of(&self.pool) {
            return Err(packet);
        }
        let packet = ManuallyDrop::new(packet);
        let mut piece = (packet.index(), packet.first_link());
        loop {
            let (index, link) = piece;
            self.lent[index as usize].store(true, Ordering::Relaxed);
            let last = link.next == NO_SEGMENT;
            // Before the piece is handed on: afterwards its link is no longer ours to read.
            let next = (!last).then(|| (link.next, self.pool.inner().link(link.next)));
            each(Piece { address: self.address(index, link.offset), len: link.len.into(), last });
            match next {
                Some(next) => piece = next,
                None => return Ok(()),
            }
        }
    }

    /// Takes back a buffer in which the kernel has put `len` bytes at `address`, as a packet.
    ///
    /// # Errors
    /// [`ReturnError`] for what cannot be; nothing has changed hands then.
    ///
    /// # Safety
    /// The borrower whose loans these are has given back `address`, and no longer reads or writes the
    /// buffer.
    #[inline]
    pub unsafe fn receive(&self, address: u64, len: u32) -> Result<Mbuf, ReturnError> {
        let inner = self.pool.inner();
        let (index, offset) = self.locate(address)?;
        let end = u64::from(offset) + u64::from(len);
        if end > inner.stride as u64 {
            return Err(ReturnError::TooLong { address, len });
        }
        self.settle(index, address)?;
        // SAFETY: the offset lies inside the buffer.
        let data = unsafe { inner.buffer(index).add(offset.into()) };
        // A buffer is shorter than 64 KiB.
        let head = MbufHead::new(data, self.pool.pointer(), len as u16);
        // SAFETY: the buffer was on loan, and the borrower has given it back.
        Ok(unsafe { inner.own(index, head) })
    }

    /// Takes back a buffer that was lent to be sent, into `cache`, which must be one of the same pool.
    ///
    /// # Errors
    /// [`ReturnError`] for what cannot be; nothing has changed hands then.
    ///
    /// # Safety
    /// As for [`Loans::receive`].
    #[inline]
    pub unsafe fn take_back(&self, address: u64, cache: &mut PoolCache) -> Result<(), ReturnError> {
        self.assert_same_pool(cache);
        let (index, _) = self.locate(address)?;
        self.settle(index, address)?;
        cache.put(index);
        Ok(())
    }

    /// How many buffers are on loan. Looks at all of them.
    pub fn outstanding(&self) -> usize {
        self.lent.iter().filter(|lent| lent.load(Ordering::Relaxed)).count()
    }

    /// Returns every buffer that is on loan to the pool, and returns how many there were.
    ///
    /// # Safety
    /// The borrower is gone: it gives nothing back any more, and reads and writes no buffer.
    pub unsafe fn call_in(&self) -> usize {
        let mut free = self.pool.inner().lock_free();
        let before = free.len();
        for (index, lent) in (0..).zip(&self.lent) {
            if lent.swap(false, Ordering::Relaxed) {
                free.push(index);
            }
        }
        free.len() - before
    }

    fn address(&self, index: u32, offset: u16) -> u64 {
        u64::from(index) * self.pool.inner().stride as u64 + u64::from(offset)
    }

    /// The buffer that an address lies in, and how far from its start.
    #[inline]
    fn locate(&self, address: u64) -> Result<(u32, u16), ReturnError> {
        let inner = self.pool.inner();
        let stride = inner.stride as u64;
        // Strides of lent pools are powers of two, mostly; a division is fast enough for the others.
        let (index, offset) = match stride.is_power_of_two() {
            true => (address >> stride.trailing_zeros(), address & (stride - 1)),
            false => (address / stride, address % stride),
        };
        if index >= u64::from(inner.count) {
            return Err(ReturnError::Outside(address));
        }
        // Both fit: the index is below a count of 32 bits, and a stride is below 2^17 + 64, of which
        // only the first 65,535 bytes can be the start of a packet.
        let offset = u16::try_from(offset).map_err(|_| ReturnError::Outside(address))?;
        Ok((index as u32, offset))
    }

    /// Ends the loan of a buffer.
    #[inline]
    fn settle(&self, index: u32, address: u64) -> Result<(), ReturnError> {
        let lent = &self.lent[index as usize];
        if !lent.load(Ordering::Relaxed) {
            return Err(ReturnError::NotLent(address));
        }
        lent.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn assert_same_pool(&self, cache: &PoolCache) {
        assert!(
            cache.pool().pointer() == self.pool.pointer(),
            "buffers are lent from and returned to caches of one pool"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::MempoolConfig;
    use super::*;

    const HEADROOM: u16 = 256;

    fn pool(buffers: u32) -> Mempool {
        let config = MempoolConfig { data_room: 1_792, headroom: HEADROOM, buffers };
        Mempool::new(&config).unwrap()
    }

    /// Plays the kernel: writes `bytes` into a buffer on loan, where packets start.
    fn fill(pool: &Mempool, address: u64, bytes: &[u8]) {
        let area = pool.area();
        assert!(address as usize + bytes.len() <= area.bytes);
        // SAFETY: the address is inside the pool, and its buffer is on loan to this test.
        unsafe {
            area.start
                .as_ptr()
                .add(address as usize)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    #[test]
    fn a_packet_crosses_from_one_borrower_to_another_in_place() {
        let pool = pool(8);
        let mut cache = PoolCache::new(pool.clone());
        let (left, right) = (Loans::new(&pool), Loans::new(&pool));
        let mut addresses = [0; 3];
        assert_eq!(left.lend_free(&mut cache, &mut addresses), 3);
        assert_eq!(left.outstanding(), 3);
        let address = addresses[1] + u64::from(HEADROOM);
        fill(&pool, address, b"a packet of sorts");
        // SAFETY: this test is the borrower, and done with the buffer.
        let mut packet = unsafe { left.receive(address, 17) }.unwrap();
        assert_eq!(packet.data(), b"a packet of sorts");
        assert_eq!((packet.headroom(), packet.wire_len()), (256, 17));
        packet.prepend(4).unwrap().copy_from_slice(b"tag ");
        let mut pieces = Vec::new();
        right.lend_packet(packet, |piece| pieces.push(piece)).unwrap();
        assert_eq!(pieces, [Piece { address: address - 4, len: 21, last: true }]);
        assert_eq!((left.outstanding(), right.outstanding()), (2, 1));
        // SAFETY: as above.
        unsafe { right.take_back(pieces[0].address, &mut cache) }.unwrap();
        // SAFETY: as above, for good.
        assert_eq!(unsafe { left.call_in() }, 2);
        drop(cache);
        assert_eq!(pool.available(), 8);
    }

    #[test]
    fn a_chain_is_lent_piece_by_piece_and_put_together_again() {
        let pool = pool(8);
        let mut cache = PoolCache::new(pool.clone());
        let bytes: Vec<u8> = (0..4_000_u32).map(|i| (i * 7) as u8).collect();
        let packet = cache.alloc_from(&bytes).unwrap();
        let loans = Loans::new(&pool);
        let mut pieces = Vec::new();
        loans.lend_packet(packet, |piece| pieces.push(piece)).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.len).collect::<Vec<_>>(), [1_792, 1_792, 416]);
        assert_eq!(pieces.iter().map(|piece| piece.last).collect::<Vec<_>>(), [false, false, true]);
        let mut parts = pieces.iter().map(|piece| {
            // SAFETY: this test is the borrower, and done with the buffer.
            unsafe { loans.receive(piece.address, piece.len) }.unwrap()
        });
        let mut whole = parts.next().unwrap();
        parts.for_each(|part| whole.append(part).unwrap());
        assert_eq!(whole.to_vec(), bytes);
        assert_eq!(loans.outstanding(), 0);
        cache.free(whole);
        drop(cache);
        assert_eq!(pool.available(), 8);
    }

    #[test]
    fn what_was_not_lent_or_cannot_be_is_refused() {
        let pool = pool(4);
        let mut cache = PoolCache::new(pool.clone());
        let loans = Loans::new(&pool);
        let mut address = [0];
        loans.lend_free(&mut cache, &mut address);
        let [address] = address;
        // SAFETY: this test is the borrower; refusals change nothing.
        unsafe {
            let outside = pool.area().bytes as u64;
            assert_eq!(loans.receive(outside, 1).unwrap_err(), ReturnError::Outside(outside));
            assert_eq!(loans.receive(u64::MAX, 1).unwrap_err(), ReturnError::Outside(u64::MAX));
            let long = loans.receive(address + 256, 1_793).unwrap_err();
            assert_eq!(long, ReturnError::TooLong { address: address + 256, len: 1_793 });
            let other = address ^ 2_048;
            assert_eq!(loans.receive(other, 1).unwrap_err(), ReturnError::NotLent(other));
            loans.take_back(address, &mut cache).unwrap();
            let again = loans.take_back(address, &mut cache).unwrap_err();
            assert_eq!(again, ReturnError::NotLent(address));
        }
        drop(cache);
        assert_eq!(pool.available(), 4);
    }

    #[test]
    fn no_more_is_lent_than_there_is_and_strangers_are_given_back() {
        let pool = pool(3);
        let mut cache = PoolCache::new(pool.clone());
        let loans = Loans::new(&pool);
        assert_eq!(loans.lend_free(&mut cache, &mut [0; 5]), 3);
        let stranger = PoolCache::new(self::pool(2)).alloc_from(b"from elsewhere").unwrap();
        let stranger = loans.lend_packet(stranger, |_| panic!("lent a stranger")).unwrap_err();
        assert_eq!(stranger.data(), b"from elsewhere");
        // SAFETY: this test is the borrower, and gone.
        assert_eq!(unsafe { loans.call_in() }, 3);
        assert_eq!(pool.available(), 3);
    }
}
