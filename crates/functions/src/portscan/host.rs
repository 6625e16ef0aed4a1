//! Hosts that are watched, and the hosts they try.

use std::net::IpAddr;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_packet::FlowKey;
use rheostat_steer::Prefix;

/// Bytes of an address, IPv4 as in IPv6 (RFC 4291, 2.5.5.2).
pub type AddressBytes = [u8; 16];

fn bytes(address: IpAddr) -> AddressBytes {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// A host that opens connections, or the prefix that stands for one, in its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, AnyBitPattern)]
#[repr(C)]
pub struct Host {
    address: AddressBytes,
    zone: u32,
}

/// A host and an address that it has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, AnyBitPattern)]
#[repr(C)]
pub struct Pair {
    /// The host that has tried.
    pub host: Host,
    tried: AddressBytes,
}

/// How many leading bits of an address make a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Of IPv4 addresses, up to 32.
    pub v4: u8,
    /// Of IPv6 addresses, up to 128.
    pub v6: u8,
}

impl Default for Width {
    /// Whole IPv4 addresses; of IPv6 what one subscriber has, since the rest is the host's to choose (RFC 4291,
    /// 2.5.4).
    fn default() -> Width {
        Width { v4: 32, v6: 64 }
    }
}

impl Pair {
    /// The ends of a connection that the first end of `key` has opened, or the second.
    pub fn of(key: &FlowKey, opened_by_first: bool, width: Width) -> Pair {
        let (from, to) = match opened_by_first {
            true => (key.first(), key.second()),
            false => (key.second(), key.first()),
        };
        let length = if from.is_ipv4() { width.v4 } else { width.v6 };
        let address = bytes(Prefix::containing(from, length).address());
        Pair { host: Host { address, zone: key.zone() }, tried: bytes(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: &str, second: &str, zone: u32) -> FlowKey {
        match (first.parse().unwrap(), second.parse().unwrap()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => FlowKey::v4((a, 1), (b, 2), 6, zone),
            (IpAddr::V6(a), IpAddr::V6(b)) => FlowKey::v6((a, 1), (b, 2), 6, zone),
            _ => panic!("one family"),
        }
    }

    #[test]
    fn hosts_are_as_wide_as_they_are_told_to_be() {
        let of = |key: &FlowKey, first| Pair::of(key, first, Width::default());
        let (a, b) = (key("2001:db8::1", "fd00::1", 0), key("2001:db8::2", "fd00::1", 0));
        assert_eq!(of(&a, true), of(&b, true), "one subscriber");
        assert_ne!(of(&a, true), of(&a, false));
        // The address that was tried counts to the last bit.
        assert_eq!(of(&a, false).host, of(&b, false).host);
        assert_ne!(of(&a, false), of(&b, false));
        let (c, d) = (key("198.51.100.1", "10.0.0.1", 0), key("198.51.100.2", "10.0.0.1", 0));
        assert_ne!(of(&c, true).host, of(&d, true).host);
        let wide = Width { v4: 24, v6: 64 };
        assert_eq!(Pair::of(&c, true, wide), Pair::of(&d, true, wide));
        assert_ne!(of(&c, true).host, of(&key("198.51.100.1", "10.0.0.1", 7), true).host);
    }
}
