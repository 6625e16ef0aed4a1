//! What address translation changes about where packets belong.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hash::DefaultHasher;
use std::net::Ipv4Addr;

use rheostat_packet::{Family, FlowKey};

use crate::packet_set::PacketSet;
use crate::prefix::PrefixList;

/// Translated addresses, as far as steering must know them.
///
/// A flow's packets from inside carry its inner endpoint, those from outside the external one in its
/// place; both must lead to the same shard. Where the translating function chooses the external port,
/// it chooses one for which they do. What it cannot choose is listed here, so that packets from inside
/// are placed by the endpoint they will have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The addresses that inner ones are translated to. In keys, they come after inner addresses and
    /// before all others.
    pub external: PrefixList,
    /// The fields that packets with an external address are placed by, where those of the chain are fewer than those of the
    /// translating function: it chooses external ports under which they reach the shard of the packets from inside.
    pub place: Option<PacketSet>,
    /// Inner endpoints that always have the same external one: protocol, address and port to address
    /// and port. Only the configuration fills it, so the hash needs no secret.
    fixed: HashMap<(u8, Ipv4Addr, u16), (Ipv4Addr, u16), BuildHasherDefault<DefaultHasher>>,
}

impl Translation {
    /// A translation to addresses of `external`.
    pub fn new(external: PrefixList) -> Translation {
        Translation { external, ..Translation::default() }
    }

    /// States that an inner endpoint always has this external one.
    pub fn fix(&mut self, protocol: u8, inner: (Ipv4Addr, u16), external: (Ipv4Addr, u16)) {
        self.fixed.insert((protocol, inner.0, inner.1), external);
    }

    /// Whether there are endpoints that always have the same external one.
    #[inline]
    pub fn has_fixed(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// The external endpoint that always stands for this inner one.
    pub fn fixed(&self, protocol: u8, inner: (Ipv4Addr, u16)) -> Option<(Ipv4Addr, u16)> {
        self.fixed.get(&(protocol, inner.0, inner.1)).copied()
    }

    /// The key with its first endpoint translated, if that has a fixed one.
    pub(crate) fn apply(&self, key: &FlowKey) -> Option<FlowKey> {
        let (std::net::IpAddr::V4(first), std::net::IpAddr::V4(second)) =
            (key.first(), key.second())
        else {
            return None;
        };
        debug_assert_eq!(key.family(), Family::V4);
        let external = self.fixed(key.protocol(), (first, key.first_port()))?;
        let outer = (second, key.second_port());
        Some(FlowKey::v4(external, outer, key.protocol(), key.zone()))
    }
}
