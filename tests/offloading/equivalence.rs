//! What comes of a run does not depend on which flows are away, nor on when they leave and come home.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat::{Harness, Stage, StateLayout};
use rheostat_base::{LaneId, ShardId, Time};
use rheostat_functions::Monitor;
use rheostat_functions::monitor::MonitorConfig;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_run::{LaneSample, Migrator, Move, Unusual};
use rheostat_testkit::captures;
use rheostat_testkit::flows::{Flows, difference};
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};
use rheostat_traffic::{Arrival, Mix, MixConfig, Source};

/// Lanes, those of them that are offloading lanes, and percent of the usual packets that are treated as unusual ones, which
/// cannot be processed away from home.
const WAYS: [(usize, usize, u32); 4] = [(2, 1, 0), (3, 1, 10), (4, 2, 1), (8, 4, 30)];

fn mix(seed: u64, flows: u32, packets: u64, per_second: u64) -> Box<dyn Source> {
    let config = MixConfig {
        seed,
        flows,
        packets: Some(packets),
        packets_per_second: per_second,
        ..MixConfig::default()
    };
    Box::new(Spliced::new(Mix::new(config).expect("a mix")))
}

/// Runs a world in which working lanes offload all that they can, to a lane that changes now and then, while shards move between
/// working lanes, and each lane is polled now and then only. Returns how many shards moved.
pub(super) fn restless(mut world: World, setup: &Setup, seed: u64) -> (Outcome, u64) {
    let (lanes, working) = (setup.lanes as u16, (setup.lanes - setup.offloading) as u16);
    let table = world.table();
    let mut migrator = Migrator::new(&mut world.lanes, vec![table]);
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        let delivered = world.deliver();
        let mut polled = 0;
        for lane in 0..lanes {
            if rng.random_ratio(2, 3) {
                polled += world.poll(lane.into());
            }
        }
        migrator.step(world.now);
        let shard = ShardId(rng.random_range(0..migrator.owners().len() as u16));
        let (from, to) = (migrator.owners()[shard.index()], LaneId(rng.random_range(0..working)));
        if rng.random_ratio(1, 30) && !migrator.is_moving(shard) && from != to {
            migrator.start(&[Move { shard, from, to }], world.now).expect("a plan with the owners");
        }
        if rng.random_ratio(1, 200) {
            let to = rng.random_ratio(7, 8).then(|| LaneId(rng.random_range(working..lanes)));
            migrator.offload(LaneId(rng.random_range(0..working)), to, 100);
        }
        if delivered + polled == 0 {
            match world.next_arrival() {
                Some(due) => world.now = world.now.max(due),
                None if world.lanes.iter().all(|lane| lane.handoff_waiting() == 0) => break,
                None => {}
            }
        }
    }
    while !migrator.is_idle() {
        world.deliver();
        migrator.step(world.now);
        (0..setup.lanes).for_each(|lane| {
            world.poll(lane);
        });
    }
    (world.finish(), migrator.moved())
}

/// What runs with offloading came to, all together.
#[derive(Debug, Default)]
struct Shown {
    left: u64,
    offloaded: u64,
    refused: u64,
    moved: u64,
}

/// Runs a source on one lane and in all ways, and compares.
fn compare(name: &str, link: LinkType, source: impl Fn() -> Box<dyn Source>) -> Shown {
    let mut shown = Shown::default();
    let one = World::open(&Setup::lossless(1), source()).run();
    assert_eq!(one.violations, [], "{name}, 1 lane");
    for (lanes, offloading, percent) in WAYS {
        let unusual = Unusual::percent(percent, 3);
        let setup = Setup { unusual, offloading, ..Setup::lossless(lanes) };
        let (many, moved) = restless(World::open(&setup, source()), &setup, 5);
        let name = format!("{name}, {lanes} lanes, {offloading} offloading, {percent} % unusual");
        assert_eq!(many.violations, [], "{name}");
        if let Some(difference) = difference(&one, &many, link) {
            panic!("{name}: {difference}");
        }
        assert_eq!(
            Flows::overtaken(&many.packets, link),
            Flows::overtaken(&one.packets, link),
            "{name}"
        );
        shown.left += many.sum.flows_offloaded;
        shown.offloaded += many.sum.offloaded;
        shown.refused += many.sum.refused;
        shown.moved += moved;
    }
    shown
}

#[test]
fn a_mix_leaves_the_same_whichever_flows_are_away() {
    for (seed, flows, packets, rate) in
        [(1, 50, 20_000, 200), (2, 500, 20_000, 200_000), (3, 2_000, 20_000, 1_000)]
    {
        let shown = compare(&format!("seed {seed}"), LinkType::Ethernet, || {
            mix(seed, flows, packets, rate)
        });
        let Shown { left, offloaded, refused, moved } = shown;
        assert!(left > 1_000 && refused > 300 && offloaded > 3_000 && moved > 100, "{shown:?}");
    }
}

/// A source whose stamps go back: every other packet is stamped some minutes later.
struct GoingBack(Box<dyn Source>, bool);

impl Source for GoingBack {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.0.next(frame)?;
        self.1 = !self.1;
        let gap = if self.1 { Duration::from_secs(40) } else { Duration::ZERO };
        Some(Arrival { time: arrival.time + gap, ..arrival })
    }
}

#[test]
fn stamps_that_go_back_make_no_difference() {
    let shown = compare("going back", LinkType::Ethernet, || {
        Box::new(GoingBack(mix(1, 50, 20_000, 200), false))
    });
    assert!(shown.left > 500, "{shown:?}");
}

/// Tables of few flows, which are full, at a rate at which flows rarely time out, and at one at which most do: what is evicted,
/// expired and refused is the same.
#[test]
fn full_tables_refuse_the_same_flows() {
    let (mut left, mut refused) = (0, 0);
    let narrow = |lanes| Setup { flows: 4, ..Setup::lossless(lanes) };
    for (seed, rate) in (0..4).flat_map(|seed| [(seed, 2_000), (seed, 40)]) {
        let source = || mix(seed, 400, 15_000, rate);
        let one = World::open(&narrow(1), source()).run();
        let setup = Setup { offloading: 1, ..narrow(3) };
        let (many, _) = restless(World::open(&setup, source()), &setup, seed);
        assert_eq!((&*one.violations, &*many.violations), (&[][..], &[][..]));
        assert_eq!(difference(&one, &many, LinkType::Ethernet), None, "seed {seed}, {rate}/s");
        left += many.sum.flows_offloaded;
        refused += many.sum.refused;
    }
    assert!(left > 200 && refused > 20, "{left} {refused}: nothing was shown");
}

/// Datagrams there and back of one flow, and ten minutes later one of another flow.
struct TwoFlows(u32);

impl Source for TwoFlows {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (inside, outside) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let (from, to, ports, at) = match self.0 {
            number @ 0..300 if number % 2 == 1 => (outside, inside, (53, 1_000), number),
            number @ 0..300 => (inside, outside, (1_000, 53), number),
            300 => (inside, outside, (2_000, 53), 600_000),
            _ => return None,
        };
        self.0 += 1;
        let udp = Transport::Udp { ports };
        *frame = FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec();
        let (time, len) = (Time::from_millis(1_000 + u64::from(at)), frame.len());
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

/// A table of one flow, which is over while it is away, makes room for the next flow.
#[test]
fn a_flow_that_is_over_while_it_is_away_makes_room() {
    let setup = Setup { shards: 1, flows: 1, offloading: 1, ..Setup::lossless(2) };
    let mut world = World::open(&setup, Box::new(TwoFlows(0)));
    world.lanes[0].offload_to(Some(LaneId(1)), 100);
    let outcome = world.run();
    assert_eq!(outcome.violations, []);
    let sum = &outcome.sum;
    assert!(sum.flows_offloaded == 1 && sum.offloaded > 50, "{sum:?}");
    assert_eq!((sum.sent, sum.flows_created), (301, 2), "the second flow finds room");
}

/// All flows of the monitor make room for others, also those that are away.
#[test]
fn full_tables_evict_the_same_flows() {
    let run = |lanes, offloading, rate| {
        let mut layout = StateLayout::new();
        let config = MonitorConfig { top: None, ..MonitorConfig::default() };
        let chain = Stage::new(Monitor::new(config, None), &mut layout).expect("room for a state");
        let harness = Harness { lanes, offloading, flows: 256, ..Harness::new(chain, layout) };
        let report = harness.run(mix(9, 600, 20_000, rate), |_, _| {}).expect("memory and lanes");
        assert_eq!(report.violations, []);
        (report.counters, report.metrics, Flows::of(&report.sent, LinkType::Ethernet))
    };
    for rate in [2_000, 100] {
        let one = run(1, 0, rate);
        for (lanes, offloading) in [(2, 1), (5, 2)] {
            let many = run(lanes, offloading, rate);
            let name = format!("{rate}/s, {lanes} lanes, {offloading} offloading");
            assert_eq!(one.1, many.1, "{name}");
            let figures = |sum: &LaneSample| (sum.sent, sum.flows_created, sum.flows_ended);
            assert_eq!(figures(&one.0), figures(&many.0), "{name}");
            assert_eq!(one.2.differs_from(&many.2), None, "{name}");
            assert!(many.0.flows_offloaded > 100, "{name}: {} left", many.0.flows_offloaded);
        }
    }
}

#[test]
fn captures_leave_the_same_whichever_flows_are_away() {
    let mut left = 0;
    let ran = captures::for_each(|capture| {
        left += compare(&capture.name(), capture.link, || Box::new(capture.open())).left;
    });
    assert!(!ran || left > 1_000, "{left} flows left: nothing was shown");
}
