//! From the first byte to the network layer, for every link type.

use super::{Headers, LinkHeader, Network};
use crate::LinkType;
use crate::malformed::{Layer, Malformed};
use crate::wire::{EthernetFrame, VlanTag, arp, ethernet, vlan};

/// More VLAN tags than this are refused; the first two name the zone.
const MAX_TAGS: usize = 8;

/// Finds the network layer of a frame that is `end` bytes long.
pub(super) fn parse(data: &[u8], end: usize, link: LinkType) -> Result<LinkHeader, Malformed> {
    let truncated = Malformed::Truncated(Layer::Link);
    match link {
        LinkType::Ethernet => {
            let ethertype = EthernetFrame::new(data)?.ethertype();
            if ethertype < ethernet::MIN_ETHERTYPE {
                return ieee_802_3(ethertype, end);
            }
            untag(data, ethertype, ethernet::HEADER, end)
        }
        LinkType::Raw => raw(data, 0, end),
        LinkType::Null => {
            let family = data.first_chunk().ok_or(truncated)?;
            Ok(LinkHeader { ethertype: of_family(*family), zone: 0, l3: 4, end })
        }
        LinkType::LinuxCooked => {
            let header: &[u8; 16] = data.first_chunk().ok_or(truncated)?;
            cooked(data, [header[2], header[3]], [header[14], header[15]], 16, end)
        }
        LinkType::LinuxCooked2 => {
            let header: &[u8; 20] = data.first_chunk().ok_or(truncated)?;
            cooked(data, [header[8], header[9]], [header[0], header[1]], 20, end)
        }
    }
}

/// A frame with a length in place of the ethertype, as spanning tree and other LLC protocols use.
fn ieee_802_3(len: u16, end: usize) -> Result<LinkHeader, Malformed> {
    let stated = ethernet::HEADER + usize::from(len);
    if stated > end {
        return Err(Malformed::Length(Layer::Link));
    }
    Ok(LinkHeader { ethertype: 0, zone: 0, l3: ethernet::HEADER, end: stated })
}

/// Skips VLAN tags.
fn untag(
    data: &[u8],
    mut ethertype: u16,
    mut l3: usize,
    end: usize,
) -> Result<LinkHeader, Malformed> {
    let mut zone = 0;
    let mut tags = 0;
    while ethernet::is_vlan(ethertype) {
        if tags == MAX_TAGS {
            return Err(Malformed::TooManyTags);
        }
        let tag = VlanTag::new(&data[l3..])?;
        if tags < 2 {
            zone = zone << 12 | u32::from(tag.id());
        }
        ethertype = tag.ethertype();
        l3 += vlan::TAG;
        tags += 1;
    }
    let ethertype = if ethertype < ethernet::MIN_ETHERTYPE { 0 } else { ethertype };
    Ok(LinkHeader { ethertype, zone, l3, end })
}

/// No link header: the version number states what it is.
fn raw(data: &[u8], l3: usize, end: usize) -> Result<LinkHeader, Malformed> {
    let ethertype = match data.get(l3).map(|first| first >> 4) {
        Some(4) => ethernet::IPV4,
        Some(6) => ethernet::IPV6,
        Some(_) => return Err(Malformed::Version(Layer::Ipv4)),
        None => return Err(Malformed::Truncated(Layer::Ipv4)),
    };
    Ok(LinkHeader { ethertype, zone: 0, l3, end })
}

/// The ethertype for a BSD address family, which the capturing host wrote in its byte order. IPv6 has
/// another number on each system (the pcap link-type list names them for `LINKTYPE_NULL`).
fn of_family(bytes: [u8; 4]) -> u16 {
    let family = u32::from_le_bytes(bytes);
    // Families are small numbers.
    match if family > 0xffff { family.swap_bytes() } else { family } {
        2 => ethernet::IPV4,
        10 | 24 | 28 | 30 => ethernet::IPV6,
        _ => 0,
    }
}

/// Linux cooked framing. For some kinds of hardware the protocol field is no ethertype.
fn cooked(
    data: &[u8],
    hardware: [u8; 2],
    protocol: [u8; 2],
    l3: usize,
    end: usize,
) -> Result<LinkHeader, Malformed> {
    const IP_GRE: u16 = 778;
    const NETLINK: u16 = 824;
    match (u16::from_be_bytes(hardware), u16::from_be_bytes(protocol)) {
        (IP_GRE | NETLINK, _) => Ok(LinkHeader { ethertype: 0, zone: 0, l3, end }),
        (_, ethertype) => untag(data, ethertype, l3, end),
    }
}

/// ARP, which ends behind its addresses.
pub(super) fn arp(data: &[u8], link: LinkHeader) -> Result<Headers, Malformed> {
    let fixed: &[u8; arp::FIXED] =
        data[link.l3..].first_chunk().ok_or(Malformed::Truncated(Layer::Arp))?;
    let end = link.l3 + arp::len_of(fixed);
    if end > link.end {
        return Err(Malformed::Truncated(Layer::Arp));
    }
    Ok(LinkHeader { end, ..link }.without_ip(Network::Arp))
}
