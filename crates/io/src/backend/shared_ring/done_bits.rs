//! One bit per descriptor of a ring: whether it is done with, in the lap under way.

use rheostat_base::sync::atomic::{AtomicU64, Ordering};

/// One bit for each descriptor of a ring whose size is a power of two. Indices grow forever and are reduced by the mask.
pub(super) struct DoneBits {
    words: Box<[AtomicU64]>,
    mask: u64,
    /// Bits of a word that are in use: 64, or all of a smaller ring.
    used: u64,
}

impl DoneBits {
    /// No bit set. `capacity` is a power of two.
    pub(super) fn new(capacity: u64) -> DoneBits {
        let used = capacity.min(64);
        let words = (0..capacity / used).map(|_| AtomicU64::new(0)).collect();
        DoneBits { words, mask: capacity - 1, used }
    }

    /// The word of an index, the place of its bit there, and how many of at most `most` bits follow in this word.
    fn piece(&self, index: u64, most: u64) -> (&AtomicU64, u64, u64) {
        let place = index & self.mask;
        let bit = place % self.used;
        (&self.words[(place / self.used) as usize], bit, most.min(self.used - bit))
    }

    /// `count` ones from bit `bit` on.
    fn ones(bit: u64, count: u64) -> u64 {
        (u64::MAX >> (64 - count)) << bit
    }

    /// Calls `f` with each word that the indices from `first` to `end` touch, and their bits there.
    fn for_each(&self, first: u64, end: u64, f: impl Fn(&AtomicU64, u64)) {
        let mut index = first;
        while index < end {
            let (word, bit, count) = self.piece(index, end - index);
            f(word, DoneBits::ones(bit, count));
            index += count;
        }
    }

    /// Sets the bits of the indices from `first` to `end`; what the caller did before is seen by [`DoneBits::prefix`].
    pub(super) fn set(&self, first: u64, end: u64) {
        self.for_each(first, end, |word, bits| {
            // Release: pairs with the Acquire loads of `prefix` and `is_set`; the descriptors are read before.
            word.fetch_or(bits, Ordering::Release);
        });
    }

    /// Clears the bits of the indices from `first` to `end`. The caller publishes this with the tail.
    pub(super) fn clear(&self, first: u64, end: u64) {
        self.for_each(first, end, |word, bits| {
            // Relaxed: published by the Release store of the tail, before which no bit of the next lap is set.
            word.fetch_and(!bits, Ordering::Relaxed);
        });
    }

    /// How many bits are set without a gap from `first` on: at most the ring's capacity.
    pub(super) fn prefix(&self, first: u64) -> u64 {
        let capacity = self.mask + 1;
        let mut found = 0;
        while found < capacity {
            let (word, bit, count) = self.piece(first + found, capacity - found);
            // Acquire: pairs with the Release of `set`; the descriptors counted here are read.
            let run = u64::from((word.load(Ordering::Acquire) >> bit).trailing_ones()).min(count);
            found += run;
            if run < count {
                break;
            }
        }
        found
    }

    /// Whether the bit of an index is set.
    pub(super) fn is_set(&self, index: u64) -> bool {
        let (word, bit, _) = self.piece(index, 1);
        // Relaxed: what is found is counted again under the lock, by `prefix`.
        word.load(Ordering::Relaxed) >> bit & 1 == 1
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Largest ring, as a power of two, and most steps of a case: under Miri, whose every access takes a microsecond, two words
    /// show what many do.
    const SIZE: (u32, usize) = if cfg!(miri) { (7, 6) } else { (8, 59) };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        /// Against a vector of flags: ranges that cross words and wrap are set, counted and cleared as one by one.
        #[test]
        fn behaves_as_flags(
            log in 0..=SIZE.0,
            start in any::<u32>(),
            steps in proptest::collection::vec((any::<bool>(), 0_u64..700, 0_u64..600), 1..=SIZE.1),
        ) {
            let capacity = 1_u64 << log;
            let bits = DoneBits::new(capacity);
            let mut flags = vec![false; capacity as usize];
            for (set, offset, count) in steps {
                let first = u64::from(start) + offset;
                let end = first + count.min(capacity);
                for index in first..end {
                    flags[(index % capacity) as usize] = set;
                }
                if set { bits.set(first, end) } else { bits.clear(first, end) }
                for from in first..first + capacity {
                    let flag = |index: u64| flags[(index % capacity) as usize];
                    let run = (0..capacity).take_while(|at| flag(from + at)).count() as u64;
                    prop_assert_eq!(bits.prefix(from), run);
                    prop_assert_eq!(bits.is_set(from), flag(from));
                }
            }
        }
    }
}
