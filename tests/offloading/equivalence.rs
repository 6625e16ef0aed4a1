//! What comes of a run does not depend on which flows are away, nor on when they leave and come home.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, ShardId};
use rheostat_packet::LinkType;
use rheostat_run::{Migrator, Move, Unusual};
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
        assert!(left > 1_000 && refused > 300 && offloaded > 5_000 && moved > 100, "{shown:?}");
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

/// Tables of few flows, which are full: what is evicted, and when, is the same.
#[test]
fn full_tables_evict_the_same_flows() {
    let (mut left, mut refused) = (0, 0);
    let narrow = |lanes| Setup { flows: 4, ..Setup::lossless(lanes) };
    for seed in 0..4 {
        let source = || mix(seed, 400, 15_000, 2_000);
        let one = World::open(&narrow(1), source()).run();
        let setup = Setup { offloading: 1, ..narrow(3) };
        let (many, _) = restless(World::open(&setup, source()), &setup, seed);
        assert_eq!((&*one.violations, &*many.violations), (&[][..], &[][..]));
        assert_eq!(difference(&one, &many, LinkType::Ethernet), None, "seed {seed}");
        left += many.sum.flows_offloaded;
        refused += many.sum.refused;
    }
    assert!(left > 100 && refused > 10, "{left} {refused}: nothing was shown");
}

#[test]
fn captures_leave_the_same_whichever_flows_are_away() {
    let mut left = 0;
    let ran = captures::for_each(|capture| {
        left += compare(&capture.name(), capture.link, || Box::new(capture.open())).left;
    });
    assert!(!ran || left > 1_000, "{left} flows left: nothing was shown");
}
