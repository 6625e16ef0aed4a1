use super::*;
use crate::LinkType;
use crate::build::{FrameBuilder, Payload, TcpHeader, Transport};
use proptest::prelude::*;

fn tuple(frame: &[u8]) -> Tuple {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Raw).unwrap();
    Tuple::of_bytes(frame, &headers)
}

fn addresses(v6: bool) -> (IpAddr, IpAddr) {
    match v6 {
        false => ("10.0.0.1".parse().unwrap(), "192.0.2.9".parse().unwrap()),
        true => ("fd00::1".parse().unwrap(), "2001:db8::9".parse().unwrap()),
    }
}

use std::net::IpAddr;

#[test]
fn echo_requests_and_replies_share_a_key() {
    for (v6, request, reply) in [(false, 8, 0), (true, 128, 129)] {
        let (a, b) = addresses(v6);
        let icmp = |kind| Transport::Icmp { kind, code: 0, rest: 0x1234_0001 };
        let there = tuple(&FrameBuilder::new(a, b, icmp(request), Payload::Pattern(8)).to_vec());
        let back = tuple(&FrameBuilder::new(b, a, icmp(reply), Payload::Pattern(8)).to_vec());
        let (Tuple::Flow(there), Tuple::Flow(back)) = (there, back) else { panic!("flows") };
        assert_eq!(there, back.reversed());
        assert_eq!(there.first_port(), 0x1234);
    }
}

#[test]
fn errors_name_the_flow_they_are_about() {
    for (v6, kind) in [(false, 3), (true, 1)] {
        let (client, server) = addresses(v6);
        let tcp = Transport::Tcp(TcpHeader { ports: (40_000, 80), ..TcpHeader::default() });
        let original = FrameBuilder::new(client, server, tcp, Payload::Pattern(100)).to_vec();
        let Tuple::Flow(flow) = tuple(&original) else { panic!("a flow") };
        let router = if v6 { "2001:db8::1" } else { "192.0.2.1" }.parse().unwrap();
        // As little as IPv4 routers quote: the header and eight bytes.
        let quoted = &original[..if v6 { 48 } else { 28 }];
        let icmp = Transport::Icmp { kind, code: 1, rest: 0 };
        let error = FrameBuilder::new(router, client, icmp, Payload::Bytes(quoted)).to_vec();
        assert_eq!(tuple(&error), Tuple::IcmpError(flow.reversed()));
        // A quote that is too short, and an error about an error, belong to no flow.
        let short = FrameBuilder::new(router, client, icmp, Payload::Bytes(&quoted[..22])).to_vec();
        assert_eq!(tuple(&short), Tuple::None);
        let again = FrameBuilder::new(client, router, icmp, Payload::Bytes(&error)).to_vec();
        assert_eq!(tuple(&again), Tuple::None);
    }
}

#[test]
fn every_fragment_names_its_datagram() {
    for v6 in [false, true] {
        let (a, b) = addresses(v6);
        let udp = Transport::Protocol(17);
        let mut builder = FrameBuilder::new(a, b, udp, Payload::Pattern(64));
        builder.fragment = Some((128, true));
        builder.id = 77;
        let Tuple::Fragment(key, fragment) = tuple(&builder.to_vec()) else { panic!("a fragment") };
        assert_eq!((key.first(), key.second(), key.first_port()), (a, b, 0));
        assert_eq!(fragment, Fragment { id: 77, offset: 128, len: 64, more: true });
    }
}

#[test]
fn neighbour_discovery_and_gre() {
    let (a, b) = addresses(true);
    let nd = Transport::Icmp { kind: 135, code: 0, rest: 0 };
    assert_eq!(tuple(&FrameBuilder::new(a, b, nd, Payload::Pattern(16)).to_vec()), Tuple::None);
    let (a, b) = addresses(false);
    let gre = FrameBuilder::new(a, b, Transport::Protocol(47), Payload::Pattern(16)).to_vec();
    let Tuple::Flow(key) = tuple(&gre) else { panic!("a flow") };
    assert_eq!((key.protocol(), key.first_port(), key.second_port()), (47, 0, 0));
}

#[test]
fn padding_holds_no_ports() {
    let (a, b) = addresses(false);
    let mut first = FrameBuilder::new(a, b, Transport::Protocol(17), Payload::Bytes(&[0x12, 0x34]));
    first.fragment = Some((0, true));
    let mut frame = first.to_vec();
    frame.extend([0xab; 40]);
    let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
    assert!(headers.fragment.is_some());
    // As the owner of the datagram requests the ports of its first fragment.
    let whole = Headers { fragment: None, ..headers };
    assert_eq!(Tuple::of_bytes(&frame, &whole), Tuple::None);
}

proptest! {
    /// Whatever the bytes, parsing ends, and what it points to lies inside the frame.
    #[test]
    fn no_bytes_make_parsing_fail_badly(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        link in 0..5,
        shape in 0..4,
        cut in 0_usize..50,
    ) {
        let link = [LinkType::Ethernet, LinkType::Raw, LinkType::Null, LinkType::LinuxCooked,
            LinkType::LinuxCooked2][link as usize];
        // Random bytes are rarely IP: help them along.
        let at = if link == LinkType::Ethernet { 14 } else { 0 };
        if bytes.len() > at + 1 && shape > 0 {
            if at == 14 {
                let kind: u16 = [0x0800, 0x0800, 0x86dd, 0x8100][shape as usize];
                bytes[12..14].copy_from_slice(&kind.to_be_bytes());
            }
            bytes[at] = if shape == 2 { 0x60 } else { 0x45 };
        }
        let wire_len = bytes.len() + cut;
        if let Ok(headers) = Headers::parse_bytes(&bytes, wire_len, link) {
            prop_assert!(headers.l3 <= headers.l4);
            prop_assert!(u32::from(headers.l4) <= headers.end);
            prop_assert!(headers.end as usize <= wire_len);
            let _ = Tuple::of_bytes(&bytes, &headers);
        }
    }
}
