//! Address prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// A range of addresses that share their leading bits, as in `10.0.0.0/8` or `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Why a prefix could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// What stands before the slash is no address.
    #[error("`{0}` is not an IPv4 or IPv6 address")]
    Address(String),
    /// What stands behind the slash is no length, or too long for the address.
    #[error("`{length}` is not a prefix length between 0 and {most}")]
    Length {
        /// What was written.
        length: String,
        /// The longest length for this kind of address.
        most: u8,
    },
    /// The address has bits set that the prefix does not cover.
    #[error("`{written}` has host bits set; the prefix is `{prefix}`")]
    HostBits {
        /// What was written.
        written: String,
        /// The prefix that contains it.
        prefix: Prefix,
    },
}

impl Prefix {
    /// The prefix of `length` bits that contains `address`; longer lengths than the address has bits
    /// mean the address alone.
    pub fn containing(address: IpAddr, length: u8) -> Prefix {
        match address {
            IpAddr::V4(v4) => {
                let length = length.min(32);
                let address = Ipv4Addr::from_bits(v4.to_bits() & mask_v4(length)).into();
                Prefix { address, length }
            }
            IpAddr::V6(v6) => {
                let length = length.min(128);
                let address = Ipv6Addr::from_bits(v6.to_bits() & mask_v6(length)).into();
                Prefix { address, length }
            }
        }
    }

    /// Whether `address` lies in the range.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(base), IpAddr::V4(other)) => {
                (base.to_bits() ^ other.to_bits()) & mask_v4(self.length) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(other)) => {
                (base.to_bits() ^ other.to_bits()) & mask_v6(self.length) == 0
            }
            _ => false,
        }
    }

    /// Whether every address of `other` lies in this range.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// The lowest and the highest address of the range.
    fn bounds(&self) -> (IpAddr, IpAddr) {
        let last = match self.address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() | !mask_v4(self.length)).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() | !mask_v6(self.length)).into(),
        };
        (self.address, last)
    }

    /// The lowest address of the range.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits are fixed.
    pub fn length(&self) -> u8 {
        self.length
    }
}

const fn mask_v4(length: u8) -> u32 {
    if length == 0 { 0 } else { u32::MAX << (32 - length) }
}

const fn mask_v6(length: u8) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - length) }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `ADDRESS/LENGTH`, or an address alone for a range of one.
    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let parsed: IpAddr =
            address.parse().map_err(|_| PrefixError::Address(address.to_owned()))?;
        let most = if parsed.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|length| *length <= most)
                .ok_or_else(|| PrefixError::Length { length: digits.to_owned(), most })?,
        };
        let prefix = Prefix::containing(parsed, length);
        if prefix.address == parsed {
            Ok(prefix)
        } else {
            Err(PrefixError::HostBits { written: text.to_owned(), prefix })
        }
    }
}

/// Several prefixes. A search is binary, over ranges of addresses: prefixes that adjoin each other, such as the single addresses of
/// a pool, are one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixList {
    prefixes: Vec<Prefix>,
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl PrefixList {
    /// Whether any of the prefixes contains `address`.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4.contains(v4.to_bits()),
            IpAddr::V6(v6) => self.v6.contains(v6.to_bits()),
        }
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The prefixes.
    pub fn iter(&self) -> impl Iterator<Item = &Prefix> {
        self.prefixes.iter()
    }
}

impl FromIterator<Prefix> for PrefixList {
    fn from_iter<I: IntoIterator<Item = Prefix>>(prefixes: I) -> PrefixList {
        let prefixes: Vec<_> = prefixes.into_iter().collect();
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for bounds in prefixes.iter().map(Prefix::bounds) {
            match bounds {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.to_bits(), last.to_bits())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.to_bits(), last.to_bits())),
                _ => unreachable!("a prefix is of one version"),
            }
        }
        let v4 = Ranges::joined(v4, |last| last.checked_add(1));
        let v6 = Ranges::joined(v6, |last| last.checked_add(1));
        PrefixList { prefixes, v4, v6 }
    }
}

/// Ranges of addresses by their first and last ones, ascending, with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges<A>(Vec<(A, A)>);

impl<A: Copy + Ord> Ranges<A> {
    /// The addresses of all `ranges`. `next` is the address behind another, if there is one.
    fn joined(mut ranges: Vec<(A, A)>, next: impl Fn(A) -> Option<A>) -> Ranges<A> {
        ranges.sort_unstable();
        let mut joined: Vec<(A, A)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if next(*end).is_none_or(|next| first <= next) => {
                    *end = last.max(*end);
                }
                _ => joined.push((first, last)),
            }
        }
        Ranges(joined)
    }

    #[inline]
    fn contains(&self, address: A) -> bool {
        let before = self.0.partition_point(|(first, _)| *first <= address);
        before.checked_sub(1).is_some_and(|at| address <= self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_writes_and_contains() {
        let prefix: Prefix = "10.0.0.0/8".parse().unwrap();
        assert!(prefix.contains("10.255.1.2".parse().unwrap()));
        assert!(!prefix.contains("11.0.0.0".parse().unwrap()));
        assert!(!prefix.contains("::10.0.0.1".parse().unwrap()));
        assert_eq!(prefix.to_string(), "10.0.0.0/8");
        let all: Prefix = "::/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()));
        assert!(all.covers(&"fd00::/8".parse().unwrap()));
        assert_eq!("192.0.2.1".parse::<Prefix>().unwrap().length(), 32);
    }

    /// A pool of single addresses is one range, and the addresses at both ends of a range belong to it.
    #[test]
    fn a_list_contains_the_addresses_that_its_prefixes_contain() {
        let pool = (0x6440_0000_u32..0x6440_0200).map(|bits| Ipv4Addr::from_bits(bits).into());
        let single = |address: IpAddr| Prefix::containing(address, 128);
        let pool: PrefixList = pool.map(single).collect();
        assert_eq!((pool.iter().count(), pool.v4.0.len()), (512, 1));
        let lists = [
            &["10.0.0.0/8", "10.1.0.0/16", "9.0.0.0/8", "192.0.2.7", "fd00::/8", "fe00::/8"][..],
            &["255.255.255.255", "255.255.255.254", "0.0.0.0/32", "ffff::/16", "::"],
            &["0.0.0.0/0", "1.2.3.4", "::/0"],
            &["2001:db8::/32"],
            &[],
        ];
        for list in lists {
            let prefixes: Vec<Prefix> = list.iter().map(|text| text.parse().unwrap()).collect();
            let list: PrefixList = prefixes.iter().copied().collect();
            let ends = prefixes.iter().flat_map(|prefix| {
                let (first, last) = prefix.bounds();
                [first, last]
            });
            let others =
                ["0.0.0.0", "::", "11.0.0.0", "255.255.255.255"].map(|a| a.parse().unwrap());
            let near = ends.chain(others).flat_map(|address: IpAddr| match address {
                IpAddr::V4(v4) => [-1, 0, 1].map(|step| {
                    IpAddr::from(Ipv4Addr::from_bits(v4.to_bits().wrapping_add_signed(step)))
                }),
                IpAddr::V6(v6) => [-1, 0, 1].map(|step| {
                    IpAddr::from(Ipv6Addr::from_bits(v6.to_bits().wrapping_add_signed(step)))
                }),
            });
            for address in near {
                let expected = prefixes.iter().any(|prefix| prefix.contains(address));
                assert_eq!(list.contains(address), expected, "{address} in {prefixes:?}");
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert_eq!(
            error("10.0.0.1/8"),
            "`10.0.0.1/8` has host bits set; the prefix is `10.0.0.0/8`"
        );
        assert_eq!(error("10.0.0.0/33"), "`33` is not a prefix length between 0 and 32");
        assert_eq!(error("lan/8"), "`lan` is not an IPv4 or IPv6 address");
    }
}
