//! Segments as frames: what the wire carries.

use std::net::SocketAddr;

use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::checksum::{self, Validity};
use rheostat_packet::wire::{Ipv4Packet, TcpSegment, protocol};
use rheostat_packet::{Headers, LinkType, Network};
use rheostat_tcp::{Segment, Transmit};

/// The segment as an IPv4 packet.
pub(crate) fn write(transmit: &Transmit<'_>, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut scratch = Vec::new();
    let payload = transmit.contiguous(&mut scratch);
    let options = transmit.header.options.write();
    let header = transmit.header.with_ports((from.port(), to.port()), &options);
    let transport = Transport::Tcp(header);
    FrameBuilder::new(from.ip(), to.ip(), transport, Payload::Bytes(payload)).to_vec()
}

/// The segment in a packet for this address, if it is whole and its checksums are right.
pub(crate) fn read(frame: &[u8], at: SocketAddr) -> Option<Segment<'_>> {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Raw).ok()?;
    if headers.network != Network::Ipv4 || headers.protocol != protocol::TCP {
        return None;
    }
    let (l3, l4) = (usize::from(headers.l3), usize::from(headers.l4));
    let ip = Ipv4Packet::new(&frame[l3..]).ok()?;
    let (source, destination) = (ip.source().into(), ip.destination().into());
    if checksum::of(&frame[l3..l4]) != 0 || destination != at.ip() {
        return None;
    }
    let bytes = frame.get(l4..headers.end as usize)?;
    let view = TcpSegment::new(bytes).ok()?;
    let validity = checksum::evaluate(source, destination, protocol::TCP, view.checksum(), [bytes]);
    if validity != Validity::Valid || view.destination_port() != at.port() {
        return None;
    }
    Some(Segment::parse(&view, bytes.get(view.header_len()..)?))
}
