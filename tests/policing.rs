//! The policer in whole runs: whatever the number of lanes, each packet fares as it would with buckets
//! that one thread keeps in a map and never forgets.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use rheostat::harness::HarnessReport;
use rheostat::{DropReason, Harness, Mix, MixConfig, Stage, StateLayout, Time};
use rheostat_functions::Policer;
use rheostat_functions::policer::{
    Action, Actions, Bucket, Burst, Classes, Colour, Count, Meter, PolicerConfig, Rate, Subject,
};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{Headers, LinkType, tuple};
use rheostat_run::Unusual;
use rheostat_steer::{Prefix, Whose};
use rheostat_testkit::captures;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::{Arrival, Source};

/// The addresses that share a bucket: so many that some are always too empty, and so few that some get full.
fn subject(whose: Whose) -> Subject {
    let v4 = if whose == Whose::Outer { 24 } else { 20 };
    Subject { whose, v4, v6: 64 }
}

pub(crate) fn meters() -> [Meter; 2] {
    let rate = |bits| Rate::new(bits).unwrap();
    let burst = |bytes| Burst::new(bytes).unwrap();
    [
        Meter::single_rate(rate(8_000), burst(4_000), burst(6_000)).unwrap(),
        Meter::two_rate(rate(8_000), burst(3_000), rate(24_000), burst(6_000)).unwrap(),
    ]
}

/// A mix of which a minute passes, so that many buckets are forgotten on the way.
fn source() -> impl Source {
    let mix = MixConfig {
        flows: 300,
        packets_per_second: 500,
        packets: Some(30_000),
        ..MixConfig::default()
    };
    Spliced::of_flows(Mix::new(mix).expect("a mix"))
}

pub(crate) fn config(whose: Whose, meter: Meter) -> PolicerConfig {
    let le = "le".parse().expect("a code point");
    PolicerConfig {
        subject: subject(whose),
        from: None,
        count: Count::Ip,
        classes: Classes::new(Some(meter)),
        colours: None,
        actions: Actions { yellow: Action::Remark(le), ..Actions::default() },
        pass_when_full: false,
        pass_non_ip: true,
        subscribers: 65_536,
    }
}

/// Whether an address is inside, as a harness has it.
fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd,
    }
}

/// The packets that are to leave, as their numbers and their colours, and all colours' counts.
fn expected(whose: Whose, meter: Meter, mut source: impl Source) -> (Vec<(u32, Colour)>, [u64; 3]) {
    let mut buckets: HashMap<(IpAddr, u32), Bucket> = HashMap::new();
    let (mut passed, mut counts) = (Vec::new(), [0; 3]);
    let mut frame = Vec::new();
    for number in 0.. {
        let Some(arrival) = source.next(&mut frame) else { break };
        let wire_len = arrival.wire_len as usize;
        let Ok(headers) = Headers::parse_bytes(&frame, wire_len, arrival.link) else { continue };
        let Some(hosts) = tuple::addresses(&frame, &headers) else {
            passed.push((number, Colour::Green));
            continue;
        };
        let (from, to) = (hosts.first(), hosts.second());
        let address = match whose {
            Whose::Source => from,
            Whose::Destination => to,
            Whose::Inner if is_inside(from) != is_inside(to) => {
                [from, to][usize::from(is_inside(to))]
            }
            Whose::Outer if is_inside(from) != is_inside(to) => {
                [from, to][usize::from(is_inside(from))]
            }
            _ => panic!("{from} and {to} are on one side"),
        };
        let length = if address.is_ipv4() { subject(whose).v4 } else { subject(whose).v6 };
        let bucket = buckets
            .entry((Prefix::containing(address, length).address(), headers.zone))
            .or_insert_with(|| meter.full(arrival.time));
        let bytes = headers.end - u32::from(headers.l3);
        let colour = meter.colour(bucket, arrival.time, bytes, Colour::Green);
        counts[colour as usize] += 1;
        if colour != Colour::Red {
            passed.push((number, colour));
        }
    }
    (passed, counts)
}

/// Lanes, how many of them share a queue, and how many are offloading lanes.
const LANES: [(usize, usize, usize); 7] =
    [(1, 1, 0), (2, 1, 0), (2, 2, 0), (4, 2, 0), (8, 1, 0), (3, 1, 1), (4, 1, 2)];

/// Sends packets through the policer.
fn run(
    whose: Whose,
    meter: Meter,
    (lanes, claimants, offloading): (usize, usize, usize),
    source: impl Source + 'static,
) -> HarnessReport {
    let policer = Policer::new(config(whose, meter));
    let mut layout = StateLayout::new();
    let chain = Stage::new(policer, &mut layout).expect("room for one state");
    // Most packets on the fast path, some of them, none.
    let unusual = Unusual::percent([0, 50, 100][lanes % 3], 1);
    let harness = Harness { lanes, claimants, offloading, unusual, ..Harness::new(chain, layout) };
    harness.run(source, |_, _| {}).expect("memory and lanes")
}

/// The colour that a frame was marked with.
fn colour(frame: &[u8]) -> Colour {
    let class = u16::from_be_bytes([frame[14], frame[15]]);
    let class = if frame[14] >> 4 == 4 { class as u8 } else { (class >> 4) as u8 };
    if class >> 2 == 1 { Colour::Yellow } else { Colour::Green }
}

#[test]
fn packets_fare_as_with_buckets_that_are_never_forgotten() {
    for whose in [Whose::Source, Whose::Destination, Whose::Inner, Whose::Outer] {
        for meter in meters() {
            let (passed, counts) = expected(whose, meter, source());
            assert!(counts.iter().all(|packets| *packets > 100), "{whose:?}: {counts:?}");
            for lanes in LANES {
                let name = format!("{whose:?}, {meter:?}, {lanes:?} lanes");
                let report = run(whose, meter, lanes, source());
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                let sent = report.sent.iter().map(|packet| (packet.stamp, colour(&packet.bytes)));
                let mut sent: Vec<_> = sent.collect();
                sent.sort_unstable();
                let differs = sent.iter().zip(&passed).find(|(sent, passed)| sent != passed);
                assert_eq!(differs, None, "{name}: first what left, then what was to");
                assert_eq!(sent.len(), passed.len(), "{name}");
                let counted = ["policer_green", "policer_yellow", "policer_red"]
                    .map(|figure| report.metrics.get(figure));
                assert_eq!(counted, counts, "{name}");
                let counters = &report.counters;
                assert_eq!(counters.handoff_out, counters.offloaded + counters.refused, "{name}");
                assert!(report.counters.flows_ended > 100, "{name}: nothing was forgotten");
            }
        }
    }
}

#[test]
fn captured_packets_fare_alike() {
    let mut compared = 0;
    let ran = captures::for_each(|capture| {
        if goes_back(capture.open()) {
            return;
        }
        for whose in [Whose::Source, Whose::Destination] {
            let (passed, counts) = expected(whose, meters()[0], capture.open());
            for lanes in LANES {
                let name = format!("{}, {whose:?}, {lanes:?} lanes", capture.name());
                let report = run(whose, meters()[0], lanes, capture.open());
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                let mut sent: Vec<_> = report.sent.iter().map(|packet| packet.stamp).collect();
                sent.sort_unstable();
                assert!(sent.iter().eq(passed.iter().map(|(number, _)| number)), "{name}");
            }
            compared += usize::from(counts[Colour::Red as usize] > 0);
        }
    });
    assert!(!ran || compared > 0, "no capture of which something was dropped");
}

/// Packets of 100 bytes: 100 a second from one subscriber, and, as asked for, newcomers and made-up
/// addresses that never come again.
struct Attack {
    made_up_per_second: u64,
    number: u64,
    milliseconds: u64,
    waiting: VecDeque<Ipv4Addr>,
}

const SUBSCRIBER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SECONDS: u64 = 30;

impl Attack {
    fn new(made_up_per_second: u64) -> Attack {
        Attack { made_up_per_second, number: 0, milliseconds: 0, waiting: VecDeque::new() }
    }

    fn is_newcomer(address: Ipv4Addr) -> bool {
        address.octets()[..2] == [10, 64]
    }
}

impl Source for Attack {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        while self.waiting.is_empty() {
            if self.milliseconds == SECONDS * 1_000 {
                return None;
            }
            let made_up = self.made_up_per_second / 1_000;
            self.waiting.extend((0..made_up).map(|n| {
                // An odd multiplier: no two are alike.
                let n = (self.milliseconds * made_up + n + 1).wrapping_mul(0x2_9d35) as u32;
                Ipv4Addr::from_bits(0x0a80_0000 | n & 0x7f_ffff)
            }));
            if self.milliseconds.is_multiple_of(10) {
                self.waiting.push_back(SUBSCRIBER);
                self.waiting.push_back(Ipv4Addr::from_bits(0x0a40_0000 | self.milliseconds as u32));
            }
            self.milliseconds += 1;
        }
        let from = self.waiting.pop_front()?;
        self.number += 1;
        let to = Ipv4Addr::new(192, 0, 2, 1);
        let udp = Transport::Udp { ports: (1_000, 53) };
        let payload = Payload::Pattern(72);
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let packet = FrameBuilder::new(from.into(), to.into(), udp, payload).with_ethernet(link);
        *frame = packet.to_vec();
        let (time, len) = (Time::from_millis(self.milliseconds), frame.len());
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

#[test]
fn made_up_addresses_change_nothing_for_others() {
    let mut alone = None;
    for made_up_per_second in [0, 2_000] {
        let subject = Subject { whose: Whose::Source, v4: 32, v6: 64 };
        let policer = Policer::new(PolicerConfig { subject, ..config(Whose::Source, meters()[0]) });
        let mut layout = StateLayout::new();
        let chain = Stage::new(policer, &mut layout).expect("room for one state");
        let harness = Harness { flows: 2_048, ..Harness::new(chain, layout) };
        let report = harness.run(Attack::new(made_up_per_second), |_, _| ()).expect("a trial");
        let sources = report.sent.iter().map(|packet| {
            let ip: [u8; 4] = packet.bytes[26..30].try_into().expect("four bytes");
            (packet.time, Ipv4Addr::from(ip))
        });
        let (subscriber, others): (Vec<_>, Vec<_>) =
            sources.partition(|(_, from)| *from == SUBSCRIBER);
        let newcomers = others.iter().filter(|(_, from)| Attack::is_newcomer(*from)).count();
        assert_eq!(newcomers as u64, SECONDS * 100, "with {made_up_per_second} a second");
        assert_eq!(report.counters.dropped[DropReason::TableFull as usize], 0);
        // Both bursts, and 1,000 bytes a second.
        assert!((390..=400).contains(&subscriber.len()), "{} passed", subscriber.len());
        let alone = alone.get_or_insert_with(|| subscriber.clone());
        assert!(subscriber == *alone, "{} instead of {}", subscriber.len(), alone.len());
        let evicted = report.counters.flows_created - report.counters.flows_peak;
        assert!(made_up_per_second == 0 || evicted > 40_000, "the table was never full");
    }
}

/// Whether a capture's packets are not in the order of their times: a bucket that was forgotten is
/// then not as full as one that is found.
pub(crate) fn goes_back(mut source: impl Source) -> bool {
    let (mut frame, mut latest) = (Vec::new(), Time::ZERO);
    while let Some(arrival) = source.next(&mut frame) {
        if arrival.time < latest {
            return true;
        }
        latest = arrival.time;
    }
    false
}
