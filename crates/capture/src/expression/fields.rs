//! What an expression can ask about a packet.

use std::net::IpAddr;

use rheostat_packet::wire::protocol::has_ports;
use rheostat_packet::wire::{ArpPacket, ethernet, vlan};
use rheostat_packet::{Headers, LinkType, Mbuf, Network, tuple};

/// The fields of a packet, found once for the whole expression. A packet whose headers cannot be parsed
/// has its length alone: only that and `not` can match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fields {
    /// What lies above the link layer.
    pub network: Network,
    /// The protocol above IP and its extension headers.
    pub protocol: Option<u8>,
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
    /// How many VLAN tags it has.
    pub tags: usize,
    /// The identifiers of the first two: outer « 12 | inner.
    pub zone: u32,
    /// Bytes of the frame.
    pub length: u32,
    /// Source and destination address; sender and target of ARP.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Source and destination port; fragments behind the first have none.
    pub ports: Option<(u16, u16)>,
}

impl Fields {
    /// The fields of a packet.
    pub fn of(packet: &Mbuf) -> Fields {
        let length = packet.data().len() as u32;
        let Ok(headers) = Headers::parse(packet) else {
            return Fields { length, ..Fields::default() };
        };
        let data = packet.data();
        let is_ip = matches!(headers.network, Network::Ipv4 | Network::Ipv6);
        let key = tuple::addresses(data, &headers);
        let before_l3 = usize::from(headers.l3);
        let tags = match packet.link() {
            LinkType::Ethernet => before_l3.saturating_sub(ethernet::HEADER) / vlan::TAG,
            // Other link types have tags behind headers of other lengths; one is enough to know.
            _ => usize::from(headers.zone != 0) + usize::from(headers.zone >> 12 != 0),
        };
        Fields {
            network: headers.network,
            protocol: is_ip.then_some(headers.protocol),
            is_fragment: headers.fragment.is_some(),
            tags,
            zone: headers.zone,
            length,
            addresses: match headers.network {
                Network::Arp => arp_addresses(data, &headers),
                _ => key.map(|key| (key.first(), key.second())),
            },
            ports: ports(data, &headers),
        }
    }
}

fn arp_addresses(data: &[u8], headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    let addresses = ArpPacket::new(data.get(usize::from(headers.l3)..)?).ok()?.addresses()?;
    Some((addresses.sender.into(), addresses.target.into()))
}

fn ports(data: &[u8], headers: &Headers) -> Option<(u16, u16)> {
    let later = headers.fragment.is_some_and(|fragment| fragment.offset > 0);
    if later || !has_ports(headers.protocol) {
        return None;
    }
    let end = data.len().min(headers.end as usize);
    let ports: &[u8; 4] = data.get(usize::from(headers.l4)..end)?.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    Some((port(0), port(2)))
}
