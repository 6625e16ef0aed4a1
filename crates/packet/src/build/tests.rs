use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::checksum::{Validity, evaluate};
use crate::wire::{Ipv4Packet, Ipv6Packet, TcpSegment};
use crate::{Fragment, Headers, LinkType, Network, Tuple};

fn parse(frame: &[u8], link: LinkType) -> Headers {
    Headers::parse_bytes(frame, frame.len(), link).unwrap()
}

fn v4() -> (IpAddr, IpAddr) {
    (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 9).into())
}

fn v6() -> (IpAddr, IpAddr) {
    (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from_bits(0xfd << 120 | 9).into())
}

/// The checksums of this query were computed apart from this code.
#[test]
fn a_datagram_is_what_it_should_be_byte_for_byte() {
    let (a, b) = v4();
    let udp = Transport::Udp { ports: (0x1234, 53) };
    let mut builder = FrameBuilder::new(a, b, udp, Payload::Bytes(b"hello"));
    builder.id = 0xbeef;
    let expected = [
        0x45, 0, 0, 33, 0xbe, 0xef, 0x40, 0, 64, 17, 0xaf, 0xd2, 10, 0, 0, 1, 192, 0, 2, 9, 0x12,
        0x34, 0, 53, 0, 13, 0xdd, 0x8e, b'h', b'e', b'l', b'l', b'o',
    ];
    assert_eq!(builder.to_vec(), expected);
}

#[test]
fn options_and_header_fields_are_written() {
    let (a, b) = v4();
    let builder = FrameBuilder {
        tos: 0xb8,
        ttl: 3,
        id: 0x1_2345,
        dont_fragment: false,
        options: &[0x94, 4, 0, 0],
        ..FrameBuilder::new(a, b, Transport::Udp { ports: (1, 2) }, Payload::Pattern(3))
    };
    let frame = builder.to_vec();
    let ip = Ipv4Packet::new(&frame).unwrap();
    assert!(ip.is_checksum_valid() && !ip.dont_fragment());
    assert_eq!(
        (ip.tos(), ip.ttl(), ip.id(), ip.options()),
        (0xb8, 3, 0x2345, &[0x94, 4, 0, 0][..])
    );
    assert_eq!(parse(&frame, LinkType::Raw).l4, 24);

    let (a, b) = v6();
    let builder = FrameBuilder {
        tos: 0xb8,
        ttl: 3,
        flow_label: 0xabcde,
        ..FrameBuilder::new(a, b, Transport::Udp { ports: (1, 2) }, Payload::Pattern(3))
    };
    let frame = builder.to_vec();
    let ip = Ipv6Packet::new(&frame).unwrap();
    assert_eq!((ip.traffic_class(), ip.hop_limit(), ip.flow_label()), (0xb8, 3, 0xabcde));
}

#[test]
fn tags_name_the_zone() {
    let (a, b) = v4();
    let mut builder =
        FrameBuilder::new(a, b, Transport::Udp { ports: (1, 2) }, Payload::Pattern(0));
    let zone = |builder: &FrameBuilder<'_>| {
        let frame = builder.to_vec();
        assert_eq!(frame.len(), MIN_FRAME);
        parse(&frame, LinkType::Ethernet).zone
    };
    for (service_vlan, vlan, expected) in
        [(None, None, 0), (None, Some(7), 7), (Some(9), None, 9), (Some(9), Some(7), 9 << 12 | 7)]
    {
        builder.ethernet = Some(Ethernet { source: [2; 6], destination: [4; 6], vlan });
        builder.service_vlan = service_vlan;
        assert_eq!(zone(&builder), expected);
    }
}

#[test]
fn fragments_say_which_part_they_carry() {
    for ((a, b), id) in [(v4(), 0x5678), (v6(), 0x1234_5678)] {
        let mut builder = FrameBuilder::new(a, b, Transport::Protocol(17), Payload::Pattern(64));
        builder.fragment = Some((1_480, true));
        builder.id = id;
        let frame = builder.to_vec();
        let fragment = Fragment { id, offset: 1_480, len: 64, more: true };
        assert_eq!(parse(&frame, LinkType::Raw).fragment, Some(fragment));
    }
}

#[test]
fn tcp_too_long_for_ip_has_no_length() {
    for ((a, b), network) in [(v4(), Network::Ipv4), (v6(), Network::Ipv6)] {
        let tcp = Transport::Tcp(TcpHeader { ports: (1, 2), ..TcpHeader::default() });
        let frame = FrameBuilder::new(a, b, tcp, Payload::Pattern(80_000)).to_vec();
        let headers = parse(&frame, LinkType::Raw);
        assert_eq!((headers.network, headers.end as usize), (network, frame.len()));
    }
}

#[test]
fn padding_is_zeroed() {
    let (a, b) = v4();
    let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
    let builder = FrameBuilder::new(a, b, Transport::Udp { ports: (1, 2) }, Payload::Pattern(1))
        .with_ethernet(ethernet);
    let mut out = [0xff; 64];
    assert_eq!(builder.write(&mut out), MIN_FRAME);
    assert_eq!(out[43..], [&[0; 17][..], &[0xff; 4]].concat());
}

proptest! {
    #![proptest_config(crate::cases::config())]

    /// What is built parses back to the same endpoints, with right checksums.
    #[test]
    fn frames_read_back(
        is_v6: bool,
        (a, b) in any::<(u128, u128)>(),
        ports: (u16, u16),
        kind in 0..3,
        payload in prop::collection::vec(any::<u8>(), 0..100),
        options in 0_usize..=10,
        vlan: bool,
    ) {
        let address = |bits: u128| -> IpAddr {
            match is_v6 {
                true => Ipv6Addr::from_bits(bits).into(),
                false => Ipv4Addr::from_bits(bits as u32).into(),
            }
        };
        let options = &[1; 40][..options * 4];
        let transport = match kind {
            0 => Transport::Tcp(TcpHeader { ports, seq: 7, options, ..TcpHeader::default() }),
            1 => Transport::Udp { ports },
            _ => Transport::Icmp {
                kind: if is_v6 { 128 } else { 8 },
                code: 0,
                rest: u32::from(ports.0) << 16,
            },
        };
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: vlan.then_some(7) };
        let builder =
            FrameBuilder::new(address(a), address(b), transport, Payload::Bytes(&payload));
        let frame = FrameBuilder { options: if is_v6 { &[] } else { options }, ..builder }
            .with_ethernet(ethernet)
            .to_vec();
        let headers = parse(&frame, LinkType::Ethernet);
        let Tuple::Flow(key) = Tuple::of_bytes(&frame, &headers) else { panic!("a flow") };
        prop_assert_eq!((key.first(), key.second()), (address(a), address(b)));
        let expected = if kind == 2 { (ports.0, ports.0) } else { ports };
        prop_assert_eq!((key.first_port(), key.second_port()), expected);
        prop_assert_eq!(key.zone(), if vlan { 7 } else { 0 });
        if !is_v6 {
            let ip = Ipv4Packet::new(&frame[usize::from(headers.l3)..]).unwrap();
            prop_assert!(ip.is_checksum_valid());
        }
        let body = &frame[usize::from(headers.l4)..headers.end as usize];
        let header = if kind == 0 { TcpSegment::new(body).unwrap().header_len() } else { 8 };
        prop_assert_eq!(&body[header..], &payload);
        // Any field but zero, which states that there is none, leaves it to the checksum.
        let validity = evaluate(address(a), address(b), headers.protocol, 1, [body]);
        prop_assert_eq!(validity, Validity::Valid);
    }
}
