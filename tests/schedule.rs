//! Deterministic simulation: the whole runtime on virtual time, with rings, pools and tables that are
//! far too small, and lanes that run in random order and stall. Whatever the schedule, every packet is
//! accounted for, flows keep their order, and every buffer comes home.
//!
//! A failing seed is named. `RHEO_SEED=n cargo test --test system schedule` runs that one alone, `RHEO_SEEDS=n` the first n.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::{DropReason, Time};
use rheostat_io::Pacing;
use rheostat_packet::LinkType;
use rheostat_run::{TimeSource, Unusual};
use rheostat_testkit::flows::Flows;
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};
use rheostat_traffic::{Mix, MixConfig};

const SEEDS: u64 = 250;
const PACKETS: u64 = 3_000;

/// A run whose every choice follows from `seed`.
fn run(seed: u64) -> Outcome {
    let mut rng = StdRng::seed_from_u64(seed);
    let lanes = rng.random_range(1..=5);
    let setup = Setup {
        lanes,
        claimants: 1,
        offloading: 0,
        plans_offloading: false,
        classes: None,
        shards: *[8, 16, 128].choose(&mut rng).expect("one"),
        flows: *[4, 16, 256].choose(&mut rng).expect("one"),
        buffers: *[96, 256, 2_048].choose(&mut rng).expect("one"),
        descriptors: *[4, 16, 128].choose(&mut rng).expect("one"),
        handoff: *[2, 8, 256].choose(&mut rng).expect("one"),
        pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
        time: TimeSource::Poll,
        faults: None,
        pickup: rng.random(),
        half_open: 512,
        unusual: Unusual::percent(*[0, 0, 10, 100].choose(&mut rng).expect("one"), 0),
    };
    let mix = MixConfig {
        seed,
        flows: rng.random_range(5..400),
        packets: Some(PACKETS),
        packets_per_second: 1_000_000,
        ..MixConfig::default()
    };
    let source = Spliced::new(Mix::new(mix).expect("a mix"));
    let mut world = World::open(&setup, Box::new(source));
    let mut stalled = vec![0; lanes];
    loop {
        // Now and then time jumps, so that flows and fragments expire in the middle.
        let step = match rng.random_range(0..400) {
            0 => Duration::from_secs(rng.random_range(1..400)),
            1..40 => Duration::from_micros(rng.random_range(1..300)),
            _ => Duration::from_nanos(rng.random_range(1..9_000)),
        };
        world.now += step;
        if rng.random_ratio(2, 3) {
            world.deliver();
        }
        if rng.random_ratio(1, 60) {
            stalled[rng.random_range(0..lanes)] = rng.random_range(1..80);
        }
        let lane = rng.random_range(0..lanes);
        if stalled[lane] == 0 {
            world.poll(lane);
        }
        for turns in &mut stalled {
            *turns = u32::saturating_sub(*turns, 1);
        }
        if world.next_arrival().is_none() {
            return world.finish();
        }
    }
}

fn check(seed: u64) -> Outcome {
    let outcome = run(seed);
    let replay =
        format!("seed {seed}; RHEO_SEED={seed} cargo test --test system schedule repeats it");
    assert_eq!(outcome.violations, [], "{replay}");
    assert_eq!(outcome.sum.reordered, 0, "{replay}");
    assert_eq!(Flows::overtaken(&outcome.packets, LinkType::Ethernet), 0, "{replay}");
    assert_eq!(outcome.sum.held, 0, "{replay}");
    assert_eq!(outcome.sum.received, outcome.arrived - outcome.device_dropped, "{replay}");
    assert!(outcome.arrived >= PACKETS, "{replay}");
    assert_eq!(outcome.packets.len() as u64, outcome.sum.sent, "{replay}");
    outcome
}

#[test]
fn no_schedule_loses_a_packet_or_the_order_of_a_flow() {
    if let Ok(seed) = std::env::var("RHEO_SEED") {
        let outcome = check(seed.parse().expect("RHEO_SEED is a number"));
        println!("{:?}", outcome.sum);
        return;
    }
    let mut met = [0; DropReason::COUNT];
    let (mut device_dropped, mut handed_off, mut ended, mut sent) = (0, 0, 0, 0);
    let seeds = std::env::var("RHEO_SEEDS").map(|text| text.parse().expect("a number"));
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let outcome = check(seed);
        for (met, dropped) in met.iter_mut().zip(outcome.sum.dropped) {
            *met += dropped;
        }
        device_dropped += outcome.device_dropped;
        handed_off += outcome.sum.handoff_in;
        ended += outcome.sum.flows_ended;
        sent += outcome.sum.sent;
    }
    // The narrow places were met, or nothing was shown.
    for reason in [
        DropReason::HandoffFull,
        DropReason::TableFull,
        DropReason::FragmentIncomplete,
        DropReason::TcpInvalid,
        DropReason::Denied,
    ] {
        assert!(met[reason as usize] > 0, "no packet was dropped as {}", reason.name());
    }
    assert!(device_dropped > 1_000 && handed_off > 1_000 && ended > 1_000 && sent > 10_000);
}

#[test]
fn a_seed_repeats_itself() {
    let (first, second) = (run(12), run(12));
    assert_eq!(first.packets, second.packets);
    assert_eq!(first.sum, second.sum);
    assert_ne!(first.packets, run(13).packets);
}
