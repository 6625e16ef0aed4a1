//! Encoded bytes that the send buffer had no room for.

/// Encoded bytes that the send buffer had no room for, oldest first. Bytes that were written are passed over and not moved out, and
/// their memory is given back once they are half of all: for each byte that enters, at most one is moved.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    bytes: Vec<u8>,
    /// Bytes at the start that were written.
    written: usize,
}

/// Bytes that are kept however many of them were written.
const KEPT: usize = 64 << 10;

impl Unwritten {
    /// None. Takes no memory.
    pub(crate) const fn new() -> Unwritten {
        Unwritten { bytes: Vec::new(), written: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of memory.
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes that are left.
    pub(crate) fn left(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Takes the bytes of `piece` behind the first `written`, where nothing is left of earlier ones. Many are taken with their memory.
    pub(crate) fn take(&mut self, piece: &mut Vec<u8>, written: usize) {
        debug_assert!(self.is_empty(), "pieces leave one by one");
        let left = &piece[written..];
        if left.is_empty() {
            piece.shrink_to(KEPT);
        } else if left.len() < KEPT {
            self.bytes = left.to_vec();
            piece.shrink_to(KEPT);
        } else {
            (self.bytes, self.written) = (std::mem::take(piece), written);
        }
    }

    /// Passes over the first of the bytes that are left, which were written. Returns how many bytes were moved for it.
    pub(crate) fn advance(&mut self, written: usize) -> usize {
        self.written += written;
        let left = self.bytes.len() - self.written;
        if left == 0 {
            *self = Unwritten::new();
            return 0;
        }
        if self.written < left.max(KEPT) {
            return 0;
        }
        self.bytes.drain(..self.written);
        self.bytes.shrink_to_fit();
        self.written = 0;
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_each_moved_once_at_most_and_memory_follows() {
        const LEN: usize = 10_000_000;
        let bytes: Vec<u8> = (0..LEN as u32).map(|at| (at.wrapping_mul(97) >> 5) as u8).collect();
        let (mut unwritten, mut piece) = (Unwritten::new(), bytes.clone());
        unwritten.take(&mut piece, 1_000);
        assert_eq!(piece.capacity(), 0, "the bytes are taken with their memory");
        let (mut at, mut moved) = (1_000, 0);
        while !unwritten.is_empty() {
            let len = unwritten.left().len().min(1_460);
            assert_eq!(unwritten.left()[..len], bytes[at..at + len]);
            moved += unwritten.advance(len);
            at += len;
            assert!(unwritten.allocated() <= 2 * (LEN - at) + 2 * KEPT, "{at}");
        }
        assert_eq!((at, unwritten.allocated()), (LEN, 0));
        assert!(moved <= LEN, "{moved} bytes were moved for {LEN}");
    }

    #[test]
    fn few_bytes_are_copied_and_the_buffer_of_pieces_stays() {
        let (mut unwritten, mut piece) = (Unwritten::new(), vec![7; KEPT]);
        unwritten.take(&mut piece, KEPT - 100);
        assert_eq!((unwritten.left(), unwritten.allocated()), (&[7; 100][..], 100));
        assert!(piece.capacity() >= KEPT, "it is used again");
    }
}
