//! Some packets of a burst.

use rheostat_packet::BURST;

/// Some packets of a burst, a bit each by their places. Iterated from the first on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(u32);

const _: () = assert!(BURST <= 32);

impl Places {
    /// Those whose bits are set.
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Places {
        Places(bits)
    }

    /// A bit for each.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The first `count` places.
    #[inline]
    pub(crate) fn first(count: usize) -> Places {
        Places(((1_u64 << count) - 1) as u32)
    }

    /// How many there are.
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether they are the first of the burst, none missing.
    #[inline]
    pub(crate) fn lead(self) -> bool {
        self.0 & self.0.wrapping_add(1) == 0
    }

    #[inline]
    pub(crate) fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    #[inline]
    pub(crate) fn remove(&mut self, place: usize) {
        self.0 &= !(1 << place);
    }

    #[inline]
    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & 1 << place != 0
    }

    /// The others.
    #[inline]
    pub(crate) fn without(self, others: Places) -> Places {
        Places(self.0 & !others.0)
    }

    /// The last of them.
    #[inline]
    pub(crate) fn last(self) -> Option<usize> {
        self.0.checked_ilog2().map(|last| last as usize)
    }
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_are_iterated_from_the_first_on_and_lead_without_gaps() {
        let places = Places::from_bits(0x8000_0005);
        assert_eq!(places.collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!((Places::count(places), places.last()), (3, Some(31)));
        assert!(Places::first(0).is_empty() && Places::first(0).lead());
        assert!(Places::first(7).lead() && Places::first(32).lead() && !places.lead());
        assert_eq!(Places::first(3).without(places), Places::from_bits(2));
    }
}
