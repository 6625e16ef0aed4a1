//! Incremental updates.

use super::{Sum, for_udp};

/// The change that new contents make to a checksum that covers them (RFC 1624, equation 3).
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a checksum that is not adjusted becomes wrong"]
pub struct Delta(Sum);

impl Delta {
    /// A word changes from `old` to `new`.
    #[inline]
    pub fn of_u16(old: u16, new: u16) -> Delta {
        let mut sum = Sum::default();
        sum.add_u16(!old);
        sum.add_u16(new);
        Delta(sum)
    }

    /// Two words change.
    #[inline]
    pub fn of_u32(old: u32, new: u32) -> Delta {
        let mut sum = Sum::default();
        sum.add_u32(!old);
        sum.add_u32(new);
        Delta(sum)
    }

    /// Eight words change.
    #[inline]
    pub fn of_u128(old: u128, new: u128) -> Delta {
        let mut sum = Sum::default();
        for word in 0..4 {
            sum.add_u32(!((old >> (32 * word)) as u32));
            sum.add_u32((new >> (32 * word)) as u32);
        }
        Delta(sum)
    }

    /// Both changes.
    #[inline]
    pub fn and(mut self, other: Delta) -> Delta {
        self.0.add_sum(other.0);
        self
    }

    /// The checksum after the change. One that was wrong stays wrong by as much.
    #[inline]
    #[must_use]
    pub fn apply(mut self, checksum: u16) -> u16 {
        self.0.add_u16(!checksum);
        self.0.checksum()
    }

    /// The checksum of a UDP datagram after the change: none stays none.
    #[inline]
    #[must_use]
    pub fn apply_udp(self, checksum: u16) -> u16 {
        if checksum == 0 { 0 } else { for_udp(self.apply(checksum)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::of;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_the_example_of_rfc_1624() {
        // Section 4: the case in which equation 2 gives the other zero.
        assert_eq!(Delta::of_u16(0x5555, 0x3285).apply(0xdd2f), 0x0000);
    }

    #[test]
    fn udp_has_two_zeros() {
        // The change that brings 0xdd2f to zero: what is sent is the other zero.
        assert_eq!(Delta::of_u16(0x5555, 0x3285).apply_udp(0xdd2f), 0xffff);
        assert_eq!(Delta::of_u16(1, 2).apply_udp(0), 0);
        assert_eq!(Delta::of_u16(7, 7).apply_udp(0xffff), 0xffff);
    }

    proptest! {
        #![proptest_config(crate::cases::config())]

        #[test]
        fn updates_agree_with_computing_anew(
            bytes: [u8; 40],
            (wide, word, half) in any::<(u128, u32, u16)>(),
            at in 0_usize..9,
        ) {
            let mut changed = bytes;
            changed[at * 2..][..16].copy_from_slice(&wide.to_be_bytes());
            changed[34..38].copy_from_slice(&word.to_be_bytes());
            changed[38..40].copy_from_slice(&half.to_be_bytes());
            // Of nothing but zeros the sum is the other zero.
            prop_assume!(changed.iter().any(|byte| *byte != 0));
            let old = |range: std::ops::Range<usize>| {
                bytes[range].iter().fold(0, |n, byte| n << 8 | u128::from(*byte))
            };
            let delta = Delta::of_u128(old(at * 2..at * 2 + 16), wide)
                .and(Delta::of_u32(old(34..38) as u32, word))
                .and(Delta::of_u16(old(38..40) as u16, half));
            prop_assert_eq!(delta.apply(of(&bytes)), of(&changed));
        }
    }
}
