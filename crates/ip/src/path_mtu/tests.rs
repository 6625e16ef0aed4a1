use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::protocol::TCP;

use super::*;

fn ends(v6: bool) -> [IpAddr; 3] {
    let ends = if v6 {
        ["2001:db8::1", "2001:db8::2", "2001:db8::ff"]
    } else {
        ["192.0.2.1", "192.0.2.2", "192.0.2.254"]
    };
    ends.map(|address| address.parse().unwrap())
}

/// The error of a router about a segment of ours with 1,440 bytes of data.
fn report(v6: bool, mtu: u32, quoted: usize) -> Vec<u8> {
    let [us, peer, router] = ends(v6);
    let tcp = TcpHeader { ports: (40_000, 80), seq: 77_000, ..TcpHeader::default() };
    let segment =
        FrameBuilder::new(us, peer, Transport::Tcp(tcp), Payload::Pattern(1_440)).to_vec();
    let (kind, code) = if v6 { (2, 0) } else { (3, 4) };
    let error = Transport::Icmp { kind, code, rest: mtu };
    let quote = Payload::Bytes(&segment[..quoted.min(segment.len())]);
    FrameBuilder::new(router, us, error, quote).to_vec()
}

#[test]
fn a_report_names_the_segment_and_what_the_link_carries() {
    for (v6, length) in [(false, 1_480), (true, 1_500)] {
        let [us, peer, _] = ends(v6);
        let found = TooBig::parse(&report(v6, 1_400, if v6 { 48 } else { 28 })).unwrap();
        let expected = TooBig {
            source: (us, 40_000),
            destination: (peer, 80),
            protocol: TCP,
            sequence: 77_000,
            mtu: 1_400,
            length,
        };
        assert_eq!((found, found.path_mtu()), (expected, Some(1_400)));
    }
}

#[test]
fn what_is_no_whole_report_is_none() {
    for v6 in [false, true] {
        let right = report(v6, 1_400, 500);
        assert!(TooBig::parse(&right).is_some());
        assert_eq!(TooBig::parse(&report(v6, 1_400, if v6 { 47 } else { 27 })), None, "no ports");
        let mut wrong = right.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert_eq!(TooBig::parse(&wrong), None, "a wrong checksum");
        for len in 0..right.len() {
            let _ = TooBig::parse(&right[..len]);
        }
    }
    let [us, peer, _] = ends(false);
    let other = Transport::Icmp { kind: 3, code: 3, rest: 1_400 };
    let other = FrameBuilder::new(peer, us, other, Payload::Bytes(&[69; 60])).to_vec();
    assert_eq!(TooBig::parse(&other), None);
}

#[test]
fn a_router_that_does_not_say_its_mtu_means_the_next_usual_one() {
    let report = TooBig::parse(&report(false, 0, 100)).unwrap();
    assert_eq!(report.path_mtu(), Some(1_006));
    assert_eq!(TooBig { length: 9_000, ..report }.path_mtu(), Some(8_166));
    assert_eq!(TooBig { length: 600, ..report }.path_mtu(), Some(MIN_V4));
}

#[test]
fn no_path_is_said_to_carry_less_than_the_least() {
    let four = TooBig::parse(&report(false, 68, 100)).unwrap();
    let six = TooBig::parse(&report(true, 1_000, 100)).unwrap();
    assert_eq!((four.path_mtu(), six.path_mtu()), (Some(552), Some(1_280)));
    assert_eq!(TooBig { length: 552, ..four }.path_mtu(), None);
    assert_eq!(TooBig { mtu: 1_480, ..four }.path_mtu(), None, "the packet would have passed");
}

#[test]
fn a_path_is_known_until_its_report_is_old_and_reports_only_lower_it() {
    let mut paths = PathMtus::default();
    let first = TooBig::parse(&report(false, 1_400, 100)).unwrap();
    let peer = first.destination.0;
    let at = Time::from_secs;
    assert_eq!(paths.note(&first, at(0)), Some(1_400));
    assert_eq!(paths.note(&TooBig { mtu: 1_450, ..first }, at(1)), None);
    assert_eq!(paths.note(&TooBig { mtu: 1_300, ..first }, at(2)), Some(1_300));
    assert_eq!((paths.get(peer, at(601)), paths.get(peer, at(602))), (Some(1_300), None));
    assert_eq!(paths.get(ends(false)[0], at(2)), None);
    assert_eq!(paths.note(&TooBig { mtu: 1_450, ..first }, at(700)), Some(1_450));
    assert_eq!(paths.len(), 1);
}

#[test]
fn destinations_are_bounded_and_the_oldest_are_forgotten() {
    let config = PathMtuConfig { destinations: 10, ..PathMtuConfig::default() };
    let mut paths = PathMtus::new(config);
    let report = TooBig::parse(&report(false, 1_400, 100)).unwrap();
    let to = |n: u8| (IpAddr::from([10, 0, 0, n]), 80);
    for n in 0..100 {
        for mtu in [1_400, 1_300, 1_200] {
            paths.note(&TooBig { destination: to(n), mtu, ..report }, Time::from_secs(n.into()));
        }
        assert!(paths.len() <= 10 && paths.order.len() <= 24);
    }
    let known = (0..100).filter(|n| paths.get(to(*n).0, Time::from_secs(100)).is_some());
    assert_eq!(known.collect::<Vec<_>>(), (90..100).collect::<Vec<_>>());
}
