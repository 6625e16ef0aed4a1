//! The NAT over whole runs: the same packets leave from any number of lanes, and plain packets stay on
//! the lane they arrive on.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use rheostat::{Chain2, FirewallConfig, Harness, Mix, MixConfig, Stage, StateLayout};
use rheostat_functions::firewall::TcpOptions;
use rheostat_functions::nat::{Mapping, MappingChange, MappingLog, NatConfig};
use rheostat_functions::{Firewall, Nat};
use rheostat_nf::Chain;
use rheostat_packet::wire::Rewrite;
use rheostat_packet::{Headers, LinkType, Tuple};
use rheostat_testkit::captures;
use rheostat_testkit::flows::{Difference, Flows};
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::{Arrival, Source};

/// Lanes, how many of them share a queue, how many are offloading lanes, and percent of the usual packets that are treated as unusual ones: those do not take
/// the fast path.
const WAYS: [(usize, usize, usize, u32); 8] = [
    (1, 1, 0, 100),
    (2, 1, 0, 0),
    (2, 2, 0, 0),
    (2, 1, 1, 0),
    (4, 2, 0, 10),
    (3, 1, 0, 100),
    (5, 1, 2, 10),
    (8, 1, 0, 10),
];

type Endpoint = (Ipv4Addr, u16);
/// Inner endpoints by protocol, with what stood for them, and for which remote one if for one alone.
type Mapped = HashMap<(u8, Endpoint, Option<Endpoint>), Endpoint>;

/// Turns packets to hosts inside into what the world outside would have sent: packets to the external
/// endpoint.
pub(crate) struct Outside<S> {
    inner: S,
    mapped: Mapped,
    has_remote: bool,
}

impl<S: Source> Outside<S> {
    fn turn(&self, frame: &mut [u8], link: LinkType, wire_len: usize) -> Option<()> {
        let headers = Headers::parse_bytes(frame, wire_len, link).ok()?;
        let Tuple::Flow(key) = Tuple::of_bytes(frame, &headers) else { return None };
        let (IpAddr::V4(remote), IpAddr::V4(inner)) = (key.first(), key.second()) else {
            return None;
        };
        let query = headers.protocol == 1;
        let remote_port = if query { key.second_port() } else { key.first_port() };
        let remote = self.has_remote.then_some((remote, remote_port));
        let name = (headers.protocol, (inner, key.second_port()), remote);
        let (address, port) = *self.mapped.get(&name)?;
        let mut rewrite = Rewrite::new(frame, &headers).ok()?;
        rewrite.set_destination(address.into()).ok()?;
        rewrite.set_destination_port(port).ok()
    }
}

impl<S: Source> Source for Outside<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.inner.next(frame)?;
        self.turn(frame, arrival.link, arrival.wire_len as usize);
        Some(arrival)
    }
}

fn config(mapping: Mapping) -> NatConfig {
    let inside = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];
    NatConfig {
        mapping,
        inside: inside.iter().filter_map(|prefix| prefix.parse().ok()).collect(),
        ..NatConfig::new((1..=4).map(|last| Ipv4Addr::new(203, 0, 113, last)).collect())
    }
}

fn nat_alone(config: NatConfig, log: Option<MappingLog>) -> (Stage<Nat>, StateLayout) {
    let mut layout = StateLayout::new();
    let nat = Nat::new(config, log).expect("no blocks to divide");
    (Stage::new(nat, &mut layout).expect("room for one state"), layout)
}

fn behind_firewall(
    config: NatConfig,
    log: Option<MappingLog>,
) -> (Chain2<Stage<Firewall>, Stage<Nat>>, StateLayout) {
    let mut layout = StateLayout::new();
    let tcp = TcpOptions { pickup: true, ..TcpOptions::default() };
    let firewall = Firewall::new(FirewallConfig { tcp, ..FirewallConfig::default() });
    let firewall = Stage::new(firewall, &mut layout).expect("room for one state");
    let nat = Nat::new(config, log).expect("no blocks to divide");
    (Chain2(firewall, Stage::new(nat, &mut layout).expect("room for another")), layout)
}

struct Outcome {
    flows: Flows,
    metrics: Vec<(&'static str, u64)>,
    handoff: u64,
    /// Packets of flows that were away.
    offloaded: u64,
    translated: usize,
}

fn run<C: Chain>(
    (lanes, claimants, offloading, percent): (usize, usize, usize, u32),
    (chain, layout): (C, StateLayout),
    source: impl Source + 'static,
    link: LinkType,
) -> Outcome {
    let unusual = rheostat::Unusual::percent(percent, 3);
    let harness = Harness::new(chain, layout);
    let harness = Harness { lanes, claimants, offloading, flows: 262_144, unusual, ..harness };
    let report = harness.run(source, |_, _| {}).expect("a trial");
    assert_eq!(report.violations, [], "{lanes} lanes");
    let counters = &report.counters;
    let mut metrics = vec![("sent", counters.sent), ("created", counters.flows_created)];
    let dropped = rheostat::DropReason::all();
    metrics.extend(dropped.map(|reason| (reason.name(), counters.dropped[reason as usize])));
    let external = |packet: &&rheostat_io::Collected| {
        let bytes = &packet.bytes;
        Headers::parse_bytes(bytes, bytes.len(), link)
            .ok()
            .and_then(|headers| rheostat_packet::tuple::addresses(bytes, &headers))
            .is_some_and(|key| matches!(key.first(), IpAddr::V4(a) if a.octets()[0] == 203))
    };
    Outcome {
        flows: Flows::of(&report.sent, link),
        metrics,
        handoff: counters.handoff_out - counters.offloaded - counters.refused,
        offloaded: counters.offloaded,
        translated: report.sent.iter().filter(external).count(),
    }
}

/// The endpoints that flows have got.
fn mapped(log: &MappingLog) -> Mapped {
    let mut mapped = Mapped::new();
    log.drain(|event| {
        if event.change == MappingChange::Created {
            mapped.insert((event.protocol, event.inner, event.remote), event.external);
        }
    });
    mapped
}

/// A source with answers to these endpoints.
fn with_answers<S: Source>(
    mapping: Mapping,
    mapped: Mapped,
    source: &impl Fn() -> S,
) -> impl Fn() -> Outside<S> {
    let has_remote = mapping == Mapping::AddressAndPortDependent;
    move || Outside { inner: source(), mapped: mapped.clone(), has_remote }
}

/// A source with answers to the endpoints that its flows get of the NAT behind the firewall.
pub(crate) fn both_ways<S: Source + 'static>(
    mapping: Mapping,
    source: &impl Fn() -> S,
) -> impl Fn() -> Outside<S> {
    let log = MappingLog::new();
    let chain = behind_firewall(config(mapping), Some(log.clone()));
    run((1, 1, 0, 0), chain, source(), LinkType::Ethernet);
    with_answers(mapping, mapped(&log), source)
}

/// Runs a source once to learn which flow gets which endpoint, and then with answers to those, on one lane and on
/// several. Returns what came of it on one lane, and on the last.
fn compare<C: Chain, S: Source + 'static>(
    name: &str,
    link: LinkType,
    mapping: Mapping,
    chain: impl Fn(NatConfig, Option<MappingLog>) -> (C, StateLayout),
    source: impl Fn() -> S,
) -> (Outcome, Outcome) {
    let log = MappingLog::new();
    run((1, 1, 0, 0), chain(config(mapping), Some(log.clone())), source(), link);
    let both_ways = with_answers(mapping, mapped(&log), &source);
    let one = run((1, 1, 0, 0), chain(config(mapping), None), both_ways(), link);
    assert_eq!(one.handoff, 0);
    let (mut last, mut offloaded) = (None, 0);
    for way in WAYS {
        let many = run(way, chain(config(mapping), None), both_ways(), link);
        offloaded += many.offloaded;
        assert_eq!(one.metrics, many.metrics, "{name}, {way:?}");
        if let Some(difference) = one.flows.differs_from(&many.flows) {
            let difference: Difference = difference;
            panic!("{name}, {way:?}: {difference}");
        }
        last = Some(many);
    }
    (one, Outcome { offloaded, ..last.expect("some lanes") })
}

const MAPPINGS: [Mapping; 2] = [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent];

fn mix(seed: u64) -> Mix {
    let config = MixConfig {
        seed,
        flows: 400,
        packets: Some(15_000),
        // Slow enough that flows time out on the way.
        packets_per_second: 100,
        ..MixConfig::default()
    };
    Mix::new(config).expect("a mix")
}

/// What is left of a source without all but whole packets of TCP and UDP.
struct Plain<S>(S);

impl<S: Source> Source for Plain<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        loop {
            let arrival = self.0.next(frame)?;
            let headers = Headers::parse_bytes(frame, arrival.wire_len as usize, arrival.link);
            let is_plain = |h: Headers| matches!(h.protocol, 6 | 17) && h.fragment.is_none();
            if headers.is_ok_and(is_plain) {
                return Some(arrival);
            }
        }
    }
}

#[test]
fn plain_packets_stay_where_they_arrive() {
    for mapping in MAPPINGS {
        let (one, many) = compare("mix", LinkType::Ethernet, mapping, nat_alone, || Plain(mix(3)));
        let sent = one.metrics[0].1;
        assert!(one.translated as u64 > sent / 4, "{} of {sent} translated", one.translated);
        let no_mapping = one.metrics.iter().find(|(name, _)| *name == "no_mapping");
        assert!(no_mapping.is_some_and(|(_, count)| count * 3 < sent), "answers come in");
        assert_eq!(many.handoff, 0, "{mapping:?}");
        assert!(many.offloaded > 500, "{mapping:?}: {} packets of flows away", many.offloaded);
    }
}

#[test]
fn fragments_and_errors_leave_the_same_from_any_number_of_lanes() {
    for mapping in MAPPINGS {
        let source = || Spliced::new(mix(5));
        let (one, many) = compare("spliced", LinkType::Ethernet, mapping, behind_firewall, source);
        assert!(one.translated > 1_000);
        assert!(many.handoff > 100, "lanes that hand nothing over prove nothing");
    }
}

#[test]
fn captures_leave_the_same_from_any_number_of_lanes() {
    let mut translated = 0;
    let ran = captures::for_each(|capture| {
        for mapping in MAPPINGS {
            let (name, link) = (capture.name(), capture.link);
            let (one, _) = compare(&name, link, mapping, behind_firewall, || capture.open());
            translated += one.translated;
        }
    });
    assert!(!ran || translated > 100, "{translated} packets translated prove little");
}
