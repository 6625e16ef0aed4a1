//! The flow a packet belongs to.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::field::{array_at, u16_at};
use crate::wire::ipv6_extension::{self, Extensions};
use crate::wire::protocol::{FRAGMENT, ICMPV4, ICMPV6, has_ports};
use crate::wire::{Ipv4Packet, Ipv6Packet, icmpv4, icmpv6};
use crate::{FlowKey, Fragment, Headers, LinkType, Mbuf, Network};

/// What a packet's headers say about its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuple {
    /// The packet belongs to the flow with this key, whose first endpoint is the packet's source.
    Flow(FlowKey),
    /// The packet is an ICMP error about a packet of the flow with this key, which is turned as the
    /// error travels: its first endpoint is where the packet in question was going.
    IcmpError(FlowKey),
    /// The packet is a fragment, the first included, of a datagram between these addresses. The key has
    /// no ports, and for IPv6 the number of the fragment header as its protocol, because what follows
    /// that header may differ between the fragments of one datagram (RFC 8200, section 4.5).
    Fragment(FlowKey, Fragment),
    /// The packet belongs to no flow.
    None,
}

impl Tuple {
    /// The tuple of a packet.
    #[inline]
    pub fn of(packet: &Mbuf, headers: &Headers) -> Tuple {
        Tuple::of_bytes(packet.data(), headers)
    }

    /// As [`Tuple::of`], for a frame that starts with `data`.
    #[inline]
    pub fn of_bytes(data: &[u8], headers: &Headers) -> Tuple {
        if headers.fragment.is_some() {
            return Tuple::of_fragment(data, headers);
        }
        if has_ports(headers.protocol) {
            // Ports behind the end of the packet would be link padding (RFC 1858).
            let end = data.len().min(headers.end as usize);
            let l4 = data.get(usize::from(headers.l4)..end);
            let ports = l4.and_then(|l4| l4.first_chunk::<4>());
            return match ports {
                Some(ports) => key(data, headers, (u16_at(ports, 0), u16_at(ports, 2)))
                    .map_or(Tuple::None, Tuple::Flow),
                None => Tuple::None,
            };
        }
        Tuple::of_other(data, headers)
    }

    #[inline(never)]
    fn of_other(data: &[u8], headers: &Headers) -> Tuple {
        let captured = data.len().min(headers.end as usize);
        let message = data.get(usize::from(headers.l4)..captured).unwrap_or_default();
        let (query, error) = match (headers.network, headers.protocol) {
            (Network::Ipv4, ICMPV4) => (icmpv4::query_id(message), icmpv4::embedded(message)),
            (Network::Ipv6, ICMPV6) => (icmpv6::query_id(message), icmpv6::embedded(message)),
            (Network::Ipv4 | Network::Ipv6, _) => {
                return key(data, headers, (0, 0)).map_or(Tuple::None, Tuple::Flow);
            }
            _ => return Tuple::None,
        };
        if let Some(id) = query {
            return key(data, headers, (id, id)).map_or(Tuple::None, Tuple::Flow);
        }
        let embedded = match (error, headers.network) {
            (None, _) => None,
            (Some(packet), Network::Ipv4) => embedded_v4(packet, headers.zone),
            (Some(packet), _) => embedded_v6(packet, headers.zone),
        };
        embedded.map_or(Tuple::None, |key| Tuple::IcmpError(key.reversed()))
    }

    #[cold]
    fn of_fragment(data: &[u8], headers: &Headers) -> Tuple {
        let protocol = if headers.network == Network::Ipv6 { FRAGMENT } else { headers.protocol };
        let datagram = Headers { protocol, ..*headers };
        match (key(data, &datagram, (0, 0)), headers.fragment) {
            (Some(key), Some(fragment)) => Tuple::Fragment(key, fragment),
            _ => Tuple::None,
        }
    }
}

/// The addresses of a packet, source first, as a key without ports; `None` without IP.
pub fn addresses(data: &[u8], headers: &Headers) -> Option<FlowKey> {
    key(data, headers, (0, 0))
}

/// The MAC addresses of a frame, source first, with its VLAN and Ethertype; `None` without Ethernet.
pub fn stations(data: &[u8], headers: &Headers, link: LinkType) -> Option<FlowKey> {
    if link != LinkType::Ethernet {
        return None;
    }
    let both: &[u8; 12] = data.first_chunk()?;
    let (destination, source) = (array_at(both, 0), array_at(both, 6));
    Some(FlowKey::link(source, destination, headers.zone, headers.ethertype))
}

/// The key of a packet with these ports.
#[inline]
fn key(data: &[u8], headers: &Headers, (source, destination): (u16, u16)) -> Option<FlowKey> {
    let ip = data.get(usize::from(headers.l3)..)?;
    match headers.network {
        Network::Ipv4 => {
            let fixed: &[u8; 20] = ip.first_chunk()?;
            let (from, to) =
                (Ipv4Addr::from(array_at(fixed, 12)), Ipv4Addr::from(array_at(fixed, 16)));
            Some(FlowKey::v4((from, source), (to, destination), headers.protocol, headers.zone))
        }
        Network::Ipv6 => {
            let fixed: &[u8; 40] = ip.first_chunk()?;
            let (from, to) = (
                Ipv6Addr::from(array_at::<16>(fixed, 8)),
                Ipv6Addr::from(array_at::<16>(fixed, 24)),
            );
            Some(FlowKey::v6((from, source), (to, destination), headers.protocol, headers.zone))
        }
        Network::Arp | Network::Other => None,
    }
}

/// The key of the packet that an ICMP error quotes, in that packet's direction.
fn embedded_v4(packet: &[u8], zone: u32) -> Option<FlowKey> {
    let ip = Ipv4Packet::new(packet).ok()?;
    if ip.fragment_offset() > 0 {
        return None;
    }
    let (source, destination) = ports(ip.protocol(), ICMPV4, packet.get(ip.header_len()..)?)?;
    Some(FlowKey::v4((ip.source(), source), (ip.destination(), destination), ip.protocol(), zone))
}

fn embedded_v6(packet: &[u8], zone: u32) -> Option<FlowKey> {
    let ip = Ipv6Packet::new(packet).ok()?;
    let mut protocol = ip.next_header();
    let mut rest = packet.get(crate::wire::ipv6::HEADER..)?;
    if ipv6_extension::is_extension(protocol) {
        let mut extensions = Extensions::new(protocol, rest);
        for extension in extensions.by_ref() {
            if extension.ok()?.fragment().is_some_and(|fragment| fragment.offset > 0) {
                return None;
            }
        }
        protocol = extensions.protocol();
        rest = extensions.rest();
    }
    let (source, destination) = ports(protocol, ICMPV6, rest)?;
    Some(FlowKey::v6((ip.source(), source), (ip.destination(), destination), protocol, zone))
}

/// The ports of a quoted transport header, or the identifier of a quoted query twice. `None` when they
/// were not quoted, or when an ICMP error quotes an ICMP error.
fn ports(protocol: u8, icmp: u8, transport: &[u8]) -> Option<(u16, u16)> {
    if has_ports(protocol) {
        let ports: &[u8; 4] = transport.first_chunk()?;
        return Some((u16_at(ports, 0), u16_at(ports, 2)));
    }
    if protocol == icmp {
        let id =
            if icmp == ICMPV4 { icmpv4::query_id(transport) } else { icmpv6::query_id(transport) };
        return id.map(|id| (id, id));
    }
    Some((0, 0))
}

#[cfg(test)]
mod tests;
