//! A server that answers what generated traffic sends.

use std::net::IpAddr;

use rheostat_io::Responder;
use rheostat_packet::build::{FrameBuilder, MIN_FRAME, Payload, TcpHeader, Transport};
use rheostat_packet::wire::{TcpFlags, TcpSegment, UdpDatagram, icmpv4, icmpv6, protocol, udp};
use rheostat_packet::{Headers, LinkType, Mbuf, tuple};

use crate::frame::{SYN_OPTIONS, WINDOW, server_isn};

/// Length of a link address.
const MAC: usize = 6;
/// Answers for servers that send back what clients send, and keeps no state: the reply follows from the packet alone.
///
/// | packet | reply |
/// |---|---|
/// | SYN | SYN and ACK |
/// | TCP segment with data or FIN | ACK with as much data (the same bytes), and FIN where the packet has it |
/// | TCP segment without either, RST, SYN and ACK | none |
/// | UDP datagram | the same bytes |
/// | echo request of ICMP or ICMPv6 | echo reply |
/// | anything else, fragments and broken packets | none |
///
/// Addresses of both layers and ports change places, VLAN tags stay, and checksums are right. Sequence numbers follow the
/// client's as those of [`crate::MixConfig::clients_only`] expect, whatever a NAT makes of addresses and ports.
pub struct EchoServer {
    is_server: Box<dyn Fn(IpAddr) -> bool + Send>,
    /// The packet, where it lies in several buffers.
    whole: Vec<u8>,
}

impl EchoServer {
    /// Answers for the addresses that `is_server` states. On a link that carries clients, too, theirs must not be among
    /// them, or replies would be answered in turn.
    pub fn new(is_server: impl Fn(IpAddr) -> bool + Send + 'static) -> EchoServer {
        EchoServer { is_server: Box::new(is_server), whole: Vec::new() }
    }
}

impl Responder for EchoServer {
    fn respond(&mut self, packet: &Mbuf, reply: &mut Vec<u8>) -> bool {
        let Ok(headers) = Headers::parse(packet) else { return false };
        let frame = if packet.is_chained() {
            self.whole.clear();
            packet.segments().for_each(|segment| self.whole.extend_from_slice(segment));
            &self.whole
        } else {
            packet.data()
        };
        answer(frame, &headers, packet.link(), &self.is_server, reply).is_some()
    }
}

fn answer(
    frame: &[u8],
    headers: &Headers,
    link: LinkType,
    is_server: impl Fn(IpAddr) -> bool,
    reply: &mut Vec<u8>,
) -> Option<()> {
    let ends = tuple::addresses(frame, headers)?;
    let (client, server) = (ends.first(), ends.second());
    if headers.fragment.is_some() || !is_server(server) || server.is_multicast() {
        return None;
    }
    let above = frame.get(usize::from(headers.l4)..headers.end as usize)?;
    let (transport, payload) = match (headers.protocol, server) {
        (protocol::TCP, _) => answer_tcp(above)?,
        (protocol::UDP, _) => {
            let datagram = UdpDatagram::new(above).ok()?;
            let ports = (datagram.destination_port(), datagram.source_port());
            let payload = above.get(udp::HEADER..usize::from(datagram.stated_len()))?;
            (Transport::Udp { ports }, payload)
        }
        (protocol::ICMPV4, IpAddr::V4(_)) => {
            answer_echo(above, (icmpv4::ECHO_REQUEST, icmpv4::ECHO_REPLY))?
        }
        (protocol::ICMPV6, IpAddr::V6(_)) => {
            answer_echo(above, (icmpv6::ECHO_REQUEST, icmpv6::ECHO_REPLY))?
        }
        _ => return None,
    };
    let builder = FrameBuilder::new(server, client, transport, Payload::Bytes(payload));
    let l3 = usize::from(headers.l3);
    reply.clear();
    reply.extend_from_slice(&frame[..l3]);
    if link == LinkType::Ethernet {
        reply[..2 * MAC].rotate_left(MAC);
    }
    let shortest = if link == LinkType::Ethernet { MIN_FRAME } else { 0 };
    reply.resize((l3 + builder.len()).max(shortest), 0);
    builder.write(&mut reply[l3..]);
    Some(())
}

fn answer_tcp(segment: &[u8]) -> Option<(Transport<'static>, &[u8])> {
    let header = TcpSegment::new(segment).ok()?;
    let payload = segment.get(header.header_len()..)?;
    let flags = header.flags().0;
    let has = |flag| flags & flag != 0;
    let (seq, ack, flags, options): (_, _, _, &[u8]) = if has(TcpFlags::RST) {
        return None;
    } else if has(TcpFlags::SYN) {
        if has(TcpFlags::ACK) {
            return None;
        }
        let (seq, ack) = (server_isn(header.seq()), header.seq().wrapping_add(1));
        (seq, ack, TcpFlags::SYN | TcpFlags::ACK, &SYN_OPTIONS)
    } else {
        let fin = flags & TcpFlags::FIN;
        let taken = payload.len() as u32 + u32::from(fin);
        if taken == 0 || !has(TcpFlags::ACK) {
            return None;
        }
        (header.ack(), header.seq().wrapping_add(taken), TcpFlags::ACK | fin, &[])
    };
    let ports = (header.destination_port(), header.source_port());
    let payload = if flags & TcpFlags::SYN == 0 { payload } else { &[] };
    Some((
        Transport::Tcp(TcpHeader { ports, seq, ack, flags, window: WINDOW, urgent: 0, options }),
        payload,
    ))
}

fn answer_echo(message: &[u8], (request, kind): (u8, u8)) -> Option<(Transport<'static>, &[u8])> {
    let (&[asked, code, _, _, a, b, c, d], payload) =
        message.split_first_chunk::<{ icmpv4::HEADER }>()?;
    if (asked, code) != (request, 0) {
        return None;
    }
    let rest = u32::from_be_bytes([a, b, c, d]);
    Some((Transport::Icmp { kind, code: 0, rest }, payload))
}

#[cfg(test)]
mod tests;
