//! The hash a NIC computes, from the bytes of a packet.

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet};
use rheostat_packet::{FlowKey, HashKind, Headers, LinkType, Network, Tuple};
use rheostat_steer::{HashOptions, Steering, hash_packet};

use super::SimConfig;

/// What a NIC hashes packets by.
#[derive(Clone, Debug)]
pub(super) struct PacketHasher {
    pub(super) device: DeviceId,
    pub(super) steering: Arc<Steering>,
    options: HashOptions,
}

impl PacketHasher {
    pub(super) fn new(config: &SimConfig) -> PacketHasher {
        let SimConfig { device, steering, hash: options, .. } = config;
        PacketHasher { device: *device, steering: steering.clone(), options: *options }
    }

    /// The hash of a frame that arrives on the device, and what it covers: nothing when the frame has no
    /// addresses, or is too broken to have any. `data` is its first buffer, of `wire_len` bytes in all.
    pub(super) fn hash(&self, data: &[u8], wire_len: usize, link: LinkType) -> (u32, HashKind) {
        let Ok(headers) = Headers::parse_bytes(data, wire_len, link) else {
            return (0, HashKind::None);
        };
        let tuple = self.steering.tuple(data, &headers, link);
        let outer = match tuple {
            Tuple::IcmpError(_) | Tuple::None => addresses(data, &headers),
            _ => None,
        };
        hash_packet(&self.steering, self.options, self.device, &tuple, outer)
    }
}

/// The packet's own addresses.
fn addresses(data: &[u8], headers: &Headers) -> Option<FlowKey> {
    let network = data.get(usize::from(headers.l3)..)?;
    match headers.network {
        Network::Ipv4 => {
            let ip = Ipv4Packet::new(network).ok()?;
            let (source, destination) = ((ip.source(), 0), (ip.destination(), 0));
            Some(FlowKey::v4(source, destination, headers.protocol, headers.zone))
        }
        Network::Ipv6 => {
            let ip = Ipv6Packet::new(network).ok()?;
            let (source, destination) = ((ip.source(), 0), (ip.destination(), 0));
            Some(FlowKey::v6(source, destination, headers.protocol, headers.zone))
        }
        Network::Arp | Network::Other => None,
    }
}
