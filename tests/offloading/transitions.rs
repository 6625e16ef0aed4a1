//! Thousands of flows per seed that leave and come home, while shards move, with rings, pools, hold queues and tables that are far
//! too small, lanes that stall, and lanes that are home to some flows and host to others.
//!
//! A transition is a flow that leaves or that comes home; each that leaves does. A failing seed is named. `RHEO_SEED=n` runs that one alone, `RHEO_SEEDS=n` the first n, and `RHEO_TRANSITIONS=n` until there were as
//! many transitions in each.

use rand::Rng;
use rheostat_base::{DropReason, LaneId, ShardId};
use rheostat_run::Lane;

use crate::migration::late_table::Fences;
use crate::migration::schedule::Schedule;

const SEEDS: u64 = 12;
const TRANSITIONS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Changes where a lane's flows go, or takes some home.
fn meddle(schedule: &mut Schedule) {
    let Schedule { world, migrator, rng, .. } = schedule;
    let lanes = world.lanes.len() as u16;
    let from = LaneId(rng.random_range(0..lanes));
    match rng.random_range(0..8) {
        0 => {
            let to = rng.random_ratio(5, 6).then(|| LaneId(rng.random_range(0..lanes)));
            migrator.offload(from, to, 100);
        }
        1 => {
            let shard = ShardId(rng.random_range(0..migrator.owners().len() as u16));
            world.lanes[from.index()].recall(shard);
        }
        _ => {}
    }
}

fn transitions(schedule: &Schedule) -> u64 {
    let lanes = schedule.world.lanes.iter();
    let of = |lane: &Lane| 2 * lane.counters().flows_offloaded.get() - lane.flows_away() as u64;
    lanes.map(of).sum()
}

/// Packets that each lane holds, and what it may hold: so many of each shard that comes or waits, and of each flow that is away,
/// with those that came back in a ring.
fn holds_within_bounds(schedule: &Schedule, hold: usize) -> bool {
    let shards = schedule.migrator.owners().len();
    schedule.world.lanes.iter().all(|lane| {
        let bound = hold * (2 * shards + 2 * lane.flows_away());
        lane.counters().on_hold.get() <= bound as u64
    })
}

#[test]
fn no_transition_loses_doubles_or_reorders_packets() {
    let seeds = match number("RHEO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("RHEO_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let wanted = number("RHEO_TRANSITIONS").unwrap_or(TRANSITIONS);
    let several = seeds.len() > 8;
    let mut met = [0; DropReason::COUNT];
    let (mut offloaded, mut refused, mut moved, mut away) = (0, 0, 0, 0);
    for seed in seeds {
        let replay = format!(
            "RHEO_SEED={seed} RHEO_TRANSITIONS={wanted} cargo test --test system offloading::transitions repeats it"
        );
        let mut hold = 0;
        let mut schedule = Schedule::new(seed, Fences::Strict, |setup| {
            setup.offloading = 1;
            // Hold queues are as long as rings, and no shorter than a power of two.
            hold = setup.handoff.next_power_of_two();
        });
        let mut steps = 0_u64;
        while transitions(&schedule) < wanted {
            schedule.step();
            meddle(&mut schedule);
            away = away.max(schedule.world.lanes.iter().map(|lane| lane.flows_away()).sum());
            steps += 1;
            assert!(steps < 20_000 * wanted, "flows do not leave: {replay}");
            assert!(holds_within_bounds(&schedule, hold), "too many packets wait: {replay}");
        }
        let outcome = schedule.finish();
        assert_eq!(outcome.outcome.violations, [], "{replay}");
        assert_eq!(outcome.sent_log.doubled, 0, "{replay}");
        let sum = &outcome.outcome.sum;
        assert_eq!(outcome.sent_log.packets, sum.sent, "{replay}");
        assert_eq!((sum.held, sum.on_hold, sum.flows_away), (0, 0, 0), "{replay}");
        assert_eq!((sum.reordered, outcome.sent_log.overtaken), (0, 0), "{replay}");
        for (met, dropped) in met.iter_mut().zip(sum.dropped) {
            *met += dropped;
        }
        offloaded += sum.offloaded;
        refused += sum.refused;
        moved += outcome.moved;
    }
    if several {
        // The narrow places were met, or nothing was shown.
        for reason in [DropReason::HandoffFull, DropReason::HoldFull] {
            assert!(met[reason as usize] > 0, "no packet was dropped as {}", reason.name());
        }
        assert!(
            offloaded > 1_000 && refused > 100 && moved > 1_000 && away > 4,
            "{offloaded} {refused} {moved} {away}"
        );
    }
}
