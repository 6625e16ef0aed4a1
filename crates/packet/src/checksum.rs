//! The internet checksum (RFC 1071): computed, checked, and updated incrementally (RFC 1624).

use std::net::IpAddr;

/// A one's complement sum under way. Only the last part added may have an odd number of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes as 16-bit words in network order; a missing last byte counts as zero.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        // Words of 32 bits sum up in 64 without overflow for any packet; folding comes last.
        let mut words = bytes.chunks_exact(4);
        let mut sum = 0_u64;
        for word in &mut words {
            sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
        }
        sum += match *words.remainder() {
            [] => 0,
            [a] => u64::from(a) << 24,
            [a, b] => u64::from(u16::from_be_bytes([a, b])) << 16,
            [a, b, c, ..] => u64::from(u32::from_be_bytes([a, b, c, 0])),
        };
        self.0 += (sum >> 32) + (sum & 0xffff_ffff);
    }

    /// Adds a word.
    #[inline]
    pub fn add_u16(&mut self, word: u16) {
        self.0 += u64::from(word);
    }

    /// Adds the pseudo header that transport checksums cover (RFC 9293, 3.1; RFC 8200, 8.1).
    #[inline]
    pub fn add_pseudo_header(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        length: u32,
    ) {
        for address in [source, destination] {
            match address {
                IpAddr::V4(v4) => self.add(&v4.octets()),
                IpAddr::V6(v6) => self.add(&v6.octets()),
            }
        }
        self.0 += u64::from(length) + u64::from(protocol);
    }

    /// The sum folded to 16 bits, without the final complement.
    #[inline]
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        sum = (sum >> 32) + (sum & 0xffff_ffff);
        sum = (sum >> 16) + (sum & 0xffff);
        sum = (sum >> 16) + (sum & 0xffff);
        sum = (sum >> 16) + (sum & 0xffff);
        sum as u16
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The checksum of `bytes`; zero when they contain their own right one.
pub fn of(bytes: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(bytes);
    sum.checksum()
}

/// What UDP sends for a computed checksum: zero means that there is none (RFC 768).
#[inline]
pub const fn for_udp(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The state of a transport checksum in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It is right.
    Valid,
    /// The sender did not compute one (UDP over IPv4).
    Absent,
    /// It holds the sum of the pseudo header alone: the packet was captured on its sender, before the
    /// interface computed the rest.
    Partial,
    /// It is wrong.
    Invalid,
}

/// Judges the checksum `field` of a transport header within `segments`, which together are everything
/// behind the IP headers. All segments but the last have an even number of bytes.
pub fn judge<'a>(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    field: u16,
    segments: impl IntoIterator<Item = &'a [u8]>,
) -> Validity {
    let mut body = Sum::default();
    let mut length = 0;
    for segment in segments {
        body.add(segment);
        length += segment.len() as u32;
    }
    if field == 0 && protocol == 17 && source.is_ipv4() {
        return Validity::Absent;
    }
    let mut pseudo = Sum::default();
    pseudo.add_pseudo_header(source, destination, protocol, length);
    let whole = Sum(body.0 + pseudo.0);
    if whole.checksum() == 0 {
        Validity::Valid
    } else if pseudo.folded() == field {
        Validity::Partial
    } else {
        Validity::Invalid
    }
}

/// The change that new contents make to a checksum that covers them (RFC 1624, equation 3).
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a checksum that is not adjusted becomes wrong"]
pub struct Delta(u64);

impl Delta {
    /// A word changes from `old` to `new`.
    #[inline]
    pub fn of_u16(old: u16, new: u16) -> Delta {
        Delta(u64::from(!old) + u64::from(new))
    }

    /// Two words change.
    #[inline]
    pub fn of_u32(old: u32, new: u32) -> Delta {
        Delta::of_u16((old >> 16) as u16, (new >> 16) as u16)
            .and(Delta::of_u16(old as u16, new as u16))
    }

    /// Eight words change.
    #[inline]
    pub fn of_u128(old: u128, new: u128) -> Delta {
        (0..4).fold(Delta::default(), |delta, word| {
            delta.and(Delta::of_u32((old >> (32 * word)) as u32, (new >> (32 * word)) as u32))
        })
    }

    /// Both changes.
    #[inline]
    pub fn and(self, other: Delta) -> Delta {
        Delta(self.0 + other.0)
    }

    /// The checksum after the change. One that was wrong stays wrong by as much.
    #[inline]
    #[must_use]
    pub fn apply(self, checksum: u16) -> u16 {
        Sum(self.0 + u64::from(!checksum)).checksum()
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
    use proptest::prelude::*;

    /// The definition, word by word.
    fn oracle(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn agrees_with_the_example_of_rfc_1071() {
        assert_eq!(of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn tells_partial_from_wrong_and_absent() {
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut datagram = [0x12, 0x34, 0, 53, 0, 11, 0, 0, 1, 2, 3];
        let with = |field: u16, datagram: &mut [u8; 11]| {
            datagram[6..8].copy_from_slice(&field.to_be_bytes());
            judge(a, b, 17, field, [&datagram[..]])
        };
        let mut pseudo = Sum::default();
        pseudo.add_pseudo_header(a, b, 17, 11);
        let partial = pseudo.folded();
        pseudo.add(&datagram);
        let right = pseudo.checksum();
        assert_eq!(with(right, &mut datagram), Validity::Valid);
        assert_eq!(with(0, &mut datagram), Validity::Absent);
        assert_eq!(with(partial, &mut datagram), Validity::Partial);
        assert_eq!(with(right ^ 1, &mut datagram), Validity::Invalid);
    }

    proptest! {
        #[test]
        fn sums_agree_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(of(&bytes), oracle(&bytes));
        }

        #[test]
        fn pieces_sum_as_the_whole(bytes in prop::collection::vec(any::<u8>(), 64), at in 0_usize..32) {
            let mut sum = Sum::default();
            sum.add(&bytes[..at * 2]);
            sum.add(&bytes[at * 2..]);
            prop_assert_eq!(sum.checksum(), of(&bytes));
        }

        #[test]
        fn updates_agree_with_computing_anew(mut bytes: [u8; 40], new: u128, at in 0_usize..12) {
            let old = of(&bytes);
            let place = at * 2..at * 2 + 16;
            let before = u128::from_be_bytes(bytes[place.clone()].try_into().unwrap());
            bytes[place].copy_from_slice(&new.to_be_bytes());
            // 0 and 0xffff are the same number; RFC 1624 says which one comes out.
            prop_assume!(bytes.iter().any(|byte| *byte != 0));
            prop_assert_eq!(Delta::of_u128(before, new).apply(old), of(&bytes));
        }
    }
}
