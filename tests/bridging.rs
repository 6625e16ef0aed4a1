//! The bridge in whole runs: every frame leaves on the port of the station it is for, and on no other once that is known,
//! whatever the number of lanes.

mod switch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::bridging::switch::{Outcome, config, run, run_with};
use rheostat_base::{DropReason, Time};
use rheostat_functions::bridge::{BridgeConfig, Ends, Station};
use rheostat_packet::{Headers, LinkType, Tuple, tuple};
use rheostat_run::Unusual;
use rheostat_testkit::captures;
use rheostat_traffic::{Arrival, Mix, MixConfig, Source, Stations};

const LANES: [usize; 3] = [1, 2, 8];
const PORTS: u32 = 3;
/// How much later a source begins behind the greetings.
const LATER: Duration = Duration::from_secs(60);

/// A broadcast from each of some stations, a millisecond apart, and then, later, another source.
struct Greeted<S> {
    greetings: VecDeque<(Time, Station)>,
    source: S,
}

impl<S: Source> Source for Greeted<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let Some((time, station)) = self.greetings.pop_front() else {
            let arrival = self.source.next(frame)?;
            return Some(Arrival { time: arrival.time + LATER, ..arrival });
        };
        *frame = [[0xff; 6], station.mac].concat();
        if station.vlan > 0 {
            frame.extend([0x81, 0]);
            frame.extend(station.vlan.to_be_bytes());
        }
        // For local experiments (IEEE 802, 9.2.3).
        frame.extend([0x88, 0xb5]);
        frame.resize(60, 0);
        Some(Arrival { time, len: 60, wire_len: 60, link: LinkType::Ethernet })
    }
}

/// Those frames of a source that come from stations behind one port, by their addresses.
struct Behind<S> {
    source: S,
    port: usize,
    ports: usize,
}

impl<S: Source> Source for Behind<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        loop {
            let arrival = self.source.next(frame)?;
            match Ends::of(frame, arrival.link) {
                Some(ends) if port_of(ends.from, self.ports) == self.port => return Some(arrival),
                _ => {}
            }
        }
    }
}

/// Where a station is in these tests.
fn port_of(station: Station, ports: usize) -> usize {
    station.mac.iter().map(|byte| usize::from(*byte)).sum::<usize>() % ports
}

fn ends(bytes: &[u8]) -> Ends {
    Ends::of(bytes, LinkType::Ethernet).expect("a frame of Ethernet")
}

fn frames(mut source: impl Source) -> Vec<Vec<u8>> {
    let mut frame = Vec::new();
    std::iter::from_fn(|| source.next(&mut frame).map(|_| frame.clone())).collect()
}

fn mix() -> Mix {
    let config = MixConfig {
        flows: 400,
        packets_per_second: 20_000,
        packets: Some(20_000),
        ..MixConfig::default()
    };
    Mix::new(config).expect("a mix")
}

/// Frames by port, in an order that does not depend on when they left.
fn sorted(outcome: &Outcome) -> Vec<Vec<Vec<u8>>> {
    let port = |sent: &Vec<_>| -> Vec<Vec<u8>> {
        let mut frames: Vec<_> =
            sent.iter().map(|frame: &rheostat_io::Collected| frame.bytes.clone()).collect();
        frames.sort_unstable();
        frames
    };
    outcome.sent.iter().map(port).collect()
}

/// Checks that what left on each port is in the order it arrived, for each pair of stations, or of endpoints.
fn check_order(name: &str, outcome: &Outcome) {
    for (port, sent) in outcome.sent.iter().enumerate() {
        let mut latest: BTreeMap<String, u32> = BTreeMap::new();
        for frame in sent {
            let headers = Headers::parse_bytes(&frame.bytes, frame.bytes.len(), LinkType::Ethernet);
            let key = headers.ok().and_then(|headers| {
                match Tuple::of_bytes(&frame.bytes, &headers) {
                    Tuple::Flow(key) => Some(key),
                    // By the addresses they have themselves.
                    _ => tuple::addresses(&frame.bytes, &headers),
                }
            });
            let ends = ends(&frame.bytes);
            let before = latest.insert(format!("{ends:?} {key:?}"), frame.stamp);
            assert!(
                before.is_none_or(|before| before < frame.stamp),
                "{name}, port {port}: {ends:?}"
            );
        }
    }
}

#[test]
fn known_stations_get_their_frames_and_no_others_do() {
    let ports = || -> Vec<Box<dyn Source>> {
        let stations: BTreeSet<Station> =
            frames(mix_of_stations()).iter().map(|f| ends(f).from).collect();
        (0..PORTS as usize)
            .map(|port| {
                let behind = stations.iter().filter(|station| port_of(**station, 3) == port);
                let greetings = greetings(behind.copied(), Time::ZERO);
                let source = Behind { source: mix_of_stations(), port, ports: 3 };
                Box::new(Greeted { greetings, source }) as Box<dyn Source>
            })
            .collect()
    };
    // Frames go to their destinations, and the greetings to all others.
    let all = frames(mix_of_stations());
    let stations: BTreeSet<Station> = all.iter().map(|frame| ends(frame).from).collect();
    assert!(stations.len() > 100);
    let mut expected = vec![Vec::new(); 3];
    let mut same_port = 0;
    for frame in &all {
        let Ends { from, to } = ends(frame);
        let (from_port, to_port) = (port_of(from, 3), port_of(to, 3));
        match (stations.contains(&to), from_port == to_port) {
            (true, true) => same_port += 1,
            (true, false) => expected[to_port].push(frame.clone()),
            (false, _) => (0..3).filter(|port| *port != from_port).for_each(|port| {
                expected[port].push(frame.clone());
            }),
        }
    }
    expected.iter_mut().for_each(|frames| frames.sort_unstable());
    for (lanes, unusual) in LANES.into_iter().flat_map(|lanes| [0, 10, 100].map(|u| (lanes, u))) {
        let outcome = run_with(Unusual::percent(unusual, 1), config(3), lanes, ports());
        assert_eq!(outcome.violations, [], "{lanes} lanes");
        check_order(&format!("{lanes} lanes"), &outcome);
        let sent: Vec<Vec<Vec<u8>>> = sorted(&outcome)
            .into_iter()
            .map(|frames| frames.into_iter().filter(|frame| frame[0] != 0xff).collect())
            .collect();
        assert!(sent == expected, "{lanes} lanes: other frames on other ports");
        assert_eq!(outcome.counters.dropped[DropReason::SamePort as usize], same_port);
        assert_eq!(outcome.metrics.get("bridge_learned"), stations.len() as u64);
        assert_eq!(outcome.metrics.get("bridge_moved"), 0);
    }
}

/// The mix as stations of one port send it, that is, all of it with link addresses.
fn mix_of_stations() -> impl Source {
    Stations::new(mix(), 200, 0, 1)
}

fn greetings(stations: impl IntoIterator<Item = Station>, from: Time) -> VecDeque<(Time, Station)> {
    let at = |number: usize| from + Duration::from_millis(number as u64);
    stations.into_iter().enumerate().map(|(number, station)| (at(number), station)).collect()
}

#[test]
fn unknown_stations_are_found_by_flooding() {
    let ports = || -> Vec<Box<dyn Source>> {
        let port = |port| Box::new(Stations::new(mix(), 200, port, PORTS)) as Box<dyn Source>;
        (0..PORTS).map(port).collect()
    };
    let port = |station: Station| {
        let [_, _, number @ ..] = station.mac;
        (u32::from_be_bytes(number) % PORTS) as usize
    };
    for lanes in LANES {
        let outcome = run(config(3), lanes, ports());
        assert_eq!(outcome.violations, [], "{lanes} lanes");
        check_order(&format!("{lanes} lanes"), &outcome);
        let flooded = outcome.metrics.get("bridge_flooded");
        assert!(flooded > 100, "{flooded} frames flooded");
        assert_eq!(outcome.counters.copied, flooded, "two ports are left: one copy");
        // Each frame is on its station's port once, or nowhere if that is where it came from.
        let mut there: Vec<BTreeMap<Vec<u8>, usize>> = vec![BTreeMap::new(); 3];
        for (number, sent) in outcome.sent.iter().enumerate() {
            for frame in sent {
                assert_ne!(port(ends(&frame.bytes).from), number, "back where it came from");
                *there[number].entry(frame.bytes.clone()).or_default() += 1;
            }
        }
        let mut left = 0;
        for frame in frames(mix_of_stations()) {
            let Ends { from, to } = ends(&frame);
            if port(from) != port(to) {
                let count = there[port(to)].get_mut(&frame);
                let count =
                    count.unwrap_or_else(|| panic!("{lanes} lanes: {to:?} has a frame less"));
                *count -= 1;
                left += 1;
                if *count == 0 {
                    there[port(to)].remove(&frame);
                }
            }
        }
        let others: usize = there.iter().flat_map(BTreeMap::values).sum();
        assert_eq!(left + others, outcome.counters.sent as usize);
    }
}

#[test]
fn a_full_table_floods_and_keeps_the_account() {
    let few = BridgeConfig { stations: 16, ..config(3) };
    let port = |port| Box::new(Stations::new(mix(), 200, port, PORTS)) as Box<dyn Source>;
    let outcome = run(few, 2, (0..PORTS).map(port).collect());
    assert_eq!(outcome.violations, []);
    assert!(outcome.metrics.get("bridge_unlearned") > 1_000);
    assert!(outcome.counters.copied > 1_000);
}

#[test]
fn vlans_are_bounds_of_a_flood() {
    let mut config = config(3);
    config.membership.restrict(rheostat_base::DeviceId(1), [7]);
    let tagged = |mac: u8, vlan: u16| (Time::ZERO, Station { mac: [2, 0, 0, 0, 0, mac], vlan });
    let empty = || Mix::new(MixConfig { packets: Some(0), ..MixConfig::default() }).expect("a mix");
    let greetings = VecDeque::from([tagged(1, 7), tagged(1, 8), tagged(1, 0)]);
    let port = |greetings| Box::new(Greeted { greetings, source: empty() }) as Box<dyn Source>;
    let ports = vec![port(greetings), port(VecDeque::new()), port(VecDeque::new())];
    let outcome = run(config, 1, ports);
    assert_eq!(outcome.violations, []);
    let vlans: Vec<Vec<u16>> = outcome
        .sent
        .iter()
        .map(|sent| sent.iter().map(|frame| ends(&frame.bytes).from.vlan).collect())
        .collect();
    assert_eq!(vlans, [vec![], vec![7], vec![7, 8, 0]]);
}

/// The stations of a capture, the frames that leave each port, and when the first came.
type Forwarded = (BTreeSet<Station>, Vec<Vec<Vec<u8>>>, Time);

/// Where the frames of a capture go whose stations are behind two ports, all of them known; the frames that are IP
/// without being well-formed are dropped before.
fn forwarded(mut source: impl Source, ports: usize) -> Option<Forwarded> {
    let (mut frame, mut all, mut first) = (Vec::new(), Vec::new(), None);
    while let Some(arrival) = source.next(&mut frame) {
        if arrival.link != LinkType::Ethernet {
            return None;
        }
        first.get_or_insert(arrival.time);
        let wire_len = arrival.wire_len as usize;
        if Headers::parse_bytes(&frame, wire_len, arrival.link).is_ok() {
            all.push(frame.clone());
        }
    }
    let stations: BTreeSet<Station> =
        all.iter().map(|frame| ends(frame).from).filter(Station::can_send).collect();
    let mut expected = vec![Vec::new(); ports];
    for frame in all {
        let Ends { from, to } = ends(&frame);
        let from_port = port_of(from, ports);
        if to.is_reserved() || stations.contains(&to) && port_of(to, ports) == from_port {
            continue;
        }
        for port in (0..ports).filter(|port| *port != from_port) {
            if !stations.contains(&to) || port_of(to, ports) == port {
                expected[port].push(frame.clone());
            }
        }
    }
    expected.iter_mut().for_each(|frames| frames.sort_unstable());
    Some((stations, expected, first?))
}

#[test]
fn captured_frames_leave_the_same_from_any_number_of_lanes() {
    let mut compared = 0;
    let ran = captures::for_each(|capture| {
        let Some((stations, expected, first)) = forwarded(capture.open(), 3) else { return };
        for lanes in LANES {
            let ports = (0..3)
                .map(|port| {
                    let behind = stations.iter().filter(|station| port_of(**station, 3) == port);
                    let source = Behind { source: capture.open(), port, ports: 3 };
                    let greetings = greetings(behind.copied(), first);
                    Box::new(Greeted { greetings, source }) as Box<dyn Source>
                })
                .collect();
            let outcome = run(config(3), lanes, ports);
            let name = format!("{}, {lanes} lanes", capture.name());
            assert_eq!(outcome.violations, [], "{name}");
            check_order(&name, &outcome);
            let is_greeting = |frame: &Vec<u8>| {
                let at = if ends(frame).from.vlan > 0 { 16 } else { 12 };
                frame[..6] == [0xff; 6] && frame[at..at + 2] == [0x88, 0xb5]
            };
            let mut sent = sorted(&outcome);
            sent.iter_mut().for_each(|frames| frames.retain(|frame| !is_greeting(frame)));
            assert!(sent == expected, "{name}: other frames on other ports");
        }
        compared += 1;
    });
    assert!(!ran || compared > 0, "no capture of Ethernet frames");
}
