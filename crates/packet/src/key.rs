//! Flow keys.

mod mask;

pub use mask::{KeyMask, KeyParts};

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
// As wide as the words of a key, so that a key has no padding: it would be copied byte by byte.
#[repr(u64)]
pub enum Family {
    /// IPv4.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

/// What the packets of one flow have in common: two endpoints, the protocol, and the zone (VLAN) they
/// were seen in. The endpoints are ordered: straight from a packet the first is its source; once
/// oriented (see `rheostat_steer`), both directions of a flow have the same key. Protocols without
/// ports have zero ports; ICMP queries carry their identifier in both.
///
/// Stored as words, so that comparing and hashing an IPv4 key reads two of them and an IPv6 key five:
///
/// | word | IPv4 | IPv6 |
/// |---|---|---|
/// | 0 | first address, second address « 32 | first address, low half |
/// | 1 | ports, protocol, zone | first address, high half |
/// | 2-3 | zero | second address |
/// | 4 | zero | ports, protocol, zone |
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    words: [u64; 5],
    family: Family,
}

/// Ports, protocol and zone in one word: first port, second port « 16, protocol « 32, zone « 40.
#[inline]
const fn tail(first_port: u16, second_port: u16, protocol: u8, zone: u32) -> u64 {
    first_port as u64
        | (second_port as u64) << 16
        | (protocol as u64) << 32
        | ((zone & 0xff_ffff) as u64) << 40
}

impl FlowKey {
    /// The key of no flow: everything is zero.
    pub const NONE: FlowKey = FlowKey { words: [0; 5], family: Family::V4 };

    /// The key of an IPv4 flow. Only the low 24 bits of `zone` count.
    #[inline]
    pub fn v4(
        (first, first_port): (Ipv4Addr, u16),
        (second, second_port): (Ipv4Addr, u16),
        protocol: u8,
        zone: u32,
    ) -> FlowKey {
        let addresses = u64::from(first.to_bits()) | u64::from(second.to_bits()) << 32;
        let tail = tail(first_port, second_port, protocol, zone);
        FlowKey { words: [addresses, tail, 0, 0, 0], family: Family::V4 }
    }

    /// The key of an IPv6 flow. Only the low 24 bits of `zone` count.
    #[inline]
    pub fn v6(
        (first, first_port): (Ipv6Addr, u16),
        (second, second_port): (Ipv6Addr, u16),
        protocol: u8,
        zone: u32,
    ) -> FlowKey {
        let (a, b) = (first.to_bits(), second.to_bits());
        let tail = tail(first_port, second_port, protocol, zone);
        let words = [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64, tail];
        FlowKey { words, family: Family::V6 }
    }

    /// Leading bits of an address of [`FlowKey::link`] that hold the MAC address.
    pub const LINK_ADDRESS_BITS: u8 = 48;
    /// The same with the VLAN identifiers.
    pub const LINK_VLAN_BITS: u8 = 72;
    /// The same with the Ethertype: all of it.
    pub const LINK_BITS: u8 = 88;

    /// The key of frames between two MAC addresses, in a zone, with an Ethertype. It has the shape of a key
    /// of IPv6 whose addresses begin with these, in the order of [`FlowKey::LINK_ADDRESS_BITS`] and what
    /// follows, and is never used beside keys of IPv6 that name flows.
    pub fn link(first: [u8; 6], second: [u8; 6], zone: u32, ethertype: u16) -> FlowKey {
        let address = |mac: [u8; 6]| {
            let mac = mac.into_iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(byte));
            let tail = u128::from(zone & 0xff_ffff) << 56 | u128::from(ethertype) << 40;
            Ipv6Addr::from_bits(mac << 80 | tail)
        };
        FlowKey::v6((address(first), 0), (address(second), 0), 0, 0)
    }

    /// The key with these words, as [`FlowKey::raw`] gives them: those beyond the family's are zero.
    #[inline(always)]
    pub const fn from_raw(words: [u64; 5], family: Family) -> FlowKey {
        FlowKey { words, family }
    }

    /// The version of IP.
    #[inline]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The words of the key that carry information: two for IPv4, five for IPv6.
    #[inline]
    pub fn words(&self) -> &[u64] {
        match self.family {
            Family::V4 => &self.words[..2],
            Family::V6 => &self.words,
        }
    }

    /// All five words; those beyond [`FlowKey::words`] are zero.
    #[inline]
    pub const fn raw(&self) -> &[u64; 5] {
        &self.words
    }

    #[inline]
    const fn tail(&self) -> u64 {
        match self.family {
            Family::V4 => self.words[1],
            Family::V6 => self.words[4],
        }
    }

    /// The address of the first endpoint.
    pub fn first(&self) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits(self.words[0] as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(wide(self.words[0], self.words[1])).into(),
        }
    }

    /// The address of the second endpoint.
    pub fn second(&self) -> IpAddr {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits((self.words[0] >> 32) as u32).into(),
            Family::V6 => Ipv6Addr::from_bits(wide(self.words[2], self.words[3])).into(),
        }
    }

    /// The port of the first endpoint.
    #[inline]
    pub const fn first_port(&self) -> u16 {
        self.tail() as u16
    }

    /// The port of the second endpoint.
    #[inline]
    pub const fn second_port(&self) -> u16 {
        (self.tail() >> 16) as u16
    }

    /// The IP protocol number.
    #[inline]
    pub const fn protocol(&self) -> u8 {
        (self.tail() >> 32) as u8
    }

    /// The zone: the VLAN identifiers of the packet, outer « 12 | inner, zero without tags.
    #[inline]
    pub const fn zone(&self) -> u32 {
        (self.tail() >> 40) as u32
    }

    /// Whether the first endpoint is the lower one: by address, then by port.
    #[inline]
    pub fn is_sorted(&self) -> bool {
        match self.family {
            Family::V4 => {
                let (first, second) = (self.words[0] as u32, (self.words[0] >> 32) as u32);
                (first, self.first_port()) <= (second, self.second_port())
            }
            Family::V6 => {
                let first = wide(self.words[0], self.words[1]);
                let second = wide(self.words[2], self.words[3]);
                (first, self.first_port()) <= (second, self.second_port())
            }
        }
    }

    /// The same flow with its endpoints exchanged.
    #[inline(always)]
    #[must_use]
    pub fn reversed(&self) -> FlowKey {
        let w = &self.words;
        let tail = self.tail();
        let tail = tail & !0xffff_ffff | (tail & 0xffff) << 16 | tail >> 16 & 0xffff;
        let words = match self.family {
            Family::V4 => [w[0].rotate_left(32), tail, 0, 0, 0],
            Family::V6 => [w[2], w[3], w[0], w[1], tail],
        };
        FlowKey { words, family: self.family }
    }
}

const fn wide(low: u64, high: u64) -> u128 {
    low as u128 | (high as u128) << 64
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = |address: IpAddr, port: u16| std::net::SocketAddr::new(address, port);
        write!(
            f,
            "{} {} {}",
            self.protocol(),
            endpoint(self.first(), self.first_port()),
            endpoint(self.second(), self.second_port())
        )?;
        if self.zone() != 0 {
            write!(f, " zone {}", self.zone())?;
        }
        Ok(())
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_back_and_reverse() {
        let a = (Ipv4Addr::new(10, 0, 0, 1), 1234);
        let b = (Ipv4Addr::new(192, 0, 2, 9), 80);
        let key = FlowKey::v4(a, b, 6, 0x12_3456);
        assert_eq!((key.first(), key.first_port()), (a.0.into(), a.1));
        assert_eq!((key.second(), key.second_port()), (b.0.into(), b.1));
        assert_eq!((key.protocol(), key.zone()), (6, 0x12_3456));
        assert_eq!(key.reversed(), FlowKey::v4(b, a, 6, 0x12_3456));
        assert!(key.is_sorted() && !key.reversed().is_sorted());

        let a = ("2001:db8::1".parse().unwrap(), 9);
        let b = ("2001:db8:ffff::2".parse().unwrap(), 10);
        let key = FlowKey::v6(a, b, 17, 0);
        assert_eq!((key.first(), key.first_port()), (a.0.into(), a.1));
        assert_eq!((key.second(), key.second_port()), (b.0.into(), b.1));
        assert_eq!(key.reversed().reversed(), key);
        assert_eq!(key.reversed(), FlowKey::v6(b, a, 17, 0));
        assert!(key.is_sorted() && !key.reversed().is_sorted());
        assert_eq!(key.to_string(), "17 [2001:db8::1]:9 [2001:db8:ffff::2]:10");
    }

    #[test]
    fn the_parts_of_a_frame_lie_where_they_are_said_to() {
        let (a, b) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let key = FlowKey::link(a, b, 0x12_3456, 0x0806);
        assert_eq!(key.reversed(), FlowKey::link(b, a, 0x12_3456, 0x0806));
        let left = |bits| {
            let parts = KeyParts { first: [0, bits], second: [0, bits], ..KeyParts::default() };
            key.masked(&KeyMask::new(&parts))
        };
        assert_eq!(left(FlowKey::LINK_BITS), key);
        assert_eq!(left(FlowKey::LINK_VLAN_BITS), FlowKey::link(a, b, 0x12_3456, 0));
        assert_eq!(left(FlowKey::LINK_ADDRESS_BITS), FlowKey::link(a, b, 0, 0));
    }

    #[test]
    fn zones_tell_equal_tuples_apart() {
        let end = (Ipv4Addr::LOCALHOST, 1);
        assert_ne!(FlowKey::v4(end, end, 6, 1), FlowKey::v4(end, end, 6, 2));
    }
}
