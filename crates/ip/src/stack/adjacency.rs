//! What plain packets need of routes, neighbours and links, ready by the number of their hop: made anew whenever one of those
//! changes, so that the fast paths of the network layer ask none of them.

use rheostat_base::DeviceId;

use super::port::{StackPort, UNTAGGED};
use super::{NeighbourKey, Origin, Seen, Stack};

use crate::interface::may_be_source_v4;
use crate::route::{Hop, HopId};

/// No link address.
const NO_ADDRESS: u64 = u64::MAX;
/// One of the addresses is this machine's.
pub(super) const OWN: u8 = 1;
/// No host has any of them.
pub(super) const NO_HOST: u8 = 2;

/// What fast paths go by, as of the last [`Stack::refresh`].
#[derive(Debug)]
pub(super) struct Adjacencies {
    /// By device: the link address that its frames are for, in the byte order of memory.
    pub(super) stations: Box<[u64]>,
    /// By the first eight bits of an address of IPv4: whether a host has it, as far as they show it. [`OWN`] and [`NO_HOST`].
    pub(super) addresses: Box<[u8; 256]>,
    /// By hop: what a packet needs to leave.
    pub(super) by_hop: Vec<Adjacency>,
    /// By hop: which packets go on to the chain.
    pub(super) entries: Vec<AdjacencyEntry>,
}

/// What a packet needs to reach a next hop.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(super) struct Adjacency {
    /// The link addresses of the next hop, and of this machine.
    pub(super) link: [u8; 12],
    /// The longest packet that fits, of IPv4 and of IPv6. Zero where more has to be done.
    pub(super) longest: [u16; 2],
    pub(super) device: DeviceId,
}

/// Which packets for a hop go on to the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdjacencyEntry {
    /// The longest one of which nothing has to be said, of IPv4 and of IPv6. Zero where more has to be done.
    pub(super) longest: [u16; 2],
    pub(super) origin: Origin,
}

impl Adjacencies {
    /// Without hops.
    pub(super) fn new(ports: &[Option<StackPort>]) -> Adjacencies {
        let station = |port: &Option<StackPort>| match port {
            Some(port) if port.l3 == UNTAGGED => {
                let [a, b, c, d, e, f] = port.mac;
                u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
            }
            _ => NO_ADDRESS,
        };
        let of = |first: usize| {
            let is_own =
                |port: &StackPort| port.own_v4().iter().any(|own| own.octets()[0] == first as u8);
            match may_be_source_v4([first as u8, 0, 0, 1].into()) {
                false => NO_HOST,
                true if ports.iter().flatten().any(is_own) => OWN,
                true => 0,
            }
        };
        Adjacencies {
            stations: ports.iter().map(station).collect(),
            addresses: Box::new(std::array::from_fn(of)),
            by_hop: Vec::new(),
            entries: Vec::new(),
        }
    }
}

impl Stack {
    /// Learns what fast paths go by from what the rest of the stack does.
    pub(super) fn learn_adjacencies(&mut self) {
        let mut by_hop = std::mem::take(&mut self.adjacencies.by_hop);
        by_hop.clear();
        by_hop.extend(self.routes.hops().iter().zip(&self.gateways).map(|(hop, seen)| {
            match *hop {
                Hop::Gateway(device, _) => self.adjacency(device, *seen),
                // On a link, it depends on the destination.
                _ => Adjacency::default(),
            }
        }));
        self.adjacencies.by_hop = by_hop;
        self.adjacencies.entries = self.routes.hops().iter().map(|hop| self.entry(*hop)).collect();
    }

    /// What a packet needs to reach a neighbour on the link of `device`.
    fn adjacency(&self, device: DeviceId, seen: Option<Seen>) -> Adjacency {
        let mut adjacency = Adjacency { device, ..Adjacency::default() };
        if let (Some(Seen { mac, stale: false }), Some(port)) = (seen, self.port(device))
            && port.l3 == UNTAGGED
        {
            adjacency.link[..6].copy_from_slice(&mac);
            adjacency.link[6..].copy_from_slice(&port.mac);
            adjacency.longest = [port.mtu, port.mtu_v6];
        }
        adjacency
    }

    /// What a packet to `destination` needs, if that is on a link.
    #[inline(never)]
    pub(super) fn adjacency_on_link(&self, hop: HopId, destination: u128) -> Adjacency {
        let Hop::OnLink(device) = self.routes.hop(hop) else { return Adjacency::default() };
        let key = NeighbourKey::of_bits(device, destination);
        self.adjacency(device, self.neighbours.get(&key))
    }

    fn entry(&self, hop: Hop) -> AdjacencyEntry {
        let (longest, origin) = match hop {
            Hop::OnLink(device) | Hop::Gateway(device, _) => {
                let longest = self.port(device).map_or([0; 2], |port| [port.mtu, port.mtu_v6]);
                (longest, Origin::Transit)
            }
            Hop::Proxied => ([u16::MAX; 2], Origin::Transit),
            Hop::Local { proxied: true } => ([u16::MAX; 2], Origin::Home),
            Hop::Local { proxied: false } | Hop::Broadcast | Hop::None => ([0; 2], Origin::Transit),
        };
        AdjacencyEntry { longest, origin }
    }
}
