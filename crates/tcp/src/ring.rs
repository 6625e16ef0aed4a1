//! A ring of bytes that grows up to a limit.

/// Bytes in order, the first of which leaves first. Memory is allocated when it is needed, doubling up to the limit; while the
/// ring grows, the old bytes exist beside the new ones.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    head: usize,
    len: usize,
    limit: usize,
}

/// Bytes that are allocated at first.
const FIRST: usize = 256;

impl Ring {
    pub(crate) fn new(limit: usize) -> Ring {
        Ring { bytes: Box::default(), head: 0, len: 0, limit }
    }

    /// Bytes in the ring.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that may still be added.
    pub(crate) fn room(&self) -> usize {
        self.limit - self.len
    }

    /// Bytes that it holds at most.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes of memory that it holds: at most the limit.
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.len()
    }

    /// Adds as much of `data` as there is room for, and returns how much that is.
    pub(crate) fn push(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        self.place(0, &data[..taken]);
        self.advance(taken);
        taken
    }

    /// Writes `data` so many bytes behind the last one, without making it part of the ring.
    ///
    /// # Panics
    /// When it would lie beyond the limit.
    pub(crate) fn place(&mut self, distance: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        assert!(distance + data.len() <= self.room(), "bytes within the limit");
        let start = self.len + distance;
        self.reserve(start + data.len());
        let start = self.index(start);
        let first = data.len().min(self.bytes.len() - start);
        self.bytes[start..start + first].copy_from_slice(&data[..first]);
        self.bytes[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// Makes the next bytes, which have been placed, part of the ring.
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(self.len + bytes <= self.bytes.len(), "bytes that have been placed");
        self.len += bytes;
    }

    /// Some of the bytes, in two pieces.
    ///
    /// # Panics
    /// When there are not that many.
    pub(crate) fn pieces(&self, at: usize, len: usize) -> [&[u8]; 2] {
        assert!(at + len <= self.len, "bytes in the ring");
        if len == 0 {
            return [&[], &[]];
        }
        let start = self.index(at);
        let first = len.min(self.bytes.len() - start);
        [&self.bytes[start..start + first], &self.bytes[..len - first]]
    }

    /// Removes the first bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len, "bytes in the ring");
        if bytes > 0 {
            self.head = self.index(bytes);
            self.len -= bytes;
        }
    }

    /// Moves bytes to `out`, as many as there are and fit, and returns how many.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let len = self.len.min(out.len());
        let [first, second] = self.pieces(0, len);
        out[..first.len()].copy_from_slice(first);
        out[first.len()..len].copy_from_slice(second);
        self.consume(len);
        len
    }

    fn index(&self, at: usize) -> usize {
        let index = self.head + at;
        if index >= self.bytes.len() { index - self.bytes.len() } else { index }
    }

    /// Allocates for so many bytes. All bytes move, since those placed ahead are not told apart.
    fn reserve(&mut self, needed: usize) {
        let old = self.bytes.len();
        if needed <= old {
            return;
        }
        let size = needed.max(old * 2).max(FIRST).min(self.limit);
        let mut bytes = vec![0; size].into_boxed_slice();
        bytes[..old - self.head].copy_from_slice(&self.bytes[self.head..]);
        bytes[old - self.head..old].copy_from_slice(&self.bytes[..self.head]);
        self.bytes = bytes;
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_bounded_queue(
            limit in 1_usize..1_200,
            steps in prop::collection::vec((any::<bool>(), 0_usize..400), 0..60),
        ) {
            let mut ring = Ring::new(limit);
            let mut model = VecDeque::new();
            let mut next = 0_u8;
            for (is_push, amount) in steps {
                if is_push {
                    let data: Vec<u8> = (0..amount).map(|i| next.wrapping_add(i as u8)).collect();
                    let taken = ring.push(&data);
                    prop_assert_eq!(taken, amount.min(limit - model.len()));
                    model.extend(&data[..taken]);
                    next = next.wrapping_add(taken as u8);
                } else {
                    let mut out = vec![0; amount];
                    let len = ring.read(&mut out);
                    let expected: Vec<u8> = model.drain(..amount.min(model.len())).collect();
                    prop_assert_eq!(&out[..len], &expected[..]);
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert!(ring.allocated() <= limit);
                prop_assert_eq!(ring.pieces(0, ring.len()).concat(), Vec::from(model.clone()));
            }
        }

        #[test]
        fn placed_bytes_survive_growth_and_wrapping(
            head in 0_usize..300,
            distance in 0_usize..600,
            early in prop::collection::vec(any::<u8>(), 1..200),
        ) {
            let mut ring = Ring::new(1_200);
            ring.push(&vec![0; head]);
            ring.consume(head);
            ring.place(distance, &early);
            ring.place(0, &vec![7; distance]);
            ring.advance(distance + early.len());
            let all = ring.pieces(0, distance + early.len()).concat();
            prop_assert_eq!(&all[distance..], &early[..]);
            prop_assert!(all[..distance].iter().all(|byte| *byte == 7));
        }
    }
}
