//! Segments as frames: what the wire carries.

use std::net::{IpAddr, SocketAddr};

use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::checksum::{self, Validity};
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, TcpSegment, protocol};
use rheostat_packet::{Headers, LinkType, Network};
use rheostat_tcp::{Segment, Transmit};

/// The segment as an IP packet.
pub(crate) fn write(transmit: &Transmit<'_>, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut scratch = Vec::new();
    let payload = transmit.contiguous(&mut scratch);
    let options = transmit.header.options.write();
    let header = transmit.header.with_ports((from.port(), to.port()), &options);
    let transport = Transport::Tcp(header);
    FrameBuilder::new(from.ip(), to.ip(), transport, Payload::Bytes(payload)).to_vec()
}

/// A segment with the ends that it is from and for.
type Parsed<'a> = (SocketAddr, SocketAddr, Segment<'a>);

/// The segment in a packet for this address, if it is whole and its checksums are right.
pub(crate) fn read(frame: &[u8], at: SocketAddr) -> Option<Segment<'_>> {
    let (_, to, segment) = parse_ends(frame)?;
    (to == at).then_some(segment)
}

/// The segment in a packet, if it is whole and its checksums are right.
pub(crate) fn parse(frame: &[u8]) -> Option<Segment<'_>> {
    parse_ends(frame).map(|(_, _, segment)| segment)
}

fn parse_ends(frame: &[u8]) -> Option<Parsed<'_>> {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Raw).ok()?;
    if headers.protocol != protocol::TCP {
        return None;
    }
    let (l3, l4) = (usize::from(headers.l3), usize::from(headers.l4));
    let (source, destination): (IpAddr, IpAddr) = match headers.network {
        Network::Ipv4 => {
            let ip = Ipv4Packet::new(&frame[l3..]).ok()?;
            if checksum::of(&frame[l3..l4]) != 0 {
                return None;
            }
            (ip.source().into(), ip.destination().into())
        }
        Network::Ipv6 => {
            let ip = Ipv6Packet::new(&frame[l3..]).ok()?;
            (ip.source().into(), ip.destination().into())
        }
        _ => return None,
    };
    let bytes = frame.get(l4..headers.end as usize)?;
    let view = TcpSegment::new(bytes).ok()?;
    let validity = checksum::evaluate(source, destination, protocol::TCP, view.checksum(), [bytes]);
    if validity != Validity::Valid {
        return None;
    }
    let segment = Segment::parse(&view, bytes.get(view.header_len()..)?);
    let from = SocketAddr::new(source, view.source_port());
    Some((from, SocketAddr::new(destination, view.destination_port()), segment))
}
