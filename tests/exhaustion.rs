//! Attacks on what a NAT has only so much of: by one host inside, and by one outside. Others must hardly
//! notice. Each test also shows that the attack would work if the defence were not there.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use rheostat::{DropReason, Harness, Stage, StateLayout, Time};
use rheostat_functions::Nat;
use rheostat_functions::nat::{Filtering, Mapping, NatConfig};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_traffic::{Arrival, Source};

type Endpoint = (Ipv4Addr, u16);

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SERVER: Endpoint = (Ipv4Addr::new(198, 51, 100, 1), 53);
const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 66, 66, 66);

/// UDP packets at times, in order.
#[derive(Default)]
struct Script {
    packets: Vec<(Time, Endpoint, Endpoint)>,
    next: usize,
}

impl Script {
    fn add(&mut self, at: Duration, from: Endpoint, to: Endpoint) {
        self.packets.push((Time::ZERO + at, from, to));
    }
}

impl Source for Script {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let &(time, from, to) = self.packets.get(self.next)?;
        self.next += 1;
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let udp = Transport::Udp { ports: (from.1, to.1) };
        let built = FrameBuilder {
            ethernet: Some(link),
            ..FrameBuilder::new(from.0.into(), to.0.into(), udp, Payload::Pattern(20))
        };
        *frame = built.to_vec();
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

struct Outcome {
    sent: Vec<(Endpoint, Endpoint)>,
    dropped: [u64; DropReason::COUNT],
}

impl Outcome {
    fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// The endpoints outside that were reached.
    fn reached(&self) -> HashSet<Endpoint> {
        self.sent.iter().filter(|(from, _)| from.0 == EXTERNAL).map(|(_, to)| *to).collect()
    }
}

fn run(config: NatConfig, flows: usize, script: Script) -> Outcome {
    run_on(2, config, flows, script)
}

fn run_on(lanes: usize, config: NatConfig, flows: usize, script: Script) -> Outcome {
    let mut layout = StateLayout::new();
    let nat = Nat::new(config, None).expect("no blocks to divide");
    let chain = Stage::new(nat, &mut layout).expect("room for one state");
    let harness = Harness { lanes, flows, ..Harness::new(chain, layout) };
    let report = harness.run(script, |_, _| {}).expect("a trial");
    assert_eq!(report.violations, []);
    let ends = |bytes: &Vec<u8>| {
        let headers = Headers::parse_bytes(bytes, bytes.len(), LinkType::Ethernet).ok()?;
        let Tuple::Flow(key) = Tuple::of_bytes(bytes, &headers) else { return None };
        Some((end(key.first(), key.first_port()), end(key.second(), key.second_port())))
    };
    let sent = report.sent.iter().filter_map(|packet| ends(&packet.bytes)).collect();
    Outcome { sent, dropped: report.counters.dropped }
}

fn end(address: IpAddr, port: u16) -> Endpoint {
    match address {
        IpAddr::V4(address) => (address, port),
        IpAddr::V6(_) => unreachable!("all packets here are of IPv4"),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Benign host `number`.
fn host(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8)
}

/// A remote endpoint that only host `number` talks to.
fn friend(number: u16) -> Endpoint {
    (Ipv4Addr::new(192, 0, 2, 9), 1_024 + number)
}

/// The attacker asks for every port there is; then a thousand others ask for one each. How many of them
/// get one.
fn ports_left_for_others(quota: Option<u32>) -> usize {
    let mut script = Script::default();
    for port in 1_024..=u16::MAX {
        script.add(millis(u64::from(port) / 64), (ATTACKER, port), SERVER);
    }
    for number in 0..1_000 {
        script.add(millis(2_000), (host(number), 4_000), friend(number));
    }
    let config = NatConfig { quota, ..NatConfig::new(vec![EXTERNAL]) };
    let outcome = run(config, 262_144, script);
    let reached = outcome.reached();
    (0..1_000).filter(|number| reached.contains(&friend(*number))).count()
}

#[test]
fn one_host_cannot_take_all_ports() {
    let (open, limited) = (ports_left_for_others(None), ports_left_for_others(Some(1_000)));
    println!(
        "of 1,000 other hosts get a port: {open} without a quota, {limited} with one of 1,000"
    );
    assert_eq!((open, limited), (1_000, 1_000));
}

/// A table of a few thousand flows. A hundred hosts have answered flows; the attacker opens a hundred
/// thousand without answers; then the hundred send and are answered again, and a hundred others begin.
#[test]
fn unanswered_flows_give_way_in_a_full_table() {
    let mut script = Script::default();
    // Learned beforehand: which external endpoint each host has does not depend on what comes later.
    let opening = |script: &mut Script| {
        for number in 0..100 {
            script.add(millis(0), (host(number), 4_000), friend(number));
        }
    };
    opening(&mut script);
    let config = || NatConfig {
        mapping: Mapping::AddressAndPortDependent,
        filtering: Filtering::AddressAndPortDependent,
        ..NatConfig::new(vec![EXTERNAL])
    };
    let first = run(config(), 4_096, script);
    assert_eq!(first.sent.len(), 100);
    let mut script = Script::default();
    opening(&mut script);
    for (external, remote) in &first.sent {
        script.add(millis(1), *remote, *external);
    }
    for n in 0..100_000_u32 {
        let remote = (Ipv4Addr::from_bits(0xc000_0200 + (n >> 16)), n as u16);
        script.add(
            millis(10 + u64::from(n) / 100),
            (ATTACKER, 1_024 + (n % 60_000) as u16),
            remote,
        );
    }
    for number in 100..200 {
        script.add(millis(1_500), (host(number), 4_000), friend(number));
    }
    for (external, remote) in &first.sent {
        script.add(millis(2_000), *remote, *external);
    }
    let outcome = run(config(), 4_096, script);
    let inward = outcome.sent.iter().filter(|(_, to)| to.0.octets()[0] == 10).count();
    let reached = outcome.reached();
    let begun = (100..200).filter(|number| reached.contains(&friend(*number))).count();
    println!(
        "of 100 answered flows 100 of 100,000 later live {}; of 100 new hosts {begun} get a flow",
        inward - 100
    );
    assert_eq!(inward, 200, "an answered flow was pushed out");
    assert_eq!(
        begun,
        100,
        "{} packets found the table full",
        outcome.dropped(DropReason::TableFull)
    );
}

/// Every host may send to a mapping; one host outside does so from every port there is.
#[test]
fn one_remote_host_cannot_fill_the_table() {
    let mut script = Script::default();
    script.add(millis(0), (host(1), 4_000), SERVER);
    let config = || NatConfig {
        filtering: Filtering::EndpointIndependent,
        ..NatConfig::new(vec![EXTERNAL])
    };
    let first = run(config(), 4_096, script);
    let [(external, _)] = first.sent[..] else { panic!("one packet") };
    let mut script = Script::default();
    script.add(millis(0), (host(1), 4_000), SERVER);
    script.add(millis(1), SERVER, external);
    let remote = Ipv4Addr::new(192, 0, 2, 66);
    for port in 1..=u16::MAX {
        script.add(millis(10 + u64::from(port) / 64), (remote, port), external);
    }
    script.add(millis(2_000), SERVER, external);
    for number in 100..200 {
        script.add(millis(2_000), (host(number), 4_000), friend(number));
    }
    let outcome = run(config(), 65_536, script);
    let let_in = outcome.sent.iter().filter(|(from, _)| from.0 == remote).count();
    let reached = outcome.reached();
    let begun = (100..200).filter(|number| reached.contains(&friend(*number))).count();
    let own = outcome.sent.iter().filter(|(from, _)| *from == SERVER).count();
    println!("of 65,535 packets {let_in} come in; of 100 new hosts {begun} get a flow");
    assert_eq!((let_in, own, begun), (64, 2, 100));
}

/// A key with both ends, so that the two ways of writing it down stay in step.
#[test]
fn scripts_say_what_they_mean() {
    let mut script = Script::default();
    script.add(millis(7), (host(1), 4_000), SERVER);
    let mut frame = Vec::new();
    let arrival = script.next(&mut frame).expect("one packet");
    assert_eq!(arrival.time, Time::ZERO + millis(7));
    let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Ethernet).expect("a packet");
    let key = FlowKey::v4((host(1), 4_000), SERVER, 17, 0);
    assert_eq!(Tuple::of_bytes(&frame, &headers), Tuple::Flow(key));
}

/// The attacker sends from every port, again and again; what he asks for is never answered. Another host
/// asks now and then, and is answered. How often it was let through, with what came of all packets.
fn fair_share(lanes: usize, mapping: Mapping) -> (usize, Outcome) {
    let mut script = Script::default();
    for n in 0..160_000_u64 {
        let port = 1_024 + (n % 64_512) as u16;
        script.add(millis(n / 16), (ATTACKER, port), SERVER);
        if n % 1_600 == 1_599 {
            let number = (n / 1_600) as u16;
            script.add(millis(n / 16), (host(7), 5_000 + number), friend_of(mapping, number));
        }
    }
    let config = NatConfig { mapping, ..NatConfig::new(vec![EXTERNAL]) };
    let outcome = run_on(lanes, config, 262_144, script);
    let through = outcome.sent.iter().filter(|(_, to)| is_friend(mapping, *to)).count();
    (through, outcome)
}

/// The other host's remote endpoint: with a port for each remote endpoint, only the attacker's own target is short
/// of ports.
fn friend_of(mapping: Mapping, number: u16) -> Endpoint {
    match mapping {
        Mapping::EndpointIndependent => friend(number),
        Mapping::AddressAndPortDependent => SERVER,
    }
}

fn is_friend(mapping: Mapping, to: Endpoint) -> bool {
    match mapping {
        Mapping::EndpointIndependent => to != SERVER,
        Mapping::AddressAndPortDependent => to == SERVER,
    }
}

#[test]
fn one_host_does_not_shut_out_others() {
    let (through, outcome) = fair_share(2, Mapping::EndpointIndependent);
    println!("of 100 requests of another host {through} pass");
    assert_eq!((through, outcome.dropped(DropReason::PortsExhausted)), (100, 0));
    let (_, outcome) = fair_share(2, Mapping::AddressAndPortDependent);
    assert_eq!((outcome.sent.len(), outcome.dropped(DropReason::PortsExhausted)), (160_100, 0));
}

#[test]
fn a_fair_share_is_the_same_on_any_number_of_lanes() {
    for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
        let sorted = |lanes| {
            let (_, mut outcome) = fair_share(lanes, mapping);
            outcome.sent.sort_unstable();
            (outcome.sent, outcome.dropped)
        };
        assert!(sorted(1) == sorted(8), "{mapping:?}");
    }
}
