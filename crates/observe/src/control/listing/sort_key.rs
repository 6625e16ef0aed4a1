//! What rows are compared by.

use std::net::{IpAddr, SocketAddr};

/// A value as bytes in whose order values are: numbers by size, words by their letters, addresses of IPv4 before those of IPv6.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortKey(pub(super) Vec<u8>);

impl SortKey {
    /// The key of a missing value, which comes first.
    pub fn none() -> SortKey {
        SortKey::default()
    }

    /// The key of a number.
    pub fn number(number: impl Into<u64>) -> SortKey {
        SortKey(number.into().to_be_bytes().to_vec())
    }

    /// The key of a fraction. Not-a-number comes last.
    pub fn real(number: f64) -> SortKey {
        let bits = number.to_bits();
        // Negative numbers have their bits turned over, others their sign: the order of IEEE 754's totalOrder.
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        SortKey(ordered.to_be_bytes().to_vec())
    }

    /// The key of a word.
    pub fn text(text: &str) -> SortKey {
        let mut bytes: Vec<_> = text.bytes().filter(|byte| *byte != 0).collect();
        bytes.push(0);
        SortKey(bytes)
    }

    /// The key of an address.
    pub fn address(address: IpAddr) -> SortKey {
        SortKey(match address {
            IpAddr::V4(address) => [&[4][..], &address.octets()].concat(),
            IpAddr::V6(address) => [&[6][..], &address.octets()].concat(),
        })
    }

    /// The key of an address and a port.
    pub fn endpoint(endpoint: SocketAddr) -> SortKey {
        SortKey::address(endpoint.ip()).and(SortKey(endpoint.port().to_be_bytes().to_vec()))
    }

    /// This key, and `next` where this one is the same.
    #[must_use]
    pub fn and(mut self, next: SortKey) -> SortKey {
        self.0.extend(next.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_rising(keys: &[SortKey]) -> bool {
        keys.is_sorted_by(|earlier, later| earlier < later)
    }

    #[test]
    fn keys_have_the_order_of_their_values() {
        assert!(is_rising(&[0_u64, 1, 255, 256, u64::MAX].map(SortKey::number)));
        let reals = [f64::NEG_INFINITY, -2.5, -0.1, 0.0, 1e-9, 3.0, f64::INFINITY, f64::NAN];
        assert!(is_rising(&reals.map(SortKey::real)));
        assert!(is_rising(&["", "a", "ab", "b"].map(SortKey::text)));
        let endpoints = ["9.0.0.1:2", "10.0.0.1:80", "10.0.0.1:443", "[::1]:1", "[fe80::1]:1"];
        assert!(is_rising(&endpoints.map(|end| SortKey::endpoint(end.parse().unwrap()))));
        assert!(SortKey::none() < SortKey::number(0_u64));
        let pair = |name, number: u64| SortKey::text(name).and(SortKey::number(number));
        assert!(is_rising(&[pair("a", 9), pair("a", 10), pair("ab", 1), pair("b", 0)]));
    }
}
