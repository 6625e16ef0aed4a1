//! Sets of ranks, from which the next member behind any rank is found in constant time.

use std::ops::Range;

const BITS: usize = u64::BITS as usize;

/// A set of numbers below its capacity: a bitmap, above it a bitmap of the words that are not zero, and so
/// on until one word is left. Three levels hold all ports, so every method takes at most three steps up and
/// three down, however many members there are.
#[derive(Clone, Debug, Default)]
pub(super) struct RankSet {
    /// The members first.
    levels: Vec<Box<[u64]>>,
    len: usize,
}

impl RankSet {
    /// An empty set of numbers below `capacity`.
    pub(super) fn new(capacity: usize) -> RankSet {
        let mut levels = Vec::new();
        let mut words = capacity.max(1);
        loop {
            words = words.div_ceil(BITS);
            levels.push(vec![0; words].into_boxed_slice());
            if words == 1 {
                return RankSet { levels, len: 0 };
            }
        }
    }

    /// The number of members.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether `rank` is a member.
    pub(super) fn contains(&self, rank: usize) -> bool {
        self.levels.first().is_some_and(|words| {
            words.get(rank / BITS).is_some_and(|word| word & (1 << (rank % BITS)) != 0)
        })
    }

    /// Adds a member below the capacity.
    pub(super) fn insert(&mut self, rank: usize) {
        self.len += usize::from(!self.contains(rank));
        let mut at = rank;
        for words in &mut self.levels {
            words[at / BITS] |= 1 << (at % BITS);
            at /= BITS;
        }
    }

    /// Removes a member, if it is one.
    pub(super) fn remove(&mut self, rank: usize) {
        self.len -= usize::from(self.contains(rank));
        let mut at = rank;
        for words in &mut self.levels {
            let Some(word) = words.get_mut(at / BITS) else { return };
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                return;
            }
            at /= BITS;
        }
    }

    /// The first member in `range`.
    pub(super) fn first_in(&self, range: Range<usize>) -> Option<usize> {
        let mut at = range.start;
        // Up, until a word has a member at or behind `at`.
        for (level, words) in self.levels.iter().enumerate() {
            let (place, bit) = (at / BITS, at % BITS);
            let behind = words.get(place)? & (u64::MAX << bit);
            if behind != 0 {
                // And down to the first member under it.
                let mut found = place * BITS + behind.trailing_zeros() as usize;
                for words in self.levels[..level].iter().rev() {
                    found = found * BITS + words[found].trailing_zeros() as usize;
                }
                return Some(found).filter(|found| *found < range.end);
            }
            at = place + 1;
        }
        None
    }

    /// The first member in `range` from `start` on, which lies in it, and around its end.
    pub(super) fn first_from(&self, start: usize, range: Range<usize>) -> Option<usize> {
        self.first_in(start..range.end).or_else(|| self.first_in(range.start..start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_finds_what_a_plain_one_does(
            capacity in prop::sample::select(vec![1_usize, 63, 64, 65, 504, 4_096, 4_097, 65_536]),
            steps in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u16>(), any::<bool>()), 1..200),
        ) {
            let mut set = RankSet::new(capacity);
            let mut plain = BTreeSet::new();
            for (rank, from, to, add) in steps {
                let [rank, from, to] = [rank, from, to].map(|n| usize::from(n) % capacity);
                if add {
                    set.insert(rank);
                    plain.insert(rank);
                } else {
                    set.remove(rank);
                    plain.remove(&rank);
                }
                prop_assert_eq!(set.len(), plain.len());
                prop_assert_eq!(set.contains(from), plain.contains(&from));
                let (from, to) = (from.min(to), from.max(to));
                let expected = plain.range(from..to).next().copied();
                prop_assert_eq!(set.first_in(from..to), expected);
                let around = plain.range(to..capacity).chain(plain.range(from..to)).next().copied();
                prop_assert_eq!(set.first_from(to, from..capacity), around);
            }
        }
    }
}
