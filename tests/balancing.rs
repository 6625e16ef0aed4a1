//! Whole runs of a load balancer: every flow has one backend and keeps it, backends have their shares,
//! answers find their way back, and nothing of it depends on the number of lanes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rheostat::harness::HarnessReport;
use rheostat::{DropReason, Harness, Side, Stage, StateLayout, Time};
use rheostat_functions::Lb;
use rheostat_functions::firewall::PortRange;
use rheostat_functions::lb::{
    BackendConfig, Health, LbConfig, Mode, OnDown, ServiceConfig, TunnelConfig,
};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::{Rewrite, TcpFlags};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_steer::PrefixList;
use rheostat_testkit::captures;
use rheostat_testkit::flows::Flows;
use rheostat_traffic::{Arrival, Source};

const BACKENDS: u8 = 7;
const FLOWS: u32 = 7_000;
const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };

/// Frames in a row, a microsecond apart.
struct Frames(std::vec::IntoIter<Vec<u8>>, u64);

impl Source for Frames {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        *frame = self.0.next()?;
        self.1 += 1_000;
        let (time, len) = (Time::from_nanos(self.1), frame.len());
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

fn address(is_v6: bool, a: u16, b: u16) -> IpAddr {
    match is_v6 {
        true => IpAddr::from([if a >> 8 == 10 { 0xfd00 } else { 0x2001 }, 0xdb8, 0, 0, 0, 0, a, b]),
        false => IpAddr::from((u32::from(a) << 16 | u32::from(b)).to_be_bytes()),
    }
}

/// A service over IPv4 and IPv6 for each mode: 10.9.0.MODE, with backends 10.0.MODE.N.
fn config() -> LbConfig {
    let modes = [Mode::DsrIpip, Mode::DsrGue, Mode::Nat];
    let service = |(is_v6, number): (bool, u16)| ServiceConfig {
        name: format!("{number}"),
        vip: address(is_v6, 0x0a09, number),
        protocol: 6,
        ports: vec![PortRange { low: 80, high: 80 }],
        mode: modes[usize::from(number)],
        on_down: OnDown::Move,
        quic: None,
        check: None,
        backends: (0..BACKENDS)
            .map(|backend| BackendConfig {
                address: address(is_v6, 0x0a00, (number << 8) + u16::from(backend) + 1),
                port: (modes[usize::from(number)] == Mode::Nat).then_some(8_080),
                weight: 1,
                health: Health::Up,
                server_id: None,
            })
            .collect(),
    };
    let services = [false, true].into_iter().flat_map(|v6| (0..3).map(move |n| (v6, n)));
    let sources = ["172.16.0.0/16", "fd01::/64"].map(|prefix| prefix.parse().unwrap());
    LbConfig {
        seed: 42,
        services: services.map(service).collect(),
        tunnel: TunnelConfig { sources: sources.to_vec(), ..TunnelConfig::default() },
        ..LbConfig::default()
    }
}

/// A client's connection: the client and the service.
fn ends(flow: u32) -> (bool, (IpAddr, u16), (IpAddr, u16)) {
    let is_v6 = flow % 5 == 4;
    let client = (address(is_v6, 0xc612, (flow / 50) as u16), 1_024 + (flow % 50) as u16 * 997);
    (is_v6, client, (address(is_v6, 0x0a09, (flow % 3) as u16), 80))
}

fn segment(from: (IpAddr, u16), to: (IpAddr, u16), flags: u8, len: usize) -> Vec<u8> {
    let header = TcpHeader { ports: (from.1, to.1), flags, ..TcpHeader::default() };
    FrameBuilder::new(from.0, to.0, Transport::Tcp(header), Payload::Pattern(len))
        .with_ethernet(LINK)
        .to_vec()
}

/// What the clients send: each a SYN, and later, among others' packets, two more.
fn of_clients() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (flags, len) in [(TcpFlags::SYN, 0), (TcpFlags::ACK, 0), (TcpFlags::ACK, 300)] {
        frames.extend((0..FLOWS).map(|flow| {
            let (_, client, vip) = ends(flow);
            segment(client, vip, flags, len)
        }));
    }
    frames
}

/// Lanes, how many of them share a queue, and how many are offloading lanes.
const LANES: [(usize, usize, usize); 6] =
    [(2, 1, 0), (2, 2, 0), (4, 2, 0), (8, 1, 0), (3, 1, 1), (4, 1, 2)];

fn run(frames: Vec<Vec<u8>>, lanes: (usize, usize, usize)) -> HarnessReport {
    let mut layout = StateLayout::new();
    let chain = Stage::new(Lb::new(config()), &mut layout).unwrap();
    let mut harness = Harness::new(chain, layout);
    (harness.lanes, harness.claimants, harness.offloading) = lanes;
    let report = harness.run(Frames(frames.into_iter(), 0), |_, _| {}).unwrap();
    assert_eq!(report.violations, [], "{lanes:?} lanes");
    assert_eq!(report.counters.dropped_total(), 0, "{lanes:?} lanes");
    report
}

/// A packet that left: the client it is for or from, the backend if it goes to one, and its bytes.
struct Left {
    client: (IpAddr, u16),
    backend: Option<IpAddr>,
    bytes: Vec<u8>,
}

fn left(report: &HarnessReport) -> Vec<Left> {
    let inside: PrefixList =
        ["10.0.0.0/8", "fd00::/8"].into_iter().map(|prefix| prefix.parse().unwrap()).collect();
    let read = |bytes: &[u8], link| {
        let headers = Headers::parse_bytes(bytes, bytes.len(), link).unwrap();
        let Tuple::Flow(key) = Tuple::of_bytes(bytes, &headers) else { panic!("a flow") };
        (headers, key)
    };
    let client_of = |key: FlowKey| match inside.contains(key.first()) {
        true => (Side::Inside, (key.second(), key.second_port())),
        false => (Side::Outside, (key.first(), key.first_port())),
    };
    let packets = report.sent.iter().map(|packet| {
        let (outer, key) = read(&packet.bytes, LinkType::Ethernet);
        let inner = match outer.protocol {
            4 | 41 => usize::from(outer.l4),
            17 => usize::from(outer.l4) + 8,
            _ => {
                let (side, client) = client_of(key);
                let backend = (side == Side::Outside).then(|| key.second());
                return Left { client, backend, bytes: packet.bytes.clone() };
            }
        };
        let (_, carried) = read(&packet.bytes[inner..], LinkType::Raw);
        let (_, client) = client_of(carried);
        Left { client, backend: Some(key.second()), bytes: packet.bytes.clone() }
    });
    packets.collect()
}

#[test]
fn flows_keep_one_backend_and_backends_have_their_shares() {
    let left = left(&run(of_clients(), (2, 1, 0)));
    assert_eq!(left.len(), 3 * FLOWS as usize);
    let mut backends: BTreeMap<(IpAddr, u16), IpAddr> = BTreeMap::new();
    for packet in &left {
        let backend = packet.backend.expect("to a backend");
        let known = *backends.entry(packet.client).or_insert(backend);
        assert_eq!(known, backend, "the flow of {:?}", packet.client);
    }
    assert_eq!(backends.len(), FLOWS as usize);
    let mut shares: BTreeMap<IpAddr, u32> = BTreeMap::new();
    backends.values().for_each(|backend| *shares.entry(*backend).or_default() += 1);
    assert_eq!(shares.len(), 6 * usize::from(BACKENDS));
    for (backend, share) in shares {
        // Four of five flows are of IPv4, each family's are spread over three services.
        let (flows, parts) = (f64::from(FLOWS), if backend.is_ipv4() { 0.8 } else { 0.2 });
        let mean = flows * parts / 3.0 / f64::from(BACKENDS);
        // Five standard deviations of what chance gives.
        let error = (f64::from(share) - mean).abs();
        assert!(error < 5.0 * mean.sqrt(), "{backend} has {share} flows, {mean} are fair");
    }
}

#[test]
fn any_number_of_lanes_balances_the_same() {
    // First to learn which backends there are, then with their answers.
    let first = left(&run(of_clients(), (1, 1, 0)));
    let answers = first.iter().filter_map(|packet| {
        let backend = packet.backend?;
        let flow = (0..FLOWS).find(|flow| ends(*flow).1 == packet.client)?;
        let from = if flow % 3 == 2 { (backend, 8_080) } else { ends(flow).2 };
        Some(segment(from, packet.client, TcpFlags::SYN | TcpFlags::ACK, 0))
    });
    let mut frames = of_clients();
    frames.extend(answers.take(FLOWS as usize));
    let by_client = |report: &HarnessReport| {
        let mut packets: BTreeMap<_, Vec<Vec<u8>>> = BTreeMap::new();
        for packet in left(report) {
            packets.entry(packet.client).or_default().push(packet.bytes);
        }
        packets
    };
    let one = run(frames.clone(), (1, 1, 0));
    let expected = by_client(&one);
    assert_eq!(one.sent.len(), 4 * FLOWS as usize);
    // Every answer comes from the service.
    let answers = left(&one).into_iter().filter(|packet| packet.backend.is_none());
    for answer in answers {
        let headers =
            Headers::parse_bytes(&answer.bytes, answer.bytes.len(), LinkType::Ethernet).unwrap();
        let Tuple::Flow(key) = Tuple::of_bytes(&answer.bytes, &headers) else { panic!("a flow") };
        let flow = (0..FLOWS).find(|flow| ends(*flow).1 == answer.client).unwrap();
        assert_eq!((key.first(), key.first_port()), ends(flow).2);
    }
    for lanes in LANES {
        let many = run(frames.clone(), lanes);
        assert!(by_client(&many) == expected, "{lanes:?} lanes balance otherwise");
        assert_eq!(many.counters.flows_created, u64::from(FLOWS));
        let counters = &many.counters;
        assert_eq!(counters.handoff_out, counters.offloaded + counters.refused, "{lanes:?} lanes");
        assert!(lanes.2 == 0 || counters.offloaded > 100, "{lanes:?}: {counters:?}");
    }
}

/// Turns what clients of any TCP service have sent into packets from outside to the balanced service that
/// translates addresses.
struct ToService<S>(S);

fn to_service(frame: &mut [u8], link: LinkType, wire_len: usize) -> Option<()> {
    let headers = Headers::parse_bytes(frame, wire_len, link).ok()?;
    let Tuple::Flow(key) = Tuple::of_bytes(frame, &headers) else { return None };
    // The endpoint with the lower port is taken for the server.
    if headers.protocol != 6 || key.first_port() < key.second_port() {
        return None;
    }
    let is_v6 = key.first().is_ipv6();
    let host = (key.raw()[0] as u32).wrapping_mul(0x9e37_79b1);
    let mut rewrite = Rewrite::new(frame, &headers).ok()?;
    rewrite.set_source(address(is_v6, 0xc612, (host >> 16) as u16)).ok()?;
    rewrite.set_destination(address(is_v6, 0x0a09, 2)).ok()?;
    rewrite.set_destination_port(80).ok()
}

impl<S: Source> Source for ToService<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.0.next(frame)?;
        to_service(frame, arrival.link, arrival.wire_len as usize);
        Some(arrival)
    }
}

#[test]
fn captures_are_balanced_the_same_on_any_number_of_lanes() {
    let mut config = config();
    config.services.retain(|service| service.mode == Mode::Nat);
    let mut balanced = 0;
    let ran = captures::for_each(|capture| {
        let name = capture.name();
        let run = |(lanes, claimants, offloading)| {
            let mut layout = StateLayout::new();
            let chain = Stage::new(Lb::new(config.clone()), &mut layout).unwrap();
            let harness = Harness { lanes, claimants, offloading, ..Harness::new(chain, layout) };
            let source = ToService(capture.open());
            let report = harness.run(source, |_, _| {}).unwrap();
            assert_eq!(report.violations, [], "{name}, {lanes} lanes");
            let counters = report.counters;
            let dropped = DropReason::all().map(|reason| counters.dropped[reason as usize]);
            let metrics = [counters.sent, counters.flows_created, counters.flows_ended];
            let metrics: Vec<u64> = metrics.into_iter().chain(dropped).collect();
            (metrics, Flows::of(&report.sent, capture.link))
        };
        let one = run((1, 1, 0));
        for lanes in LANES {
            let many = run(lanes);
            assert_eq!(one.0, many.0, "{name}, {lanes:?} lanes");
            let difference = one.1.differs_from(&many.1);
            assert_eq!(difference, None, "{name}, {lanes:?} lanes");
        }
        balanced += one.0[1];
    });
    assert!(!ran || balanced > 100, "{balanced} flows prove little");
}

#[test]
fn packets_that_may_be_fragmented_have_distinct_numbers_in_their_outer_headers() {
    let is_in_ipip = |flow: &u32| {
        let (is_v6, _, vip) = ends(*flow);
        !is_v6 && vip.0 == address(false, 0x0a09, 0)
    };
    let (_, client, vip) = ends((0..FLOWS).find(is_in_ipip).expect("a flow over IPv4 by IPIP"));
    let frame = |flags| {
        let tcp = TcpHeader { ports: (client.1, 80), flags, ..TcpHeader::default() };
        let packet = FrameBuilder::new(client.0, vip.0, Transport::Tcp(tcp), Payload::Pattern(20));
        FrameBuilder { dont_fragment: false, ..packet }.with_ethernet(LINK).to_vec()
    };
    let mut frames = vec![frame(TcpFlags::SYN)];
    frames.extend((0..50).map(|_| frame(TcpFlags::ACK)));
    let sent = run(frames, (1, 1, 0)).sent;
    let mut numbers = BTreeMap::new();
    for packet in &sent {
        let ip = &packet.bytes[14..];
        assert_eq!((ip[9], ip[6]), (4, 0), "IP in IP, without flags");
        *numbers.entry([ip[4], ip[5]]).or_insert(0) += 1;
    }
    assert_eq!((sent.len(), numbers.len()), (51, 51), "{numbers:?}");
}
