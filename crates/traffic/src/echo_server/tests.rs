use std::collections::HashMap;

use proptest::prelude::*;
use rheostat_io::Source;
use rheostat_packet::build::Ethernet;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache, Tuple};

use super::*;
use crate::{Mix, MixConfig};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn pool() -> PoolCache {
    let config = MempoolConfig { buffers: 64, data_room: 512, headroom: 0 };
    PoolCache::new(Mempool::new(&config).unwrap())
}

fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd,
    }
}

fn server() -> EchoServer {
    EchoServer::new(|address| !is_inside(address))
}

/// The reply to a frame, of one buffer or several.
fn reply(frame: &[u8], link: LinkType) -> Option<Vec<u8>> {
    let mut pool = pool();
    let mut packet = pool.alloc_from(frame).unwrap();
    packet.set_link(link);
    let mut reply = vec![7; 9];
    let is_answered = server().respond(&packet, &mut reply);
    pool.free(packet);
    is_answered.then_some(reply)
}

fn ends(ipv6: bool) -> (IpAddr, IpAddr) {
    match ipv6 {
        false => ([10, 0, 0, 1].into(), [192, 0, 2, 1].into()),
        true => ([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
    }
}

fn link(source: [u8; 6], destination: [u8; 6], vlan: Option<u16>) -> Ethernet {
    Ethernet { source, destination, vlan }
}

/// A packet of the client.
fn asked(transport: Transport<'_>, payload: &[u8], ipv6: bool, vlan: Option<u16>) -> Vec<u8> {
    let (client, server) = ends(ipv6);
    let builder = FrameBuilder::new(client, server, transport, Payload::Bytes(payload));
    builder.with_ethernet(link(CLIENT, SERVER, vlan)).to_vec()
}

/// A packet of the server.
fn answered(transport: Transport<'_>, payload: &[u8], ipv6: bool, vlan: Option<u16>) -> Vec<u8> {
    let (client, server) = ends(ipv6);
    let builder = FrameBuilder::new(server, client, transport, Payload::Bytes(payload));
    builder.with_ethernet(link(SERVER, CLIENT, vlan)).to_vec()
}

fn tcp(ports: (u16, u16), seq: u32, ack: u32, flags: u8) -> TcpHeader<'static> {
    TcpHeader { ports, seq, ack, flags, window: WINDOW, urgent: 0, options: &[] }
}

#[test]
fn each_packet_has_the_reply_of_its_kind() {
    const SYN: u8 = TcpFlags::SYN;
    const ACK: u8 = TcpFlags::ACK;
    const FIN: u8 = TcpFlags::FIN;
    let (there, back) = ((40_000, 443), (443, 40_000));
    let text = b"how are you?";
    for (ipv6, vlan) in [(false, None), (true, None), (false, Some(7)), (true, Some(4_094))] {
        let segment = |flags, payload: &[u8]| {
            asked(Transport::Tcp(tcp(there, u32::MAX - 3, 50, flags)), payload, ipv6, vlan)
        };
        let answer = |seq, ack, flags, payload: &[u8]| {
            let header = tcp(back, seq, ack, flags);
            let options: &[u8] = if flags & SYN == 0 { &[] } else { &SYN_OPTIONS };
            let transport = Transport::Tcp(TcpHeader { options, ..header });
            Some(answered(transport, payload, ipv6, vlan))
        };
        let reply = |frame: &[u8]| reply(frame, LinkType::Ethernet);
        assert_eq!(reply(&segment(SYN, b"")), answer(3, u32::MAX - 2, SYN | ACK, b""));
        // Sequence numbers wrap.
        assert_eq!(reply(&segment(ACK, text)), answer(50, 8, ACK, text));
        assert_eq!(reply(&segment(ACK | TcpFlags::PSH, text)), answer(50, 8, ACK, text));
        assert_eq!(reply(&segment(FIN | ACK, b"")), answer(50, u32::MAX - 2, FIN | ACK, b""));
        assert_eq!(reply(&segment(FIN | ACK, text)), answer(50, 9, FIN | ACK, text));
        for flags in [ACK, TcpFlags::RST, TcpFlags::RST | ACK, SYN | ACK, FIN, 0] {
            assert_eq!(reply(&segment(flags, b"")), None, "{flags:#x}");
        }
        let udp = |ports| Transport::Udp { ports };
        for payload in [&text[..], b"", b"x"] {
            let frame = asked(udp(there), payload, ipv6, vlan);
            assert_eq!(reply(&frame), Some(answered(udp(back), payload, ipv6, vlan)));
        }
        let (request, answer) = if ipv6 { (128, 129) } else { (8, 0) };
        let echo = |kind, code| Transport::Icmp { kind, code, rest: 0x0102_0304 };
        let frame = asked(echo(request, 0), text, ipv6, vlan);
        assert_eq!(reply(&frame), Some(answered(echo(answer, 0), text, ipv6, vlan)));
        for (kind, code) in [(answer, 0), (request, 1), (if ipv6 { 8 } else { 128 }, 0), (3, 0)] {
            assert_eq!(reply(&asked(echo(kind, code), text, ipv6, vlan)), None, "{kind}");
        }
        assert_eq!(reply(&asked(Transport::Protocol(132), &[0; 20], ipv6, vlan)), None);
        assert_eq!(reply(&answered(udp(back), text, ipv6, vlan)), None, "to a client");
    }
}

#[test]
fn groups_and_fragments_have_no_reply() {
    let ports = (5_353, 5_353);
    let (client, server) = ends(false);
    let udp = Transport::Udp { ports };
    let group = FrameBuilder::new(client, [224, 0, 0, 251].into(), udp, Payload::Bytes(b"?"));
    let group = group.with_ethernet(link(CLIENT, SERVER, None)).to_vec();
    assert_eq!(reply(&group, LinkType::Ethernet), None);
    let whole = FrameBuilder::new(client, server, udp, Payload::Pattern(16));
    let first = FrameBuilder { fragment: Some((0, true)), ..whole }.to_vec();
    assert_eq!(reply(&first, LinkType::Raw), None);
    let back = FrameBuilder::new(server, client, udp, Payload::Pattern(16)).to_vec();
    assert_eq!(reply(&whole.to_vec(), LinkType::Raw), Some(back), "without a link header");
}

#[test]
fn a_packet_in_several_buffers_is_answered_whole() {
    let payload: Vec<u8> = (0..1_400_u32).map(|i| i as u8).collect();
    let udp = |ports| Transport::Udp { ports };
    let frame = asked(udp((9, 7)), &payload, true, None);
    let answer = answered(udp((7, 9)), &payload, true, None);
    assert_eq!(reply(&frame, LinkType::Ethernet), Some(answer));
}

/// Every connection of a mix of clients, with the replies in between: each side acknowledges what the other has sent
/// and nothing else, and closes.
#[test]
fn clients_of_the_mix_and_the_server_agree_on_what_was_sent() {
    let config = MixConfig {
        flows: 200,
        clients_only: true,
        ipv6_share: 0.3,
        longest: 2_000,
        packets: Some(60_000),
        ..MixConfig::default()
    };
    let mut mix = Mix::new(config).unwrap();
    let mut frame = Vec::new();
    // What client and server send next, by flow.
    let mut connections: HashMap<_, (u32, u32)> = HashMap::new();
    let (mut segments, mut closed, mut replies) = (0, 0, 0);
    while let Some(arrival) = mix.next(&mut frame) {
        let headers = Headers::parse_bytes(&frame, frame.len(), arrival.link).unwrap();
        let Tuple::Flow(key) = Tuple::of_bytes(&frame, &headers) else { panic!("a flow") };
        assert!(is_inside(key.first()), "{key:?} comes from a server");
        let reply = reply(&frame, arrival.link);
        replies += u32::from(reply.is_some());
        if headers.protocol != protocol::TCP {
            assert!(reply.is_some(), "{key:?}");
            continue;
        }
        segments += 1;
        let taken = |frame: &[u8], headers: &Headers| {
            let above = &frame[usize::from(headers.l4)..headers.end as usize];
            let header = TcpSegment::new(above).unwrap();
            let flags = header.flags().0;
            let controls = (flags & (TcpFlags::SYN | TcpFlags::FIN)).count_ones();
            let taken = (above.len() - header.header_len()) as u32 + controls;
            (header.seq(), header.ack(), flags, taken)
        };
        let (seq, ack, flags, sent) = taken(&frame, &headers);
        if flags & TcpFlags::SYN != 0 {
            connections.insert(key, (seq, 0));
        }
        let (client, server) = connections.get_mut(&key).expect("a SYN comes first");
        assert_eq!(seq, *client, "{key:?}");
        assert!(flags & TcpFlags::ACK == 0 || ack == *server, "{key:?}");
        *client = client.wrapping_add(sent);
        if flags & (TcpFlags::RST | TcpFlags::FIN) != 0 {
            closed += 1;
        }
        let Some(reply) = reply else {
            assert!(sent == 0, "{key:?}");
            continue;
        };
        let headers = Headers::parse_bytes(&reply, reply.len(), arrival.link).unwrap();
        let Tuple::Flow(back) = Tuple::of_bytes(&reply, &headers) else { panic!("a flow") };
        assert_eq!(back, key.reversed());
        let (seq, ack, flags, sent) = taken(&reply, &headers);
        assert_eq!(ack, *client, "{key:?}");
        if flags & TcpFlags::SYN != 0 {
            *server = seq;
        }
        assert_eq!(seq, *server, "{key:?}");
        *server = server.wrapping_add(sent);
    }
    assert!(segments > 20_000 && closed > 100, "{segments} segments, {closed} closed");
    assert!(replies > 20_000, "{replies}");
}

proptest! {
    /// Nothing that a chain may send makes the server panic, and what it answers has whole headers.
    #[test]
    fn any_frame_has_a_reply_that_is_none_or_whole(
        kind in 0_u8..4,
        payload in proptest::collection::vec(any::<u8>(), 0..80),
        flags in any::<u8>(),
        ipv6 in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 0_usize..40,
    ) {
        let transport = match kind {
            0 => Transport::Udp { ports: (1, 2) },
            1 => Transport::Icmp { kind: if ipv6 { 128 } else { 8 }, code: 0, rest: 1 },
            2 => Transport::Protocol(6),
            _ => Transport::Tcp(tcp((1, 2), 3, 4, flags)),
        };
        let mut frame = asked(transport, &payload, ipv6, None);
        for (index, byte) in changes {
            *index.get_mut(&mut frame) = byte;
        }
        frame.truncate(frame.len() - cut.min(frame.len() - 1));
        if let Some(answer) = reply(&frame, LinkType::Ethernet) {
            prop_assert!(answer.len() >= MIN_FRAME);
            prop_assert!(Headers::parse_bytes(&answer, answer.len(), LinkType::Ethernet).is_ok());
        }
    }
}
