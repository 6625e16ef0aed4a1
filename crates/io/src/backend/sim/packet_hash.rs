//! The hash a NIC computes, from the bytes of a packet.

use rheostat_base::DeviceId;
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet};
use rheostat_packet::{FlowKey, HashKind, Headers, Mbuf, Network, Tuple};
use rheostat_steer::{HashOptions, Steering, hash_packet};

/// The hash of a packet that arrives on `device`, and what it covers: nothing when the packet has no
/// addresses, or is too broken to have any.
pub(super) fn packet_hash(
    steering: &Steering,
    options: HashOptions,
    device: DeviceId,
    packet: &Mbuf,
) -> (u32, HashKind) {
    let Ok(headers) = Headers::parse(packet) else { return (0, HashKind::None) };
    let tuple = steering.tuple(packet.data(), &headers, packet.link());
    let outer = match tuple {
        Tuple::IcmpError(_) | Tuple::None => addresses(packet, &headers),
        _ => None,
    };
    hash_packet(steering, options, device, &tuple, outer)
}

/// The packet's own addresses.
fn addresses(packet: &Mbuf, headers: &Headers) -> Option<FlowKey> {
    let network = packet.data().get(usize::from(headers.l3)..)?;
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
