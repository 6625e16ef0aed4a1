//! Sequence numbers and their arithmetic modulo 2^32 (RFC 9293, 3.4).

use std::ops::{Add, AddAssign, Sub};

/// The number of a byte, SYN or FIN in one direction of a connection. Comparisons hold for numbers that are less than 2^31
/// apart, which windows of at most 2^30 bytes guarantee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// Whether `self` comes before `other`.
    #[inline]
    pub const fn is_before(self, other: SequenceNumber) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether `self` comes after `other`.
    #[inline]
    pub const fn is_after(self, other: SequenceNumber) -> bool {
        other.is_before(self)
    }

    /// The later of two.
    #[inline]
    pub const fn max(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of two.
    #[inline]
    pub const fn min(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { self } else { other }
    }

    /// Numbers from `earlier` to `self`; zero when `earlier` comes after.
    #[inline]
    pub const fn since(self, earlier: SequenceNumber) -> u32 {
        if self.is_before(earlier) { 0 } else { self.0.wrapping_sub(earlier.0) }
    }
}

impl Add<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn add(self, numbers: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_add(numbers))
    }
}

impl AddAssign<u32> for SequenceNumber {
    #[inline]
    fn add_assign(&mut self, numbers: u32) {
        *self = *self + numbers;
    }
}

impl Sub<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn sub(self, numbers: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_sub(numbers))
    }
}

/// Numbers from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first number.
    pub start: SequenceNumber,
    /// The number after the last.
    pub end: SequenceNumber,
}

impl SequenceRange {
    /// The range of `len` numbers from `start`.
    #[inline]
    pub fn of_len(start: SequenceNumber, len: u32) -> SequenceRange {
        SequenceRange { start, end: start + len }
    }

    /// How many numbers there are; zero when `end` does not come after `start`.
    #[inline]
    pub fn len(&self) -> u32 {
        self.end.since(self.start)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What both ranges have; empty when they have nothing in common, however far apart they are.
    #[inline]
    pub fn intersection(&self, other: SequenceRange) -> SequenceRange {
        let ahead = other.start.0.wrapping_sub(self.start.0);
        let behind = self.start.0.wrapping_sub(other.start.0);
        if ahead < self.len() {
            SequenceRange::of_len(other.start, other.len().min(self.len() - ahead))
        } else if behind < other.len() {
            SequenceRange::of_len(self.start, self.len().min(other.len() - behind))
        } else {
            SequenceRange::of_len(self.start, 0)
        }
    }

    /// Whether all of another range lies in this one, which one that ends before it starts does not.
    #[inline]
    pub fn contains(&self, other: SequenceRange) -> bool {
        let start = other.start.0.wrapping_sub(self.start.0);
        let end = other.end.0.wrapping_sub(self.start.0);
        start <= end && end <= self.len()
    }

    /// Whether the ranges overlap, or one begins where the other ends.
    #[inline]
    pub fn touches(&self, other: SequenceRange) -> bool {
        !self.end.is_before(other.start) && !other.end.is_before(self.start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comparisons_hold_across_the_wrap() {
        let last = SequenceNumber(u32::MAX);
        assert!(last.is_before(last + 1));
        assert!((last + 1).is_after(last));
        assert_eq!((last + 3).since(last), 3);
        assert_eq!(last.since(last + 3), 0);
        assert_eq!(last.max(last + 1), SequenceNumber(0));
        assert_eq!(last.min(last + 1), last);
    }

    #[test]
    fn ranges_half_the_space_apart_have_nothing_in_common() {
        let here = SequenceRange::of_len(SequenceNumber(100), 50);
        let there = SequenceRange::of_len(SequenceNumber(100 + (1 << 31) - 10), 50);
        assert!(here.intersection(there).is_empty() && there.intersection(here).is_empty());
        let around = SequenceRange { start: here.start + ((1 << 31) - 1), end: here.start - 5 };
        assert!(!here.contains(there) && !here.contains(around) && !around.is_empty());
        assert!(here.contains(here) && here.contains(SequenceRange::of_len(here.end, 0)));
    }

    proptest! {
        #[test]
        fn order_is_that_of_distances_below_half_the_space(start: u32, distance in 1_u32..1 << 31) {
            let (a, b) = (SequenceNumber(start), SequenceNumber(start) + distance);
            prop_assert!(a.is_before(b) && b.is_after(a) && !b.is_before(a));
            prop_assert_eq!(b.since(a), distance);
            prop_assert_eq!(b - distance, a);
        }

        #[test]
        fn an_intersection_has_what_both_ranges_have(
            start: u32,
            (a, b) in (0_u32..50, 0_u32..50),
            (c, d) in (0_u32..50, 0_u32..50),
        ) {
            let base = SequenceNumber(start);
            let (one, two) = (SequenceRange::of_len(base + a, b), SequenceRange::of_len(base + c, d));
            let common = (0..100).filter(|n| (a..a + b).contains(n) && (c..c + d).contains(n)).count();
            prop_assert_eq!(one.intersection(two).len() as usize, common);
        }
    }
}
