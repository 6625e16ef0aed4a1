//! The link addresses of hosts on a link: the neighbour cache of RFC 4861, section 5.1, which serves ARP (RFC 826) as well.
//!
//! One [`Neighbours`] is shared by all lanes, behind a lock that is taken when something is learned, asked
//! or due. What lanes need for each packet they look up in a [`View`] of their own, which follows the
//! changes of the table.

mod entry;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use entry::{KnownNeighbour, NeighbourState};
pub use table::{Advertisement, NeighbourLimits, Neighbours, Resolution, Solicitation};
pub use view::{Seen, View};

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use rheostat_base::DeviceId;

/// An address on the link of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeighbourKey {
    /// An address of IPv4 as the one of IPv6 that stands for it (RFC 4291, section 2.5.5.2).
    bits: u128,
    device: DeviceId,
}

impl NeighbourKey {
    /// The key of an address.
    pub fn new(device: DeviceId, address: IpAddr) -> NeighbourKey {
        NeighbourKey { bits: mapped(address), device }
    }

    /// The key of an address as [`mapped`] has it.
    #[inline]
    pub(crate) fn of_bits(device: DeviceId, bits: u128) -> NeighbourKey {
        NeighbourKey { bits, device }
    }

    /// The device.
    pub fn device(&self) -> DeviceId {
        self.device
    }

    /// The address.
    pub fn address(&self) -> IpAddr {
        Ipv6Addr::from_bits(self.bits).to_canonical()
    }
}

/// An address as a number: one of IPv4 as the one of IPv6 that stands for it.
#[inline]
pub(crate) fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => mapped_v4(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// As [`mapped`].
#[inline]
pub(crate) fn mapped_v4(bits: u32) -> u128 {
    0xffff_0000_0000 | u128::from(bits)
}

impl Hash for NeighbourKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64((self.bits >> 64) as u64 ^ u64::from(self.device.0));
        state.write_u64(self.bits as u64);
    }
}

impl fmt::Debug for NeighbourKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.address(), self.device)
    }
}
