//! One's complement sums.

use std::net::IpAddr;

/// A one's complement sum under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// A sum of 16-bit words in network order, not folded: room for 2^48 of them.
    words: u64,
    /// Whether an odd number of bytes was added so far.
    odd: bool,
}

impl Sum {
    /// Adds bytes as 16-bit words in network order. They continue the bytes added before, so that
    /// segments may be added one by one whatever their lengths; behind the last one, a missing byte
    /// counts as zero.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let sum = sum_of_bytes(bytes);
        // RFC 1071, section 2 (B): behind an odd number of bytes, the sum of what follows has its
        // bytes exchanged.
        self.words += u64::from(if self.odd { sum.swap_bytes() } else { sum });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds a word, wherever the bytes stand.
    #[inline]
    pub fn add_u16(&mut self, word: u16) {
        self.words += u64::from(word);
    }

    /// Adds a number that fills two words, wherever the bytes stand.
    #[inline]
    pub fn add_u32(&mut self, value: u32) {
        self.words += u64::from(value);
    }

    /// Adds another sum, whose first byte is at an even place.
    #[inline]
    pub fn add_sum(&mut self, other: Sum) {
        self.words += u64::from(other.folded());
    }

    /// Adds the pseudo header that transport checksums cover (RFC 9293, section 3.1; RFC 8200,
    /// section 8.1). `length` is that of the transport header and its data.
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
                IpAddr::V4(v4) => self.add_u32(v4.to_bits()),
                IpAddr::V6(v6) => self.words += u64::from(sum_of_bytes(&v6.octets())),
            }
        }
        self.words += u64::from(length) + u64::from(protocol);
    }

    /// The sum folded to 16 bits, without the final complement.
    #[inline]
    pub fn folded(self) -> u16 {
        fold(self.words)
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The sum of `bytes`, padded with a zero to an even number, as a number.
#[inline]
fn sum_of_bytes(bytes: &[u8]) -> u16 {
    // Summed in the processor's byte order, which moves carries but not the folded sum (RFC 1071,
    // section 2 (B)), in words of 32 bits, which 64 hold without overflow for any slice that fits
    // into 16 GiB. The compiler makes vector code of this loop.
    let mut words = bytes.chunks_exact(4);
    let mut sum = 0_u64;
    for word in &mut words {
        sum += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    sum += match *words.remainder() {
        [a] => u64::from(u16::from_ne_bytes([a, 0])),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_ne_bytes([a, b, c, 0])),
        _ => 0,
    };
    u16::from_be(fold(sum))
}

#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::of;
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
    fn carries_survive_the_longest_packets() {
        assert_eq!(of(&[0xff; 65_535]), oracle(&[0xff; 65_535]));
        assert_eq!(fold(u64::MAX), 0xffff);
    }

    #[test]
    fn a_pseudo_header_is_its_bytes() {
        let (a, b): (IpAddr, IpAddr) = ("10.1.2.3".parse().unwrap(), "192.0.2.9".parse().unwrap());
        let mut sum = Sum::default();
        sum.add_pseudo_header(a, b, 17, 0x0102);
        assert_eq!(sum.checksum(), of(&[10, 1, 2, 3, 192, 0, 2, 9, 0, 17, 1, 2]));
        let (a, b): (IpAddr, IpAddr) = ("fd00::1".parse().unwrap(), "2001:db8::9".parse().unwrap());
        let mut sum = Sum::default();
        sum.add_pseudo_header(a, b, 58, 0x1_0002);
        let mut bytes = vec![0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend([0, 1, 0, 2, 0, 0, 0, 58]);
        assert_eq!(sum.checksum(), of(&bytes));
    }

    proptest! {
        #![proptest_config(crate::cases::config())]

        #[test]
        fn sums_agree_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(of(&bytes), oracle(&bytes));
        }

        #[test]
        fn segments_of_any_length_sum_as_the_whole(
            segments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        ) {
            let mut sum = Sum::default();
            for segment in &segments {
                sum.add(segment);
            }
            prop_assert_eq!(sum.checksum(), oracle(&segments.concat()));
        }
    }
}
