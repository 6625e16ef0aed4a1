//! What comes of a run does not depend on where its shards are, or that they move: each flow's packets
//! and all figures are those of one lane that keeps everything.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{DeviceId, LaneId, ShardId};
use rheostat_packet::LinkType;
use rheostat_run::{Batch, Migrator, Move, Output, Service, ServiceSpec, ShardSet, Unusual};
use rheostat_traffic::{Mix, MixConfig, Source};

use crate::migration::schedule::poll_all;
use rheostat_testkit::flows::{Flows, difference};
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};

const SEEDS: u64 = 6;

/// A mix with fragments and ICMP errors, which take other ways than the rest of their flows.
fn mix(seed: u64) -> Box<dyn Source> {
    let mix = MixConfig { seed, flows: 300, packets: Some(20_000), ..MixConfig::default() };
    Box::new(Spliced::new(Mix::new(mix).expect("a mix")))
}

fn setup(lanes: u16) -> Setup {
    let unusual = Unusual::percent(if lanes > 2 { 30 } else { 0 }, 1);
    Setup { unusual, ..Setup::lossless(lanes.into()) }
}

/// Without loss, while shards move between lanes all the time. Returns how many did.
fn moving(world: World, seed: u64) -> (Outcome, u64) {
    moving_while(world, seed, |_| ())
}

/// The same, with something that happens before each round of polls.
pub(crate) fn moving_while(
    mut world: World,
    seed: u64,
    mut happens: impl FnMut(&World),
) -> (Outcome, u64) {
    let lanes = world.lanes.len() as u16;
    let table = world.table();
    let mut migrator = Migrator::new(&mut world.lanes, vec![table]);
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        let delivered = world.deliver();
        happens(&world);
        for lane in 0..lanes {
            if rng.random_ratio(2, 3) {
                world.poll(lane.into());
            }
        }
        migrator.step(world.now);
        let shard = ShardId(rng.random_range(0..migrator.owners().len() as u16));
        let to = LaneId(rng.random_range(0..lanes));
        let from = migrator.owners()[shard.index()];
        if !migrator.is_moving(shard) && from != to {
            migrator.start(&[Move { shard, from, to }], world.now).expect("a plan with the owners");
        }
        if delivered == 0 && world.next_arrival().is_none() {
            break;
        }
    }
    while !migrator.is_idle() {
        world.deliver();
        migrator.step(world.now);
        poll_all(&mut world.lanes, world.now);
    }
    (world.finish(), migrator.moved())
}

#[test]
fn where_shards_are_makes_no_difference() {
    for seed in 0..SEEDS {
        let one = World::open(&Setup::lossless(1), mix(seed)).run();
        assert_eq!(one.violations, []);
        for lanes in [2, 5] {
            let (many, moved) = moving(World::open(&setup(lanes), mix(seed)), seed);
            assert_eq!(many.violations, [], "seed {seed}, {lanes} lanes");
            assert!(moved > 100 && many.sum.flows_in > 100, "{moved} moved: nothing was shown");
            let difference = difference(&one, &many, LinkType::Ethernet);
            assert_eq!(difference, None, "seed {seed}, {lanes} lanes");
            assert_eq!(Flows::overtaken(&many.packets, LinkType::Ethernet), 0);
        }
    }
}

/// Forwards everything and keeps nothing.
struct Forwarding;

impl Service for Forwarding {
    fn spec(&self) -> ServiceSpec {
        ServiceSpec { is_stateful: false, ..ServiceSpec::default() }
    }

    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, out: &mut Output) {
        for (packet, _) in batch.drain() {
            out.send(DeviceId(0), packet);
        }
    }
}

/// Packets of a dozen flows, which follow each other so closely that the next one of a flow comes before a lane has processed those
/// before it.
fn dense(seed: u64) -> Box<dyn Source> {
    let mix = MixConfig { seed, flows: 12, packets: Some(20_000), ..MixConfig::default() };
    Box::new(Mix::new(mix).expect("a mix"))
}

fn forwarding(lanes: u16, source: Box<dyn Source>) -> World {
    World::with(&setup(lanes), source, |_, _| Forwarding, |shard| shard)
}

#[test]
fn packets_of_a_service_without_state_move_with_their_shards_and_keep_their_order() {
    let sources: [fn(u64) -> Box<dyn Source>; 2] = [mix, dense];
    for (seed, source) in (0..SEEDS).flat_map(|seed| sources.map(|source| (seed, source))) {
        let one = forwarding(1, source(seed)).run();
        assert_eq!((&*one.violations, one.sum.sent), (&[][..], one.arrived));
        for lanes in [2, 5] {
            let (many, moved) = moving(forwarding(lanes, source(seed)), seed);
            assert_eq!(many.violations, [], "seed {seed}, {lanes} lanes");
            assert!(moved > 100 && many.sum.shards_in > 100, "{moved} moved: nothing was shown");
            let [expected, got] =
                [&one, &many].map(|run| Flows::of(&run.packets, LinkType::Ethernet));
            assert_eq!(expected.differs_from(&got), None, "seed {seed}, {lanes} lanes");
            assert_eq!(Flows::overtaken(&many.packets, LinkType::Ethernet), 0);
        }
    }
}
