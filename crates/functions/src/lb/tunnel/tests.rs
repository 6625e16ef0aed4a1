//! Outer headers, byte for byte. The expected bytes were made by another program (scapy).

use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{LinkType, Mempool, MempoolConfig, PoolCache};

use super::fragments::pieces;
use super::returned::TooBig;
use super::*;

const ENTROPY: u32 = 0x89ab_cdef;

fn config() -> TunnelConfig {
    let sources = ["172.16.0.0/16", "fd00:7::/64"].map(|prefix| prefix.parse().unwrap());
    TunnelConfig { sources: sources.to_vec(), ..TunnelConfig::default() }
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// A SYN over IPv4 that may not be fragmented, and a datagram over IPv6.
const SYN: &str = "45 2e 00 28 12 34 40 00 39 06 c9 28 c6 33 64 07 cb 00 71 0a \
                   9c 40 01 bb 00 00 03 e8 00 00 00 00 50 02 ff ff a7 b9 00 00";
const DATAGRAM: &str = "62 e1 23 45 00 0f 11 39 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 07 \
                        20 01 0d b8 ff ff 00 00 00 00 00 00 00 00 00 10 \
                        9c 40 01 bb 00 0f 39 b2 30 31 32 33 34 35 36";

fn outer(packet: &[u8], wrapper: Wrapper, backend: &str) -> Outer {
    let headers = Headers::parse_bytes(packet, packet.len(), LinkType::Raw).unwrap();
    let inner = Inner::of(packet, &headers).unwrap();
    let path = Path { backend: backend.parse().unwrap(), entropy: ENTROPY, id: 0x77 };
    let sum = || {
        let mut sum = Sum::default();
        sum.add(packet);
        sum
    };
    Outer::new(&config(), wrapper, &inner, &path, sum).unwrap()
}

#[test]
fn one_more_ip_header() {
    let v4 = outer(&bytes(SYN), Wrapper::Ip, "10.0.0.11");
    let expected = "45 2e 00 3c 00 00 40 00 40 04 a3 2c ac 10 e1 48 0a 00 00 0b";
    assert_eq!(v4.bytes(), bytes(expected));
    let v6 = outer(&bytes(DATAGRAM), Wrapper::Ip, "fd00::11");
    let expected = "62 eb cd ef 00 37 29 40 fd 00 00 07 00 00 00 00 00 00 00 00 89 ab cd ef \
                    fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 11";
    assert_eq!(v6.bytes(), bytes(expected));
}

#[test]
fn udp_between_the_packet_and_its_outer_header() {
    let v4 = outer(&bytes(SYN), Wrapper::Gue(6_080), "10.0.0.11");
    let expected = "45 2e 00 44 00 00 40 00 40 11 a3 17 ac 10 e1 48 0a 00 00 0b \
                    c9 ab 17 c0 00 30 00 00";
    assert_eq!(v4.bytes(), bytes(expected));
    // With a checksum over all of it.
    let v6 = outer(&bytes(DATAGRAM), Wrapper::Gue(6_080), "fd00::11");
    let expected = "62 eb cd ef 00 3f 11 40 fd 00 00 07 00 00 00 00 00 00 00 00 89 ab cd ef \
                    fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 11 c9 ab 17 c0 00 3f 35 01";
    assert_eq!(v6.bytes(), bytes(expected));
}

#[test]
fn a_packet_that_may_be_fragmented_leaves_in_fragments() {
    let data: Vec<u8> = (0..1_472).map(|n| n as u8).collect();
    let (from, to) = ("198.51.100.7".parse().unwrap(), "203.0.113.10".parse().unwrap());
    let udp = Transport::Udp { ports: (40_000, 53) };
    let packet = FrameBuilder {
        dont_fragment: false,
        ttl: 57,
        id: 0x1234,
        ..FrameBuilder::new(from, to, udp, Payload::Bytes(&data))
    };
    let packet = packet.to_vec();
    let outer = outer(&packet, Wrapper::Ip, "10.0.0.11");
    // Its identification, and no flags: what may be fragmented inside may be outside (RFC 2003, section 3.1).
    assert_eq!(outer.bytes()[4..8], [0, 0x77, 0, 0]);
    let expected = [
        (1_500, "45 00 05 dc 00 77 20 00 40 04 bd 43 ac 10 e1 48 0a 00 00 0b"),
        (40, "45 00 00 28 00 77 00 b9 40 04 e2 3e ac 10 e1 48 0a 00 00 0b"),
    ];
    let mut whole = Vec::new();
    let mut count = 0;
    for (piece, (len, header)) in pieces(&outer, packet.len(), 1_500).zip(expected) {
        let mut out = [0; 1_500];
        // In parts of any length.
        let parts = packet.chunks(37);
        assert_eq!(piece.write(&outer, parts, &mut out), Some(len));
        assert_eq!(out[..20], bytes(header));
        whole.extend_from_slice(&out[20..len]);
        count += 1;
    }
    assert_eq!((count, whole), (2, packet));
}

#[test]
fn pieces_of_udp_start_with_its_header() {
    let packet = bytes(SYN);
    let outer = outer(&packet, Wrapper::Gue(6_080), "10.0.0.11");
    let mut whole = Vec::new();
    for piece in pieces(&outer, packet.len(), 50) {
        let mut out = [0; 50];
        let len = piece.write(&outer, std::iter::once(&packet[..]), &mut out).unwrap();
        assert!(len <= 50 && checksum::of(&out[..20]) == 0);
        whole.extend_from_slice(&out[20..len]);
    }
    assert_eq!(whole, [&outer.bytes()[20..], &packet].concat());
}

#[test]
fn sources_are_hosts_of_their_prefix() {
    let source = |prefix: &str, entropy| source_of(prefix.parse().unwrap(), entropy).to_string();
    assert_eq!(source("10.9.0.0/30", 0), "10.9.0.1");
    assert_eq!(source("10.9.0.0/30", 1), "10.9.0.2");
    assert_eq!(source("10.9.0.0/30", 2), "10.9.0.1");
    assert_eq!(source("10.9.0.0/31", 3), "10.9.0.1");
    assert_eq!(source("10.9.0.5/32", 3), "10.9.0.5");
    assert_eq!(source("fd00::/64", 0), "fd00::1");
    assert_eq!(source("fd00::/64", u32::MAX), "fd00::ffff:ffff");
    assert_eq!(source("fd00::/127", u32::MAX), "fd00::1");
    let many: std::collections::HashSet<_> =
        (0..10_000_u32).map(|n| source("10.9.0.0/24", n.wrapping_mul(0x9e37_79b1))).collect();
    assert_eq!(many.len(), 254);
}

#[test]
fn without_a_source_of_the_family_there_is_no_header() {
    let packet = bytes(SYN);
    let headers = Headers::parse_bytes(&packet, packet.len(), LinkType::Raw).unwrap();
    let inner = Inner::of(&packet, &headers).unwrap();
    let path = Path { backend: "10.0.0.11".parse().unwrap(), entropy: 1, id: 1 };
    let config = TunnelConfig { sources: Vec::new(), ..TunnelConfig::default() };
    assert_eq!(Outer::new(&config, Wrapper::Ip, &inner, &path, Sum::default), None);
}

#[test]
fn a_packet_is_read_from_its_ip_header_to_its_end_across_segments() {
    let pool = Mempool::new(&MempoolConfig { buffers: 8, data_room: 128, headroom: 64 }).unwrap();
    let tcp = Transport::Tcp(TcpHeader { ports: (1, 2), ..TcpHeader::default() });
    let (from, to) = ("198.51.100.7".parse().unwrap(), "203.0.113.10".parse().unwrap());
    let packet = FrameBuilder::new(from, to, tcp, Payload::Pattern(401)).to_vec();
    let frame = [&[0; 12][..], &[8, 0], &packet, &[0xee; 9]].concat();
    let mbuf = PoolCache::new(pool).alloc_from(&frame).unwrap();
    let headers = Headers::parse(&mbuf).unwrap();
    assert!(mbuf.is_chained());
    let read: Vec<u8> = parts(&mbuf, &headers).flatten().copied().collect();
    assert_eq!(read, packet);
    assert_eq!(sum_of(&mbuf, &headers).checksum(), checksum::of(&packet));
}

/// An ICMP error that quotes `len` bytes of an outer packet, as the client is told of it.
fn told(
    inner: &[u8],
    wrapper: Wrapper,
    backend: &str,
    reported: u32,
    len: usize,
) -> Option<Vec<u8>> {
    let outer = outer(inner, wrapper, backend);
    let whole = [outer.bytes(), inner].concat();
    let quoted = Payload::Bytes(&whole[..len.min(whole.len())]);
    let (kind, code, router) =
        if backend.contains(':') { (2, 0, "fd00::99") } else { (3, 4, "10.0.0.99") };
    let transport = Transport::Icmp { kind, code, rest: reported };
    let tunnel_end = match outer.bytes()[0] >> 4 {
        4 => IpAddr::from(*outer.bytes()[12..].first_chunk::<4>().unwrap()),
        _ => IpAddr::from(*outer.bytes()[8..].first_chunk::<16>().unwrap()),
    };
    let error = FrameBuilder::new(router.parse().unwrap(), tunnel_end, transport, quoted).to_vec();
    let headers = Headers::parse_bytes(&error, error.len(), LinkType::Raw).unwrap();
    let config = config();
    let mut out = [0; 1_280];
    let told = TooBig::of(&error, &headers, &config)?;
    let len = told.write(&mut out)?;
    Some(out[..len].to_vec())
}

#[test]
fn the_client_is_told_what_fits_into_the_tunnel() {
    let (syn, datagram) = (bytes(SYN), bytes(DATAGRAM));
    for (wrapper, overhead) in [(Wrapper::Ip, 20), (Wrapper::Gue(6_080), 28)] {
        let error = told(&syn, wrapper, "10.0.0.11", 1_400, 548).unwrap();
        // From the service's address to the client, with the client's packet.
        assert_eq!(
            (&error[12..16], &error[16..20]),
            (&[203, 0, 113, 10][..], &[198, 51, 100, 7][..])
        );
        assert_eq!((error[20], error[21]), (3, 4));
        assert_eq!(error[24..28], (1_400_u32 - overhead).to_be_bytes());
        assert_eq!(error[28..], syn);
        assert_eq!(checksum::of(&error[20..]), 0);
        let error = told(&datagram, wrapper, "fd00::11", 1_400, 1_200).unwrap();
        assert_eq!((error[40], error[41]), (2, 0));
        assert_eq!(error[44..48], (1_380 - overhead).to_be_bytes());
        assert_eq!(error[48..], datagram);
    }
    // Never less than what every path carries.
    let error = told(&datagram, Wrapper::Ip, "fd00::11", 100, 1_200).unwrap();
    assert_eq!(error[44..48], 1_280_u32.to_be_bytes());
    // Eight bytes behind the outer header (RFC 792) do not say whose packet it was.
    assert_eq!(told(&syn, Wrapper::Ip, "10.0.0.11", 1_400, 28), None);
    // To another port it is not of a tunnel.
    assert_eq!(told(&syn, Wrapper::Gue(53), "10.0.0.11", 1_400, 548), None);
}
