use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::wire::{End, RewriteError, TcpFlags, protocol};
use rheostat_packet::{Headers, LinkType, Mbuf, Mempool, MempoolConfig, PoolCache, Tuple};
use rheostat_run::{PacketInfo, PacketKind, Placement};

use super::*;

/// Calls `see` with the packet that has these bytes, which a capture may have cut short, and returns its bytes thereafter.
fn with_packet(
    frame: &[u8],
    link: LinkType,
    wire_len: usize,
    see: impl FnOnce(&mut Packet<'_>),
) -> Vec<u8> {
    let config = MempoolConfig { buffers: 2, ..MempoolConfig::default() };
    let mut pool = PoolCache::new(Mempool::new(&config).expect("memory for two buffers"));
    let mut mbuf = pool.alloc_from(frame).expect("a buffer");
    mbuf.set_link(link);
    mbuf.set_wire_len(wire_len as u32);
    let info = info_of(&mbuf);
    see(&mut Packet::new(&mut mbuf, &info));
    let bytes = mbuf.data().to_vec();
    pool.free(mbuf);
    bytes
}

fn info_of(mbuf: &Mbuf) -> PacketInfo {
    let headers = Headers::parse(mbuf).expect("headers that can be read");
    let (key, kind) = match Tuple::of(mbuf, &headers) {
        Tuple::Flow(key) | Tuple::Fragment(key, _) => (key, PacketKind::Flow),
        Tuple::IcmpError(key) => (key, PacketKind::IcmpError),
        Tuple::None => (FlowKey::NONE, PacketKind::NonFlow),
    };
    PacketInfo::of(headers, Time::ZERO, &Placement { key, kind, ..Placement::NONE })
}

/// A whole packet of IP without a link header.
fn with_raw(frame: &[u8], see: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
    with_packet(frame, LinkType::Raw, frame.len(), see)
}

fn address(is_v6: bool, bits: u128) -> IpAddr {
    if is_v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
}

fn pair(is_v6: bool) -> (IpAddr, IpAddr) {
    (address(is_v6, 1), address(is_v6, 2))
}

/// What is above IP: TCP with this maximum segment size, at an even or at an odd place, UDP, or a query of ICMP.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Tcp { is_odd: bool },
    Udp,
    Query,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        any::<bool>().prop_map(|is_odd| Kind::Tcp { is_odd }),
        Just(Kind::Udp),
        Just(Kind::Query),
    ]
}

/// Every field that has a setter.
#[derive(Clone, Copy, Debug)]
struct Fields {
    addresses: (u128, u128),
    ports: (u16, u16),
    hops: u8,
    dscp: u8,
    ecn: u8,
    mss: u16,
}

fn fields() -> impl Strategy<Value = Fields> {
    let ip = (any::<(u128, u128)>(), any::<u8>(), 0_u8..64, 0_u8..4);
    (ip, any::<(u16, u16)>(), any::<u16>()).prop_map(
        |((addresses, hops, dscp, ecn), ports, mss)| Fields {
            addresses,
            ports,
            hops,
            dscp,
            ecn,
            mss,
        },
    )
}

/// The packet with these fields, with all checksums computed from its bytes.
fn built(fields: &Fields, kind: Kind, is_v6: bool, vlan: Option<u16>, payload: usize) -> Vec<u8> {
    let [high, low] = fields.mss.to_be_bytes();
    let options = match kind {
        Kind::Tcp { is_odd: true } => [1, 2, 4, high, low, 1, 1, 0],
        _ => [2, 4, high, low, 1, 3, 3, 7],
    };
    let transport = match kind {
        Kind::Tcp { .. } => Transport::Tcp(TcpHeader {
            ports: fields.ports,
            flags: TcpFlags::SYN,
            options: &options,
            ..TcpHeader::default()
        }),
        Kind::Udp => Transport::Udp { ports: fields.ports },
        Kind::Query => Transport::Icmp {
            kind: if is_v6 { 128 } else { 8 },
            code: 0,
            rest: u32::from(fields.ports.1) << 16 | 5,
        },
    };
    let (source, destination) = fields.addresses;
    let frame = FrameBuilder::new(
        address(is_v6, source),
        address(is_v6, destination),
        transport,
        Payload::Pattern(payload),
    );
    FrameBuilder { tos: fields.dscp << 2 | fields.ecn, ttl: fields.hops, ..frame }
        .with_ethernet(Ethernet { source: [2; 6], destination: [4; 6], vlan })
        .to_vec()
}

fn set_all(packet: &mut Packet<'_>, fields: &Fields, kind: Kind, is_v6: bool) {
    packet.set_source(address(is_v6, fields.addresses.0)).unwrap();
    packet.set_destination(address(is_v6, fields.addresses.1)).unwrap();
    packet.set_source_port(fields.ports.0).unwrap();
    packet.set_destination_port(fields.ports.1).unwrap();
    packet.set_hop_limit(fields.hops).unwrap();
    packet.set_dscp(fields.dscp).unwrap();
    packet.set_ecn(fields.ecn).unwrap();
    let mss = packet.set_mss(fields.mss);
    assert_eq!(mss.is_ok(), matches!(kind, Kind::Tcp { .. }), "{mss:?}");
}

proptest! {
    /// A packet whose fields were set is the packet that has them, with checksums computed from its bytes.
    #[test]
    fn setting_fields_is_building_anew(
        (old, new) in (fields(), fields()),
        kind in kind(),
        is_v6: bool,
        vlan in prop::option::of(0_u16..4_096),
        payload in 0_usize..64,
    ) {
        let frame = built(&old, kind, is_v6, vlan, payload);
        let mut views = None;
        let set = with_packet(&frame, LinkType::Ethernet, frame.len(), |packet| {
            set_all(packet, &new, kind, is_v6);
            let valid = evaluate_packet(packet.mbuf(), packet.headers());
            views = Some((valid, packet.hop_limit(), packet.traffic_class(), packet.is_rewritten()));
        });
        prop_assert_eq!(set, built(&new, kind, is_v6, vlan, payload));
        let class = new.dscp << 2 | new.ecn;
        prop_assert_eq!(views, Some((Some(Validity::Valid), Some(new.hops), Some(class), true)));
    }

    /// Both ends, with and without a port, are set as by the setters of one field.
    #[test]
    fn an_endpoint_is_set_as_its_fields_are(
        (old, new) in (fields(), fields()),
        is_udp: bool,
        is_v6: bool,
        has_port: bool,
    ) {
        let kind = if is_udp { Kind::Udp } else { Kind::Tcp { is_odd: false } };
        let frame = built(&old, kind, is_v6, None, 33);
        let port = |port: u16| has_port.then_some(port);
        let set = with_packet(&frame, LinkType::Ethernet, frame.len(), |packet| {
            let (from, to) = new.addresses;
            packet.set_endpoint(End::Source, address(is_v6, from), port(new.ports.0)).unwrap();
            packet.set_endpoint(End::Destination, address(is_v6, to), port(new.ports.1)).unwrap();
        });
        let ports = if has_port { new.ports } else { old.ports };
        let expected = Fields { addresses: new.addresses, ports, ..old };
        prop_assert_eq!(set, built(&expected, kind, is_v6, None, 33));
    }

    /// What a handler set is undone from the log when its transaction is.
    #[test]
    fn setters_can_be_undone(
        (old, new) in (fields(), fields()),
        kind in kind(),
        is_v6: bool,
    ) {
        let frame = built(&old, kind, is_v6, None, 20);
        let config = MempoolConfig { buffers: 2, ..MempoolConfig::default() };
        let mut pool = PoolCache::new(Mempool::new(&config).expect("memory for two buffers"));
        let mut mbuf = pool.alloc_from(&frame).expect("a buffer");
        let info = info_of(&mbuf);
        let mut log = PacketLog::default();
        set_all(&mut Packet::logged(&mut mbuf, &info, &mut log), &new, kind, is_v6);
        prop_assert_eq!(mbuf.data(), built(&new, kind, is_v6, None, 20));
        log.undo(std::slice::from_mut(&mut mbuf));
        prop_assert_eq!(mbuf.data(), &frame[..]);
        pool.free(mbuf);
    }

    /// Whatever bytes a packet has, views and setters do not panic, and views stay within the packet.
    #[test]
    fn arbitrary_bytes_do_no_harm(
        fields in fields(),
        kind in kind(),
        is_v6: bool,
        changes in prop::collection::vec((0_usize..100, any::<u8>()), 0..4),
        cut in 0_usize..100,
    ) {
        let mut frame = built(&fields, kind, is_v6, None, 9);
        for (at, value) in changes {
            let at = at % frame.len();
            frame[at] = value;
        }
        let wire_len = frame.len();
        frame.truncate(wire_len.saturating_sub(cut).max(14));
        if Headers::parse_bytes(&frame, wire_len, LinkType::Ethernet).is_err() {
            return Ok(());
        }
        with_packet(&frame, LinkType::Ethernet, wire_len, |packet| {
            assert!(packet.payload().is_none_or(|payload| payload.len() <= packet.len()));
            assert!(packet.tcp().is_none() || packet.udp().is_none());
            let _ = (packet.set_mss(1), packet.set_hop_limit(1), packet.set_dscp(1));
            let _ = (packet.set_source_port(1), packet.set_destination(address(is_v6, 1)));
        });
    }
}

#[test]
fn views_are_of_their_own_protocol() {
    for is_v6 in [false, true] {
        let (a, b) = pair(is_v6);
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        let tcp = TcpHeader { ports: (7, 80), flags, ..TcpHeader::default() };
        let frame = FrameBuilder::new(a, b, Transport::Tcp(tcp), Payload::Bytes(b"abc")).to_vec();
        // Link padding is no payload.
        with_raw(&[&frame[..], &[9; 5]].concat(), |packet| {
            let flags = packet.tcp().unwrap().flags();
            assert!(flags.syn() && flags.ack() && !flags.opens() && !flags.rst() && !flags.fin());
            assert_eq!(packet.tcp().unwrap().mss(), None);
            assert_eq!(packet.payload(), Some(&b"abc"[..]));
            assert!(packet.udp().is_none());
            assert_eq!(packet.set_mss(1_000), Err(RewriteError::NoMss));
        });
        let udp = Transport::Udp { ports: (7, 53) };
        let mut frame = FrameBuilder::new(a, b, udp, Payload::Bytes(b"abcde")).to_vec();
        with_raw(&frame, |packet| {
            assert_eq!(packet.udp().unwrap().destination_port(), 53);
            assert_eq!(packet.payload(), Some(&b"abcde"[..]));
            assert!(packet.tcp().is_none());
        });
        // Bytes behind the length that the datagram states do not belong to it.
        let length = frame.len() - 5 - 8 + 4;
        frame[length..][..2].copy_from_slice(&10_u16.to_be_bytes());
        with_raw(&frame, |packet| assert_eq!(packet.payload(), Some(&b"ab"[..])));
        let other = FrameBuilder::new(a, b, Transport::Protocol(47), Payload::Pattern(30)).to_vec();
        with_raw(&other, |packet| {
            assert!(packet.tcp().is_none() && packet.udp().is_none());
            assert_eq!(packet.payload(), None);
            assert_eq!(packet.set_source_port(1), Err(RewriteError::NoPorts(47)));
        });
    }
}

#[test]
fn fragments_and_cut_headers_have_no_views() {
    for is_v6 in [false, true] {
        let (a, b) = pair(is_v6);
        for number in [protocol::TCP, protocol::UDP] {
            let transport = Transport::Protocol(number);
            let later = FrameBuilder::new(a, b, transport, Payload::Pattern(40));
            let later = FrameBuilder { fragment: Some((64, false)), ..later };
            with_raw(&later.to_vec(), |packet| {
                assert!(packet.tcp().is_none() && packet.udp().is_none());
                assert_eq!(packet.payload(), None);
                assert_eq!(packet.set_source_port(1), Err(RewriteError::NoPorts(number)));
                assert_eq!(packet.set_endpoint(End::Source, b, Some(1)), Ok(()));
                assert_eq!(packet.addresses().map(|ends| ends.first()), Some(b));
            });
        }
        // The first fragment has the header, but not the whole payload.
        let tcp = TcpHeader { ports: (7, 80), flags: TcpFlags::SYN, ..TcpHeader::default() };
        let first = FrameBuilder::new(a, b, Transport::Tcp(tcp), Payload::Pattern(44));
        let first = FrameBuilder { fragment: Some((0, true)), ..first };
        with_raw(&first.to_vec(), |packet| {
            assert!(packet.tcp().is_some_and(|tcp| tcp.flags().opens()));
            assert_eq!(packet.payload(), None);
        });
        // A capture has the ports, and no more of the header.
        for transport in [Transport::Tcp(tcp), Transport::Udp { ports: (7, 53) }] {
            let whole = FrameBuilder::new(a, b, transport, Payload::Pattern(20)).to_vec();
            let l4 = if is_v6 { 40 } else { 20 };
            let mut before = None;
            let cut = &whole[..l4 + 6];
            let after = with_packet(cut, LinkType::Raw, whole.len(), |packet| {
                before = Some(packet.data().to_vec());
                assert!(packet.tcp().is_none() && packet.udp().is_none());
                assert_eq!(packet.payload(), None);
                assert!(matches!(packet.set_source_port(1), Err(RewriteError::Malformed(_))));
                assert_eq!(packet.set_mss(1), Err(RewriteError::NoMss));
            });
            assert_eq!(Some(after), before, "a refused change changes nothing");
        }
    }
}

#[test]
fn a_datagram_without_checksum_keeps_none() {
    let (a, b) = pair(false);
    let udp = Transport::Udp { ports: (7, 53) };
    let mut frame = FrameBuilder::new(a, b, udp, Payload::Pattern(9)).to_vec();
    frame[26..28].fill(0);
    let set = with_raw(&frame, |packet| {
        packet.set_source(address(false, 0x0102_0304)).unwrap();
        packet.set_destination_port(77).unwrap();
        packet.set_hop_limit(3).unwrap();
    });
    assert_eq!(set[26..28], [0, 0]);
    assert_eq!((&set[12..16], &set[22..24], set[8]), (&[1, 2, 3, 4][..], &[0, 77][..], 3));
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let (a, b) = pair(true);
    let udp = Transport::Udp { ports: (7, 53) };
    let frame = FrameBuilder::new(a, b, udp, Payload::Pattern(9)).to_vec();
    let set = with_raw(&frame, |packet| {
        assert_eq!(packet.set_dscp(64), Err(RewriteError::TooLarge(64)));
        assert_eq!(packet.set_ecn(4), Err(RewriteError::TooLarge(4)));
        assert_eq!(packet.set_source(address(false, 1)), Err(RewriteError::Family));
    });
    assert_eq!(set, frame);
    let mut arp = vec![0; 42];
    arp[12..14].copy_from_slice(&0x0806_u16.to_be_bytes());
    arp[14..20].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    let set = with_packet(&arp, LinkType::Ethernet, arp.len(), |packet| {
        assert_eq!(packet.set_hop_limit(1), Err(RewriteError::NotIp));
        assert_eq!(packet.set_traffic_class(1), Err(RewriteError::NotIp));
        assert_eq!(packet.set_source(a), Err(RewriteError::NotIp));
    });
    assert_eq!(set, arp);
}
