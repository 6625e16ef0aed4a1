//! Packets under other names.
//!
//! Addresses are replaced wherever the headers have them: in IP, and in the packet that an ICMP error quotes.
//! Checksums that cover them are kept incrementally (RFC 1624): one that was right stays right, one that was
//! wrong stays wrong by as much, and one that was captured before the interface computed it stays that. Ports
//! stay. Addresses in payloads (FTP, SIP, DNS) stay, too, as do those in routing headers and in ARP and
//! neighbour discovery, which belong to no flow.

use std::net::IpAddr;

use rheostat_packet::checksum::{Delta, Sum, Validity, evaluate};
use rheostat_packet::tuple::addresses;
use rheostat_packet::wire::protocol::{DCCP, ICMPV6, TCP, UDP, UDP_LITE};
use rheostat_packet::wire::quoted::Quoted;
use rheostat_packet::wire::{Ipv4PacketMut, Ipv6Packet, Ipv6PacketMut};
use rheostat_packet::{Headers, LinkType, Network, Tuple};

use super::Names;

impl Names {
    /// Gives the hosts of a frame of `wire_len` bytes, of which `frame` was captured, these names. `false`, and
    /// nothing changed, for a packet that is broken or belongs to no flow.
    ///
    /// Both directions of a flow, its fragments and the ICMP errors about it get the same names.
    pub fn rename(&self, frame: &mut [u8], wire_len: u32, link: LinkType) -> bool {
        let Ok(headers) = Headers::parse_bytes(frame, wire_len as usize, link) else {
            return false;
        };
        match Tuple::of_bytes(frame, &headers) {
            Tuple::None => return false,
            Tuple::IcmpError(key) => {
                // The key is turned: the packet in question went to the first endpoint.
                let Ok(mut quoted) = Quoted::new(frame, &headers) else { return false };
                let set = quoted
                    .set_source(self.of(key.second()), key.second_port())
                    .and_then(|()| quoted.set_destination(self.of(key.first()), key.first_port()));
                debug_assert!(set.is_ok(), "a name is of the family of the address");
            }
            Tuple::Flow(_) | Tuple::Fragment(..) => {}
        }
        self.rename_ends(frame, &headers).is_some()
    }

    /// Renames the two ends of a packet.
    fn rename_ends(&self, frame: &mut [u8], headers: &Headers) -> Option<()> {
        let key = addresses(frame, headers)?;
        let old = (key.first(), key.second());
        let new = (self.of(old.0), self.of(old.1));
        let checksum = Checksum::find(frame, headers);
        let partial = checksum.is_some_and(|checksum| checksum.is_partial(frame, headers, old));
        let l3 = usize::from(headers.l3);
        let delta = match new {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut ip = Ipv4PacketMut::new(&mut frame[l3..]).ok()?;
                ip.set_source(source).and(ip.set_destination(destination))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                // The checksum of a packet with segments left covers its last destination (RFC 8200, section 8.1).
                let mut extensions = Ipv6Packet::new(&frame[l3..]).ok()?.extensions();
                let is_routed =
                    extensions.any(|extension| extension.is_ok_and(|e| e.has_segments_left()));
                let mut ip = Ipv6PacketMut::new(&mut frame[l3..]).ok()?;
                let of_source = ip.set_source(source);
                let of_destination = ip.set_destination(destination);
                if is_routed { of_source } else { of_source.and(of_destination) }
            }
            _ => unreachable!("a name is of the family of the address"),
        };
        if let Some(checksum) = checksum {
            checksum.adjust(frame, delta, partial);
        }
        Some(())
    }
}

/// The transport checksum that covers the addresses.
#[derive(Clone, Copy)]
struct Checksum {
    at: usize,
    is_udp: bool,
}

impl Checksum {
    /// Finds it, if this packet, which may be a fragment, carries it, and as far as it was captured.
    fn find(frame: &[u8], headers: &Headers) -> Option<Checksum> {
        let place = match (headers.protocol, headers.network) {
            (TCP, _) => 16,
            (UDP | UDP_LITE | DCCP, _) => 6,
            (ICMPV6, Network::Ipv6) => 2,
            _ => return None,
        };
        let start = headers.fragment.map_or(0, |fragment| usize::from(fragment.offset));
        let at = usize::from(headers.l4) + usize::checked_sub(place, start)?;
        let is_there = at + 2 <= frame.len().min(headers.end as usize);
        is_there.then_some(Checksum { at, is_udp: matches!(headers.protocol, UDP | UDP_LITE) })
    }

    fn read(self, frame: &[u8]) -> u16 {
        u16::from_be_bytes([frame[self.at], frame[self.at + 1]])
    }

    /// Whether it is the sum of the pseudo header alone, as captured before segmentation or checksum offload.
    fn is_partial(self, frame: &[u8], headers: &Headers, (from, to): (IpAddr, IpAddr)) -> bool {
        let (l4, end) = (usize::from(headers.l4), headers.end as usize);
        if headers.fragment.is_some() {
            return false;
        }
        let field = self.read(frame);
        let mut pseudo = Sum::default();
        pseudo.add_pseudo_header(from, to, headers.protocol, (end - l4) as u32);
        // A complete checksum can be the same number by chance. Of a packet that was cut short it is not known.
        let validity =
            || evaluate(from, to, headers.protocol, field, [&frame[l4..end.min(frame.len())]]);
        pseudo.folded() == field && (end > frame.len() || validity() == Validity::Partial)
    }

    fn adjust(self, frame: &mut [u8], delta: Delta, partial: bool) {
        let old = self.read(frame);
        let new = match (partial, self.is_udp) {
            // A sum, where the others are its complement.
            (true, _) => !delta.apply(!old),
            (false, true) => delta.apply_udp(old),
            (false, false) => delta.apply(old),
        };
        frame[self.at..self.at + 2].copy_from_slice(&new.to_be_bytes());
    }
}
