//! The frames of generated traffic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport as Built};
use rheostat_packet::wire::tcp::TcpFlags;

const CLIENT_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
const SERVER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];
/// MSS 1460, SACK permitted, window scale 7, padded: what a present-day SYN carries.
pub(crate) const SYN_OPTIONS: [u8; 12] = [2, 4, 0x05, 0xb4, 4, 2, 1, 3, 3, 7, 1, 1];
pub(crate) const WINDOW: u16 = 0xffff;

/// The initial sequence number of a server whose client has this one, so that a server without state knows it.
pub(crate) fn server_isn(client: u32) -> u32 {
    !client
}

/// The endpoints of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameEndpoints {
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
}

impl FrameEndpoints {
    /// Client and server of flow `number`, which serves on `port`. Numbers below 2^38 have different
    /// endpoints.
    pub(crate) fn of_flow(number: u64, ipv6: bool, port: u16) -> FrameEndpoints {
        let (client, server) = crate::picker::tuple_of(number);
        let address = |v4: Ipv4Addr, prefix: u128| -> IpAddr {
            match ipv6 {
                true => Ipv6Addr::from_bits(prefix | u128::from(v4.to_bits())).into(),
                false => v4.into(),
            }
        };
        FrameEndpoints {
            source: (address(client.0, 0xfd00 << 112), client.1),
            destination: (address(server.0, 0x2001_0db8 << 96), port),
        }
    }

    /// Any two ends of one family.
    pub(crate) fn between(source: (IpAddr, u16), destination: (IpAddr, u16)) -> FrameEndpoints {
        FrameEndpoints { source, destination }
    }

    pub(crate) fn source(&self) -> (IpAddr, u16) {
        self.source
    }

    pub(crate) fn reversed(self) -> FrameEndpoints {
        FrameEndpoints { source: self.destination, destination: self.source }
    }
}

/// What a packet does in its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp {
    seq: u32,
    ack: u32,
    flags: u8,
}

impl Tcp {
    pub(crate) fn syn(seq: u32) -> Tcp {
        Tcp { seq, ack: 0, flags: TcpFlags::SYN }
    }

    pub(crate) fn syn_ack(seq: u32, ack: u32) -> Tcp {
        Tcp { seq, ack, flags: TcpFlags::SYN | TcpFlags::ACK }
    }

    pub(crate) fn ack(seq: u32, ack: u32) -> Tcp {
        Tcp { seq, ack, flags: TcpFlags::ACK }
    }

    pub(crate) fn fin(seq: u32, ack: u32) -> Tcp {
        Tcp { seq, ack, flags: TcpFlags::FIN | TcpFlags::ACK }
    }

    pub(crate) fn rst(seq: u32, ack: u32) -> Tcp {
        Tcp { seq, ack, flags: TcpFlags::RST | TcpFlags::ACK }
    }

    /// Sequence numbers that SYN and FIN take up.
    pub(crate) fn control_bytes(&self) -> u32 {
        (self.flags & (TcpFlags::SYN | TcpFlags::FIN)).count_ones()
    }
}

/// What lies above IP.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrameTransport {
    Tcp(Tcp),
    Udp,
    Echo { reply: bool, sequence: u16 },
}

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePacket {
    pub(crate) endpoints: FrameEndpoints,
    pub(crate) from_client: bool,
    pub(crate) transport: FrameTransport,
    pub(crate) payload: usize,
}

/// Replaces the contents of `frame` by the packet.
pub(crate) fn write(packet: &FramePacket, frame: &mut Vec<u8>) {
    let FrameEndpoints { source, destination } = packet.endpoints;
    let ports = (source.1, destination.1);
    let transport = match packet.transport {
        FrameTransport::Tcp(tcp) => Built::Tcp(TcpHeader {
            ports,
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: WINDOW,
            urgent: 0,
            options: if tcp.flags & TcpFlags::SYN != 0 { &SYN_OPTIONS } else { &[] },
        }),
        FrameTransport::Udp => Built::Udp { ports },
        FrameTransport::Echo { reply, sequence } => {
            let kind = match (source.0.is_ipv4(), reply) {
                (true, false) => 8,
                (true, true) => 0,
                (false, false) => 128,
                (false, true) => 129,
            };
            let client = if packet.from_client { source.1 } else { destination.1 };
            Built::Icmp { kind, code: 0, rest: u32::from(client) << 16 | u32::from(sequence) }
        }
    };
    let (source_mac, destination_mac) = match packet.from_client {
        true => (CLIENT_MAC, SERVER_MAC),
        false => (SERVER_MAC, CLIENT_MAC),
    };
    let ethernet = Ethernet { source: source_mac, destination: destination_mac, vlan: None };
    let payload = Payload::Pattern(packet.payload);
    let builder =
        FrameBuilder::new(source.0, destination.0, transport, payload).with_ethernet(ethernet);
    frame.resize(builder.len(), 0);
    builder.write(frame);
}
