//! Where the headers of a packet lie.

mod ip;
mod link;
mod transport;

use crate::malformed::Malformed;
use crate::wire::{EthernetFrame, ethernet};
use crate::{LinkType, Mbuf};

/// What a packet is above the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP.
    Arp,
    /// Anything else.
    #[default]
    Other,
}

/// The part of a datagram that a fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The identification field: 16 bits for IPv4, 32 for IPv6.
    pub id: u32,
    /// Where the fragment's data starts in the datagram's data, in bytes.
    pub offset: u16,
    /// Bytes of data the fragment carries.
    pub len: u16,
    /// Whether fragments follow.
    pub more: bool,
}

/// The layers of a packet as offsets from its first byte. Made by [`Headers::parse`], which has
/// checked that everything it points to lies inside the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Headers {
    /// What lies above the link layer.
    pub network: Network,
    /// The protocol above IP and its extension headers; zero without IP.
    pub protocol: u8,
    /// Set for a fragment; an IPv6 atomic fragment (RFC 6946) is not one.
    pub fragment: Option<Fragment>,
    /// The ethertype, or zero where the link layer has none.
    pub ethertype: u16,
    /// VLAN identifiers: outer « 12 | inner; zero without tags.
    pub zone: u32,
    /// Where the network layer starts.
    pub l3: u16,
    /// Where the transport layer starts: behind all IP options and extension headers.
    pub l4: u16,
    /// Where the packet ends: link padding lies behind. Beyond the captured bytes when a capture
    /// cut the packet short.
    pub end: u32,
}

/// What the link layer states about the network layer.
#[derive(Clone, Copy, Debug)]
struct LinkHeader {
    ethertype: u16,
    zone: u32,
    /// Where the network layer starts.
    l3: usize,
    /// Where the frame ends, as far as the link layer has it.
    end: usize,
}

impl Headers {
    /// Finds the headers of a packet.
    ///
    /// Lengths are checked against the length the frame had on the wire. All headers lie in the
    /// first segment, and of a packet that a capture cut short they must have been captured as far
    /// as the flow's key needs them.
    ///
    /// # Errors
    /// [`Malformed`] when a header is cut short, contradicts itself or claims more bytes than there
    /// are.
    #[inline]
    pub fn parse(packet: &Mbuf) -> Result<Headers, Malformed> {
        let wire_len = packet.len().max(packet.wire_len() as usize);
        Headers::parse_bytes(packet.data(), wire_len, packet.link())
    }

    /// As [`Headers::parse`], for a frame of `wire_len` bytes that starts with `data`. What `data` does
    /// not have lies in later segments or was not captured.
    ///
    /// # Errors
    /// As [`Headers::parse`].
    #[inline]
    pub fn parse_bytes(data: &[u8], wire_len: usize, link: LinkType) -> Result<Headers, Malformed> {
        // No frame is as long as 4 GiB; offsets have 32 bits.
        let end = wire_len.max(data.len()).min(u32::MAX as usize);
        if link == LinkType::Ethernet {
            // The usual case is all that is compiled into the caller.
            let ethertype = EthernetFrame::new(data)?.ethertype();
            let header = LinkHeader { ethertype, zone: 0, l3: ethernet::HEADER, end };
            match ethertype {
                ethernet::IPV4 => return ip::v4(data, header),
                ethernet::IPV6 => return ip::v6(data, header),
                _ => {}
            }
        }
        Headers::parse_unusual(data, end, link)
    }

    #[inline(never)]
    fn parse_unusual(data: &[u8], end: usize, link: LinkType) -> Result<Headers, Malformed> {
        let header = link::parse(data, end, link)?;
        match header.ethertype {
            ethernet::IPV4 => ip::v4(data, header),
            ethernet::IPV6 => ip::v6(data, header),
            ethernet::ARP => link::arp(data, header),
            _ => Ok(header.without_ip(Network::Other)),
        }
    }
}

impl LinkHeader {
    /// A packet that ends the search at the network layer.
    fn without_ip(self, network: Network) -> Headers {
        Headers {
            network,
            protocol: 0,
            fragment: None,
            ethertype: self.ethertype,
            zone: self.zone,
            l3: self.l3 as u16,
            l4: self.l3 as u16,
            end: self.end as u32,
        }
    }
}
