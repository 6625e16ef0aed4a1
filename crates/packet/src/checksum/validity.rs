//! Whether a transport checksum is right.

use std::net::IpAddr;

use super::Sum;
use crate::wire::field::{array_at, u16_at};
use crate::wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use crate::wire::{Extensions, Ipv6Packet, ipv4, ipv6, udp};
use crate::{Headers, Mbuf, Network};

/// The state of a transport checksum in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It is right.
    Valid,
    /// The sender did not compute one (UDP over IPv4).
    Absent,
    /// It holds the sum of the pseudo header alone: the packet was captured on its sender, before the
    /// interface computed the rest.
    Partial,
    /// It is wrong.
    Invalid,
}

/// Evaluates the checksum `field` of a transport header within `segments`, which together are everything
/// behind the IP headers.
pub fn evaluate<'a>(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    field: u16,
    segments: impl IntoIterator<Item = &'a [u8]>,
) -> Validity {
    if field == 0 && protocol == UDP && source.is_ipv4() {
        return Validity::Absent;
    }
    let mut whole = Sum::default();
    let mut length = 0;
    for segment in segments {
        whole.add(segment);
        length += segment.len() as u32;
    }
    let mut pseudo = Sum::default();
    // ICMP for IPv4 is the one whose checksum covers no pseudo header.
    if protocol != ICMPV4 {
        pseudo.add_pseudo_header(source, destination, protocol, length);
    }
    whole.add_sum(pseudo);
    if whole.checksum() == 0 {
        Validity::Valid
    } else if protocol != ICMPV4 && pseudo.folded() == field {
        Validity::Partial
    } else {
        Validity::Invalid
    }
}

/// Evaluates the transport checksum of a packet with these headers. `None` where there is nothing to
/// evaluate: in fragments, in packets that a capture cut short, on the way along a routing header, for
/// segmentation-offload frames too long to have a checksum, and for protocols other than TCP, UDP and
/// ICMP.
pub fn evaluate_packet(packet: &Mbuf, headers: &Headers) -> Option<Validity> {
    let (l4, end) = (usize::from(headers.l4), headers.end as usize);
    if headers.fragment.is_some() || end > packet.len() {
        return None;
    }
    let data = packet.data();
    let (source, destination) = addresses(data, headers)?;
    let header = data.get(l4..)?;
    let (at, len) = match (headers.network, headers.protocol) {
        (_, TCP) => (16, end - l4),
        // What lies behind the datagram is not covered.
        (_, UDP) => match udp::len(header.first_chunk()?) {
            0 => (6, end - l4),
            stated => (6, usize::from(stated)),
        },
        (Network::Ipv4, ICMPV4) | (Network::Ipv6, ICMPV6) => (2, end - l4),
        _ => return None,
    };
    let field = u16_at(header.get(at..at + 2)?, 0);
    let covered = segments_within(packet, l4, l4 + len);
    Some(evaluate(source, destination, headers.protocol, field, covered))
}

/// The bytes of a packet from `start` to `end`, segment by segment.
fn segments_within(packet: &Mbuf, start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    packet.segments().map(move |segment| {
        let begin = at;
        at += segment.len();
        let from = start.clamp(begin, at) - begin;
        let to = end.clamp(begin, at) - begin;
        &segment[from..to]
    })
}

/// The addresses that the pseudo header has.
fn addresses(data: &[u8], headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    let ip = data.get(usize::from(headers.l3)..usize::from(headers.l4))?;
    match headers.network {
        Network::Ipv4 => {
            let fixed: &[u8; ipv4::MIN_HEADER] = ip.first_chunk()?;
            Some((array_at::<4>(fixed, 12).into(), array_at::<4>(fixed, 16).into()))
        }
        Network::Ipv6 => {
            let packet = Ipv6Packet::new(ip).ok()?;
            let mut extensions = Extensions::new(packet.next_header(), &ip[ipv6::HEADER..]);
            let is_routed =
                extensions.any(|extension| extension.is_ok_and(|e| e.has_segments_left()));
            (!is_routed).then(|| (packet.source().into(), packet.destination().into()))
        }
        Network::Arp | Network::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{FrameBuilder, Payload, TcpHeader, Transport};
    use crate::{LinkType, Mempool, MempoolConfig, PoolCache};

    #[test]
    fn partial_wrong_and_absent_checksums_are_distinguished() {
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut datagram = [0x12, 0x34, 0, 53, 0, 11, 0, 0, 1, 2, 3];
        let with = |field: u16, datagram: &mut [u8; 11]| {
            datagram[6..8].copy_from_slice(&field.to_be_bytes());
            evaluate(a, b, 17, field, [&datagram[..]])
        };
        let mut pseudo = Sum::default();
        pseudo.add_pseudo_header(a, b, 17, 11);
        let partial = pseudo.folded();
        pseudo.add(&datagram);
        let right = pseudo.checksum();
        assert_eq!(with(right, &mut datagram), Validity::Valid);
        assert_eq!(with(0, &mut datagram), Validity::Absent);
        assert_eq!(with(partial, &mut datagram), Validity::Partial);
        assert_eq!(with(right ^ 1, &mut datagram), Validity::Invalid);
    }

    /// The validity of a raw IP packet in buffers of an odd size.
    fn validity(frame: &[u8]) -> Option<Validity> {
        let config = MempoolConfig { buffers: 32, data_room: 97, headroom: 0 };
        let mut cache = PoolCache::new(Mempool::new(&config).unwrap());
        let mut packet = cache.alloc_from(frame).unwrap();
        packet.set_link(LinkType::Raw);
        let headers = Headers::parse(&packet).unwrap();
        evaluate_packet(&packet, &headers)
    }

    #[test]
    fn a_chained_packet_is_evaluated_as_a_whole() {
        let (a, b) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let transports = [
            Transport::Tcp(TcpHeader { ports: (1, 2), ..TcpHeader::default() }),
            Transport::Udp { ports: (1, 2) },
            Transport::Icmp { kind: 128, code: 0, rest: 5 },
        ];
        for transport in transports {
            let mut frame = FrameBuilder::new(a, b, transport, Payload::Pattern(777)).to_vec();
            assert_eq!(validity(&frame), Some(Validity::Valid));
            *frame.last_mut().unwrap() ^= 0x40;
            assert_eq!(validity(&frame), Some(Validity::Invalid));
        }
    }

    #[test]
    fn what_cannot_be_evaluated_is_not() {
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let udp = Transport::Udp { ports: (1, 2) };
        let whole = FrameBuilder::new(a, b, udp, Payload::Pattern(40));
        assert_eq!(validity(&whole.to_vec()), Some(Validity::Valid));
        let fragment = FrameBuilder { fragment: Some((0, true)), ..whole };
        assert_eq!(validity(&fragment.to_vec()), None);
        let other = FrameBuilder { transport: Transport::Protocol(50), ..whole };
        assert_eq!(validity(&other.to_vec()), None);
        let padded = [whole.to_vec(), vec![0xaa; 6]].concat();
        assert_eq!(validity(&padded), Some(Validity::Valid));
    }
}
