//! The detectors in whole runs: what they count is what one thread counts in maps, and what they let through leaves the
//! same from any number of lanes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat::harness::HarnessReport;
use rheostat::{DropReason, Harness, NetworkFunction, StateLayout, Time};
use rheostat_functions::antiddos::{self, Alarm, AntiDdosConfig, FlowCounts};
use rheostat_functions::portscan::PortscanConfig;
use rheostat_functions::{AntiDdos, Portscan, portscan};
use rheostat_nf::Stage;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::tcp::TcpFlags;
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_state::txn::Objects;
use rheostat_testkit::captures;
use rheostat_testkit::flows::Flows;
use rheostat_traffic::{Arrival, Attack, AttackConfig, AttackKind, Limited, Source};

const LANES: [usize; 3] = [1, 2, 8];
/// Longer than any run here: no flow ends, so that counts do not depend on when a lane comes round to it.
const EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Runs a function that `make` makes from the objects of the run.
fn run<F>(
    lanes: usize,
    source: impl Source + 'static,
    make: impl FnOnce(&Objects) -> F,
) -> HarnessReport
where
    F: NetworkFunction<Shard = ()>,
    F::Flow: Clone,
{
    let objects = Objects::new(lanes);
    let mut layout = StateLayout::new();
    let chain =
        Stage::on_objects(make(&objects), &objects, &mut layout).expect("room for one state");
    let harness = Harness { lanes, ..Harness::new(chain, layout) };
    harness.run(source, |_, ()| ()).expect("memory and lanes")
}

fn antiddos(staleness: Duration, action: antiddos::Action) -> AntiDdosConfig {
    AntiDdosConfig {
        alarm: Alarm { permille: 800, least: 100 },
        staleness,
        action,
        one_packet: EVER,
        idle: EVER,
        ..AntiDdosConfig::default()
    }
}

fn flood() -> impl Source {
    let config = AttackConfig {
        kind: AttackKind::SynFlood,
        packets_per_second: 100_000,
        share: 0.5,
        ..AttackConfig::default()
    };
    Limited::new(Attack::new(&config).expect("an attack"), Some(20_000), None)
}

/// The key of each TCP packet of a source, turned so that both directions have the same; whether that turned it; `None`
/// for other packets.
fn keys(mut source: impl Source) -> Vec<Option<(FlowKey, bool)>> {
    let mut frame = Vec::new();
    std::iter::from_fn(|| {
        let arrival = source.next(&mut frame)?;
        let headers = Headers::parse_bytes(&frame, arrival.wire_len as usize, arrival.link).ok();
        let key = headers.and_then(|headers| match Tuple::of_bytes(&frame, &headers) {
            Tuple::Flow(key) if key.protocol() == 6 => {
                Some(if key.is_sorted() { (key, false) } else { (key.reversed(), true) })
            }
            _ => None,
        });
        Some(key)
    })
    .collect()
}

#[test]
fn flows_are_counted_as_by_one_thread() {
    // Whether a flow has one packet yet, and which way that went.
    let mut flows: HashMap<FlowKey, (bool, bool)> = HashMap::new();
    let (mut flow_counts, mut alarms) = (FlowCounts::default(), 0);
    let config = antiddos(Duration::ZERO, antiddos::Action::Count);
    let keys = keys(flood());
    for (key, turned) in keys.iter().flatten() {
        match flows.get_mut(key) {
            None => {
                flows.insert(*key, (true, *turned));
                flow_counts.flows += 1;
                flow_counts.one_packet += 1;
                alarms += u64::from(config.alarm.is_raised_by(flow_counts));
            }
            Some((has_one, way)) if *has_one && way == turned => {
                *has_one = false;
                flow_counts.one_packet -= 1;
            }
            Some(_) => {}
        }
    }
    assert!(alarms > 1_000 && alarms < flow_counts.flows as u64, "{alarms} of {flow_counts:?}");
    for staleness in [Duration::ZERO, Duration::from_micros(100)] {
        for lanes in LANES {
            let name = format!("{staleness:?}, {lanes} lanes");
            let config = antiddos(staleness, antiddos::Action::Count);
            let report = run(lanes, flood(), |objects| AntiDdos::new(config, objects));
            assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
            assert_eq!(report.sent.len(), keys.len(), "{name}: everything passes");
            let total = |figure| report.metrics.get(figure);
            assert_eq!(total("antiddos_flows"), flow_counts.flows as u64, "{name}");
            assert_eq!(total("antiddos_opened"), flow_counts.flows as u64, "{name}");
            assert_eq!(total("antiddos_one_packet_flows"), flow_counts.one_packet as u64, "{name}");
            // Of one lane, the order is that of arrival.
            if lanes == 1 && staleness.is_zero() {
                assert_eq!(total("antiddos_alarms"), alarms, "{name}");
            }
            let seen = total("antiddos_alarms");
            assert!(seen.abs_diff(alarms) < alarms / 5, "{name}: {seen} alarms, not {alarms}");
        }
    }
}

#[test]
fn flows_that_were_let_in_go_on_during_an_attack() {
    let keys = keys(flood());
    for lanes in LANES {
        let config = antiddos(Duration::from_micros(100), antiddos::Action::Drop);
        let report = run(lanes, flood(), |objects| AntiDdos::new(config, objects));
        assert!(report.violations.is_empty(), "{lanes} lanes: {:?}", report.violations);
        let dropped = report.counters.dropped[DropReason::UnderAttack as usize];
        assert_eq!(report.counters.dropped_total(), dropped);
        assert_eq!(report.metrics.get("antiddos_dropped"), dropped);
        assert!(dropped > 1_000, "{lanes} lanes: {dropped} dropped");
        let sent: HashSet<u32> = report.sent.iter().map(|packet| packet.stamp).collect();
        let mut let_in = HashSet::new();
        for (number, key) in (0..).zip(&keys) {
            match key {
                Some((key, _)) if sent.contains(&number) => {
                    let_in.insert(*key);
                }
                Some((key, _)) => assert!(!let_in.contains(key), "{lanes} lanes: {key} is cut off"),
                None => assert!(sent.contains(&number), "only flows of TCP are kept out"),
            }
        }
        assert_eq!(let_in.len() as u64, report.metrics.get("antiddos_opened"));
    }
}

/// Connections, one after the other: each is a SYN and its answer.
struct Connections {
    attempts: VecDeque<(u8, u16, u16, bool)>,
    answer: Option<(u8, u16, u16, bool)>,
    time: Time,
}

/// How many of the hosts, which are numbered from 0, scan: all their attempts are refused. Those of the others succeed.
const SCANNERS: u8 = 10;
const HOSTS: u8 = 40;

impl Connections {
    /// Attempts of all hosts to a few hundred others, some of them again and again, in a random order.
    fn new() -> Connections {
        let mut rng = SmallRng::seed_from_u64(4);
        let attempts = (0..10_000_u16).map(|number| {
            let host = rng.random_range(0..HOSTS);
            (host, rng.random_range(0..300), 1_000 + number, host >= SCANNERS)
        });
        Connections { attempts: attempts.collect(), answer: None, time: Time::ZERO }
    }
}

impl Source for Connections {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let answers = self.answer.is_some();
        let attempt = match self.answer.take() {
            Some(attempt) => attempt,
            None => {
                let attempt = self.attempts.pop_front()?;
                self.answer = Some(attempt);
                attempt
            }
        };
        let (host, to, port, succeeds) = attempt;
        let outer = (Ipv4Addr::new(198, 51, 100, host), port);
        let inner = (Ipv4Addr::from_bits(0x0a00_0000 | u32::from(to)), 22);
        let (from, to) = if answers { (inner, outer) } else { (outer, inner) };
        let flags = match (answers, succeeds) {
            (false, _) => TcpFlags::SYN,
            (true, true) => TcpFlags::SYN | TcpFlags::ACK,
            (true, false) => TcpFlags::RST | TcpFlags::ACK,
        };
        let header = TcpHeader {
            ports: (from.1, to.1),
            seq: 1,
            ack: 0,
            flags,
            window: 1_000,
            urgent: 0,
            options: &[],
        };
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let (transport, payload) = (Transport::Tcp(header), Payload::Bytes(&[]));
        let packet = FrameBuilder::new(from.0.into(), to.0.into(), transport, payload);
        *frame = packet.with_ethernet(link).to_vec();
        self.time += Duration::from_micros(100);
        let len = frame.len();
        Some(Arrival { time: self.time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

fn portscan(action: portscan::Action) -> PortscanConfig {
    let (hosts, pairs) = (1_000, 20_000);
    PortscanConfig {
        timeout: EVER,
        retention: EVER,
        hosts,
        pairs,
        action,
        ..PortscanConfig::default()
    }
}

#[test]
fn scanners_do_not_depend_on_the_number_of_lanes() {
    let mut failures: HashMap<u8, u32> = HashMap::new();
    let mut met = HashSet::new();
    let (mut contacts, mut scanned, mut good) = (0, 0, 0);
    for (host, to, _, succeeds) in Connections::new().attempts {
        if failures.get(&host).is_some_and(|failures| *failures >= 4) {
            scanned += 1;
        } else if met.insert((host, to)) {
            contacts += 1;
            match succeeds {
                true => good += 1,
                false => *failures.entry(host).or_default() += 1,
            }
        }
    }
    for action in [portscan::Action::Count, portscan::Action::Drop] {
        for lanes in LANES {
            let name = format!("{action:?}, {lanes} lanes");
            let config = portscan(action);
            let report = run(lanes, Connections::new(), |objects| Portscan::new(config, objects));
            assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
            let total = |figure| report.metrics.get(figure);
            assert_eq!(total("portscan_scanners"), u64::from(SCANNERS), "{name}");
            assert_eq!(total("portscan_succeeded"), good, "{name}");
            assert_eq!(total("portscan_unwatched"), 0, "{name}");
            assert_eq!(total("portscan_contacts"), good + total("portscan_failed"), "{name}");
            if lanes == 1 {
                assert_eq!(
                    (total("portscan_contacts"), total("portscan_scanned")),
                    (contacts, scanned)
                );
            }
            // Other lanes may be about more of a host's contacts when it is found out, never about fewer.
            assert!(total("portscan_contacts") >= contacts, "{name}");
            assert!(total("portscan_scanned") > scanned / 2, "{name}");
            let dropped = report.counters.dropped[DropReason::Scanner as usize];
            assert_eq!(dropped, total("portscan_dropped"), "{name}");
            assert_eq!(
                dropped,
                if action == portscan::Action::Drop { total("portscan_scanned") } else { 0 }
            );
            assert_eq!(report.sent.len() as u64 + dropped, 20_000, "{name}");
        }
    }
}

#[test]
fn captures_leave_the_same_from_any_number_of_lanes() {
    let mut counted = 0;
    let ran = captures::for_each(|capture| {
        let watching = antiddos(Duration::ZERO, antiddos::Action::Count);
        let mut known: [Option<(Flows, u64, u64)>; 2] = [None, None];
        for lanes in LANES {
            let ddos = run(lanes, capture.open(), |o| AntiDdos::new(watching.clone(), o));
            let count = portscan(portscan::Action::Count);
            let scan = run(lanes, capture.open(), |o| Portscan::new(count, o));
            let metrics =
                ["antiddos_flows", "antiddos_one_packet_flows"].map(|f| ddos.metrics.get(f));
            counted += metrics[0];
            let results = [(ddos, metrics), (scan, [0; 2])];
            for ((report, [a, b]), known) in results.into_iter().zip(&mut known) {
                let name = format!("{}, {lanes} lanes", capture.name());
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                let flows = Flows::of(&report.sent, capture.link);
                let (before, x, y) = known.get_or_insert_with(|| (flows.clone(), a, b));
                if let Some(difference) = before.differs_from(&flows) {
                    panic!("{name}: {difference}");
                }
                assert_eq!((a, b), (*x, *y), "{name}");
            }
        }
    });
    assert!(!ran || counted > 1_000, "{counted} flows prove little");
}
