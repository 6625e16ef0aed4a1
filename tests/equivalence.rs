//! Sequential equivalence: whatever the number of lanes, and whichever packets take the fast path, each flow's packets leave as
//! if there were one lane, in the same order, and every figure is the same.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_run::Unusual;
use rheostat_testkit::captures;
use rheostat_testkit::flows::{Difference, Flows, difference};
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};
use rheostat_traffic::{Arrival, Mix, MixConfig, Source};

/// Lanes, and percent of the usual packets that are treated as unusual ones: those do not take the fast path.
const WAYS: [(usize, u32); 4] = [(1, 100), (2, 0), (3, 100), (8, 10)];

fn mix(seed: u64, flows: u32, packets: u64) -> Box<dyn Source> {
    let config = MixConfig {
        seed,
        flows,
        packets: Some(packets),
        // Slow enough that flows time out on the way.
        packets_per_second: 200,
        ..MixConfig::default()
    };
    Box::new(Spliced::new(Mix::new(config).expect("a mix")))
}

/// Runs a source on one lane and on several, and compares.
fn compare(name: &str, link: LinkType, source: impl Fn() -> Box<dyn Source>) -> Vec<Outcome> {
    let one = World::open(&Setup::lossless(1), source()).run();
    assert_eq!(one.violations, [], "{name}, 1 lane");
    let mut outcomes = Vec::new();
    for (lanes, percent) in WAYS {
        let unusual = Unusual::percent(percent, 3);
        let many = World::open(&Setup { unusual, ..Setup::lossless(lanes) }, source()).run();
        let name = format!("{name}, {lanes} lanes, {percent} % unusual");
        assert_eq!(many.violations, [], "{name}");
        if let Some(difference) = difference(&one, &many, link) {
            panic!("{name}: {difference}");
        }
        outcomes.push(many);
    }
    outcomes.insert(0, one);
    outcomes
}

#[test]
fn a_mix_leaves_the_same_from_any_number_of_lanes() {
    for (seed, flows, packets) in [(1, 50, 20_000), (2, 500, 20_000), (3, 5_000, 40_000)] {
        let outcomes =
            compare(&format!("seed {seed}"), LinkType::Ethernet, || mix(seed, flows, packets));
        let one = &outcomes[0].sum;
        assert!(one.sent > packets / 2, "most packets pass: {one:?}");
        assert!(one.flows_ended > 0 && one.dropped_total() > 0, "nothing was refused: {one:?}");
        assert_eq!(one.handoff_out, 0);
        for many in &outcomes[2..] {
            assert!(many.sum.handoff_out > 100, "lanes that hand nothing over prove nothing");
        }
    }
}

/// A source whose stamps go back: every other packet is stamped ten minutes later, as where two captures are put together.
struct GoingBack {
    inner: Box<dyn Source>,
    is_later: bool,
}

impl Source for GoingBack {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.inner.next(frame)?;
        self.is_later = !self.is_later;
        let gap = if self.is_later { Duration::from_secs(600) } else { Duration::ZERO };
        Some(Arrival { time: arrival.time + gap, ..arrival })
    }
}

#[test]
fn stamps_that_go_back_end_no_flow_early_on_any_number_of_lanes() {
    let source = || mix(1, 50, 20_000);
    let outcomes = compare("going back", LinkType::Ethernet, || {
        Box::new(GoingBack { inner: source(), is_later: false })
    });
    for outcome in &outcomes {
        let times: Vec<_> = outcome.packets.iter().map(|packet| packet.time).collect();
        let back = times.windows(2).filter(|pair| pair[0].since(pair[1]).as_secs() > 590).count();
        assert!(back > 1_000, "packets leave with the stamps that they came with: {back}");
    }
    let in_order = World::open(&Setup::lossless(1), source()).run();
    let [back, plain] = [&outcomes[0], &in_order].map(|outcome| outcome.sum.dropped_total());
    assert!(back.abs_diff(plain) * 100 <= plain, "{back} dropped, in order {plain}");
}

/// A ping a minute of one host, its answer 50 s later, and other hosts' datagrams in between, one every ten seconds. A NIC sees
/// no identifier of an echo, so all echoes come by way of one lane, whichever owns their flow.
struct SlowPings {
    sent: u32,
    /// The last byte of the host's address.
    host: u8,
}

impl Source for SlowPings {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.sent == 600 {
            return None;
        }
        let (turn, inside, outside) = (self.sent % 6, [10, 0, 0, self.host], [192, 0, 2, 1]);
        let udp = Transport::Udp { ports: (1_000 + (self.sent % 97) as u16, 53) };
        let echo = |kind| Transport::Icmp { kind, code: 0, rest: 7 << 16 };
        let (from, to, transport) = match turn {
            0 => (inside, outside, echo(8)),
            5 => (outside, inside, echo(0)),
            _ => ([10, 1, 0, turn as u8], outside, udp),
        };
        *frame = FrameBuilder::new(from.into(), to.into(), transport, Payload::Pattern(8)).to_vec();
        let (time, len) = (Time::from_secs(1_000 + 10 * u64::from(self.sent)), frame.len());
        self.sent += 1;
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

#[test]
fn flows_that_reach_their_lane_by_way_of_another_live_as_long_as_on_one() {
    for host in 1..=8 {
        let outcomes = compare(&format!("host {host}"), LinkType::Raw, || {
            Box::new(SlowPings { sent: 0, host })
        });
        assert!(outcomes.iter().all(|outcome| outcome.sum.sent == 600), "all are answered in time");
        assert!(outcomes[4].sum.handoff_out > 100, "on eight lanes, echoes are handed over");
    }
}

#[test]
fn captures_leave_the_same_from_any_number_of_lanes() {
    captures::for_each(|capture| {
        compare(&capture.name(), capture.link, || Box::new(capture.open()));
    });
}

#[test]
fn a_lost_a_doubled_and_a_swapped_packet_are_noticed() {
    let outcome = World::open(&Setup::lossless(1), mix(7, 20, 2_000)).run();
    let link = LinkType::Ethernet;
    let whole = Flows::of(&outcome.packets, link);
    assert!(whole.len() > 20);
    assert_eq!(whole.differs_from(&whole.clone()), None);

    let mut lost = outcome.packets.clone();
    lost.remove(700);
    let found = whole.differs_from(&Flows::of(&lost, link));
    assert!(matches!(found, Some(Difference::Count { expected, got, .. }) if got + 1 == expected));

    let mut doubled = outcome.packets.clone();
    doubled.insert(700, doubled[700].clone());
    let found = whole.differs_from(&Flows::of(&doubled, link));
    assert!(matches!(found, Some(Difference::Count { expected, got, .. }) if got == expected + 1));

    // Two packets of one flow that differ.
    let mut swapped = outcome.packets.clone();
    let name = |at: usize| Flows::of(&outcome.packets[at..=at], link);
    let same_flow = |a: usize, b: usize| {
        let (a, b) = (format!("{:?}", name(a)), format!("{:?}", name(b)));
        a.split(':').next() == b.split(':').next() && a != b
    };
    let (a, b) = (0..swapped.len())
        .flat_map(|a| (a + 1..(a + 60).min(outcome.packets.len())).map(move |b| (a, b)))
        .find(|&(a, b)| same_flow(a, b))
        .expect("a flow with two packets");
    swapped.swap(a, b);
    let found = whole.differs_from(&Flows::of(&swapped, link));
    assert!(matches!(found, Some(Difference::Packet { .. })), "{found:?}");
}
