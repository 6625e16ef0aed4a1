//! Who has a bucket: a metered address, or the prefix it lies in, in its VLAN.

use std::net::IpAddr;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_packet::FlowKey;
use rheostat_steer::{Prefix, Side, Whose};

use super::Subject;

/// An address, or the prefix it lies in, in its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, AnyBitPattern)]
#[repr(C)]
pub(super) struct Subscriber {
    /// The address, IPv4 as in IPv6 (RFC 4291, 2.5.5.2).
    address: [u8; 16],
    zone: u32,
}

impl Subject {
    /// The metered address of a packet from `side` between `ends`, source first, and who has its bucket.
    pub(super) fn of(&self, side: Side, ends: &FlowKey) -> (IpAddr, Subscriber) {
        let by_source = match self.whose {
            Whose::Source => true,
            Whose::Destination => false,
            Whose::Inner => side == Side::Inside,
            Whose::Outer => side == Side::Outside,
        };
        let address = if by_source { ends.first() } else { ends.second() };
        let length = if address.is_ipv4() { self.v4 } else { self.v6 };
        let bytes = match Prefix::containing(address, length).address() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        (address, Subscriber { address: bytes, zone: ends.zone() })
    }
}
