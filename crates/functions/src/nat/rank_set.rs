//! Sets of ranks, from which the next member behind any rank is found in constant time.

use std::ops::Range;

use rheostat_state::prefetch_line;

const BITS: usize = u64::BITS as usize;

/// The levels there are at most: enough for all ports.
const LEVELS: usize = 3;

/// Words of all levels of a set of 512 numbers.
const NEAR: usize = 9;

/// A set of numbers below its capacity: a bitmap, above it a bitmap of the words that are not zero, and so
/// on until one word is left. Three levels hold all ports, so every method takes at most three steps up and
/// three down, however many members there are. All levels lie in one piece, which is part of the set itself for as many ports
/// of an address as each of 128 shards has: then whatever leads to the set leads to its members.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct RankSet {
    near: [u64; NEAR],
    /// The words instead, where there are more.
    far: Box<[u64]>,
    /// Where the words of each level end, the members' first; of levels that there are not, where the last one does.
    ends: [u16; LEVELS],
    len: u32,
}

impl RankSet {
    /// An empty set of numbers below `capacity`, which is at most 2^18.
    pub(super) fn new(capacity: usize) -> RankSet {
        let (mut words, mut end, mut ends) = (capacity.max(1), 0, [0; LEVELS]);
        for level in &mut ends {
            if words > 1 || end == 0 {
                words = words.div_ceil(BITS);
                end += words;
            }
            *level = u16::try_from(end).expect("a set of ports is small");
        }
        debug_assert_eq!(words, 1, "the highest level is one word");
        let far = if end > NEAR { vec![0; end].into_boxed_slice() } else { Box::default() };
        RankSet { near: [0; NEAR], far, ends, len: 0 }
    }

    #[inline]
    fn words(&self) -> &[u64] {
        if self.far.is_empty() { &self.near } else { &self.far }
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        if self.far.is_empty() { &mut self.near } else { &mut self.far }
    }

    /// Asks for the members.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_line(&self.near[0]);
        prefetch_line(&self.near[NEAR - 1]);
    }

    /// The words of each level, the members' first.
    #[inline]
    fn level(&self, level: usize) -> &[u64] {
        let start = if level == 0 { 0 } else { self.ends[level - 1] };
        &self.words()[usize::from(start)..usize::from(self.ends[level])]
    }

    /// Where the word lies that has the bit `at` of a level, if the level has one.
    #[inline]
    fn place(&self, level: usize, at: usize) -> Option<usize> {
        let start = if level == 0 { 0 } else { self.ends[level - 1].into() };
        let place = start + at / BITS;
        (place < self.ends[level].into()).then_some(place)
    }

    /// The number of members.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether `rank` is a member.
    #[inline]
    pub(super) fn contains(&self, rank: usize) -> bool {
        self.place(0, rank).is_some_and(|place| self.words()[place] & (1 << (rank % BITS)) != 0)
    }

    /// Adds a member below the capacity.
    pub(super) fn insert(&mut self, rank: usize) {
        self.len += u32::from(!self.contains(rank));
        let mut at = rank;
        for level in 0..LEVELS {
            let Some(place) = self.place(level, at) else { return };
            let word = &mut self.words_mut()[place];
            let before = *word;
            *word |= 1 << (at % BITS);
            if before != 0 {
                // The levels above know of this word.
                return;
            }
            at /= BITS;
        }
    }

    /// Removes a member, if it is one.
    pub(super) fn remove(&mut self, rank: usize) {
        self.len -= u32::from(self.contains(rank));
        let mut at = rank;
        for level in 0..LEVELS {
            let Some(place) = self.place(level, at) else { return };
            let word = &mut self.words_mut()[place];
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
        for level in 0..LEVELS {
            let behind = self.words()[self.place(level, at)?] & (u64::MAX << (at % BITS));
            if behind != 0 {
                // And down to the first member under it.
                let mut found = at / BITS * BITS + behind.trailing_zeros() as usize;
                for below in (0..level).rev() {
                    found = found * BITS + self.level(below)[found].trailing_zeros() as usize;
                }
                return Some(found).filter(|found| *found < range.end);
            }
            at = at / BITS + 1;
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
