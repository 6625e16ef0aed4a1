//! Claimants of one queue that own its shards together: whatever the schedule, no packet is lost, and flows have the state that
//! one lane would give them.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::{DropReason, Time};
use rheostat_io::{Collected, Pacing};
use rheostat_packet::LinkType;
use rheostat_run::{LaneSample, TimeSource, Unusual};
use rheostat_testkit::captures;
use rheostat_testkit::flows::{Flows, difference};
use rheostat_testkit::numbered::numbered;
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};
use rheostat_traffic::{Arrival, Mix, MixConfig, Source};

/// Lanes, claimants of each queue, and percent of the usual packets that are treated as unusual ones.
const WAYS: [(usize, usize, u32); 4] = [(2, 2, 0), (4, 2, 10), (3, 3, 100), (8, 4, 0)];

fn mix(seed: u64, packets_per_second: u64, packets: u64) -> Box<dyn Source> {
    let config = MixConfig {
        seed,
        flows: 500,
        packets: Some(packets),
        packets_per_second,
        ..MixConfig::default()
    };
    Box::new(Spliced::new(Mix::new(config).expect("a mix")))
}

/// Runs a source on one lane and on claimants, and compares. Returns the packets that changed lanes.
fn compare(name: &str, link: LinkType, source: impl Fn() -> Box<dyn Source>) -> u64 {
    let one = World::open(&Setup::lossless(1), source()).run();
    assert_eq!(one.violations, [], "{name}, 1 lane");
    let mut handed_off = 0;
    for (lanes, claimants, percent) in WAYS {
        let unusual = Unusual::percent(percent, 3);
        let setup = Setup { claimants, unusual, ..Setup::lossless(lanes) };
        let many = World::open(&setup, source()).run();
        let name = format!("{name}, {lanes} lanes, {claimants} to a queue, {percent} % unusual");
        assert_eq!(many.violations, [], "{name}");
        assert_eq!(many.sum.reordered, 0, "{name}");
        if let Some(difference) = difference(&one, &many, link) {
            panic!("{name}: {difference}");
        }
        let all_work = many.sum.received < 1_000 || many.received.iter().all(|lane| *lane > 0);
        assert!(claimants < lanes || all_work, "{name}: {:?} packets claimed", many.received);
        handed_off += many.sum.handoff_out;
    }
    handed_off
}

#[test]
fn a_mix_leaves_claimants_as_it_leaves_one_lane() {
    // Slow enough that flows time out on the way.
    let handed_off = compare("mix", LinkType::Ethernet, || mix(1, 200, 20_000));
    assert!(handed_off > 100, "no fragment met the others of its datagram: {handed_off}");
}

#[test]
fn captures_leave_claimants_as_they_leave_one_lane() {
    captures::for_each(|capture| {
        compare(&capture.name(), capture.link, || Box::new(capture.open()));
    });
}

/// Polls lanes in an order that follows from `seed`, now and then with one that stalls, until nothing is left.
fn run_at_random(setup: &Setup, source: Box<dyn Source>, seed: u64) -> Outcome {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut world = World::open(setup, source);
    let mut stalled = vec![0_u32; setup.lanes];
    loop {
        let step = match rng.random_range(0..400) {
            0 => Duration::from_secs(rng.random_range(1..400)),
            _ => Duration::from_nanos(rng.random_range(1..9_000)),
        };
        world.now += step;
        if rng.random_ratio(2, 3) {
            world.deliver();
        }
        if rng.random_ratio(1, 60) {
            stalled[rng.random_range(0..setup.lanes)] = rng.random_range(1..80);
        }
        let lane = rng.random_range(0..setup.lanes);
        if stalled[lane] == 0 {
            world.poll(lane);
        }
        stalled.iter_mut().for_each(|turns| *turns = turns.saturating_sub(1));
        if world.next_arrival().is_none() {
            return world.finish();
        }
    }
}

#[test]
fn no_schedule_of_claimants_loses_a_packet() {
    let mut met = [0; DropReason::COUNT];
    let mut ended = 0;
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (lanes, claimants) = *[(2, 2), (4, 2), (3, 3), (6, 3)].choose(&mut rng).expect("one");
        let setup = Setup {
            claimants,
            shards: *[8, 16, 128].choose(&mut rng).expect("one"),
            flows: *[4, 16, 256].choose(&mut rng).expect("one"),
            buffers: *[256, 2_048].choose(&mut rng).expect("one"),
            descriptors: *[16, 128].choose(&mut rng).expect("one"),
            handoff: *[2, 256].choose(&mut rng).expect("one"),
            pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
            time: TimeSource::Poll,
            unusual: Unusual::percent(*[0, 10, 100].choose(&mut rng).expect("one"), 0),
            ..Setup::lossless(lanes)
        };
        let outcome = run_at_random(&setup, mix(seed, 1_000_000, 3_000), seed);
        assert_eq!(outcome.violations, [], "seed {seed}");
        assert_eq!(outcome.sum.held, 0, "seed {seed}");
        assert_eq!(outcome.sum.received, outcome.arrived - outcome.device_dropped, "seed {seed}");
        assert_eq!(outcome.packets.len() as u64, outcome.sum.sent, "seed {seed}");
        for (met, dropped) in met.iter_mut().zip(outcome.sum.dropped) {
            *met += dropped;
        }
        ended += outcome.sum.flows_ended;
    }
    for reason in [DropReason::HandoffFull, DropReason::TableFull, DropReason::FragmentIncomplete] {
        assert!(met[reason as usize] > 0, "no packet was dropped as {}", reason.name());
    }
    assert!(ended > 1_000, "{ended} flows ended");
}

/// Flows alive, by what lanes have counted.
fn flows(world: &World) -> u64 {
    let samples: Vec<_> = world.lanes.iter().map(|lane| lane.counters().sample()).collect();
    LaneSample::sum(&samples).flows_live()
}

#[test]
fn flows_end_in_time_on_whichever_lane_is_polled() {
    for polled in [vec![0], vec![1], vec![0, 1]] {
        let setup = Setup { claimants: 2, time: TimeSource::Poll, ..Setup::lossless(2) };
        let source = Numbered { flows: 100, limit: 100, sent: 0 };
        let mut world = World::open(&setup, Box::new(source));
        while world.round() {}
        assert_eq!(flows(&world), 100, "each packet is the first of a flow");
        // Datagrams without an answer live for two minutes; the wheel's ticks and rounds are of half a second.
        let end = world.now + Duration::from_millis(121_600);
        while world.now < end {
            world.now += Duration::from_millis(5);
            for lane in &polled {
                world.poll(*lane);
            }
        }
        assert_eq!(flows(&world), 0, "lanes {polled:?} alone");
        let outcome = world.finish();
        assert_eq!((outcome.violations, outcome.sum.flows_ended), (vec![], 100));
    }
}

/// Numbered datagrams from inside, of some flows in turn, all at once.
struct Numbered {
    flows: u32,
    limit: u32,
    sent: u32,
}

impl Source for Numbered {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.sent == self.limit {
            return None;
        }
        *frame = numbered(self.sent % self.flows, self.sent, 16);
        self.sent += 1;
        let (len, link) = (frame.len(), LinkType::Ethernet);
        Some(Arrival { time: Time::ZERO, len, wire_len: len as u32, link })
    }
}

/// How often each packet left, whatever the order.
fn sets(packets: &[Collected]) -> BTreeMap<Vec<u8>, usize> {
    let mut sets = BTreeMap::new();
    for packet in packets {
        *sets.entry(packet.bytes.clone()).or_default() += 1;
    }
    sets
}

#[test]
fn claimants_that_overtake_each_other_let_the_same_packets_through() {
    let source = || Box::new(Numbered { flows: 50, limit: 5_000, sent: 0 }) as Box<dyn Source>;
    let one = World::open(&Setup::lossless(1), source()).run();
    let mut overtaken = 0;
    for seed in 0..20 {
        let setup = Setup {
            claimants: 2,
            descriptors: 8_192,
            buffers: 8_192,
            pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
            time: TimeSource::Poll,
            ..Setup::lossless(2)
        };
        let many = run_at_random(&setup, source(), seed);
        assert_eq!(many.violations, [], "seed {seed}");
        assert!(sets(&many.packets) == sets(&one.packets), "seed {seed}: other packets left");
        assert_eq!(many.sum.flows_created, one.sum.flows_created, "seed {seed}");
        overtaken += Flows::overtaken(&many.packets, LinkType::Ethernet);
    }
    assert!(overtaken > 100, "lanes that never overtake each other prove nothing: {overtaken}");
}
