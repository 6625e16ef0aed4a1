//! The packet of benchmarks that want nothing of packets: a UDP datagram of 64 bytes on the wire.

use std::net::Ipv4Addr;

use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};

/// Writes the datagram of flow `flow`, which differs from others in its source port.
pub(crate) fn write(flow: u16, frame: &mut Vec<u8>) {
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(198, 18, 0, 1));
    let udp = Transport::Udp { ports: (1_024_u16.wrapping_add(flow), 53) };
    let link = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: None };
    let packet = FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(18));
    let packet = packet.with_ethernet(link);
    frame.resize(packet.len(), 0);
    packet.write(frame);
}
