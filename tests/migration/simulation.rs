//! Thousands of moves per seed, with rings, pools, hold queues and tables that are far too small, lanes
//! that stall or have no shard, and tables that are rewritten late.
//!
//! A failing seed is named. `RHEO_SEED=n` runs that one alone, `RHEO_SEEDS=n` the first n, and
//! `RHEO_MIGRATIONS=n` as many moves for each.

use rheostat_base::DropReason;

use crate::migration::late_table::Fences;
use crate::migration::schedule::{Moved, Schedule};

const SEEDS: u64 = 24;
const MIGRATIONS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// The seeds to run, and moves for each.
pub(crate) fn effort() -> (Vec<u64>, u64) {
    let seeds = match number("RHEO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("RHEO_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    (seeds, number("RHEO_MIGRATIONS").unwrap_or(MIGRATIONS))
}

/// What must hold with whatever fences.
fn check(seed: u64, moved: &Moved, migrations: u64) -> String {
    let replay = format!(
        "RHEO_SEED={seed} RHEO_MIGRATIONS={migrations} cargo test --test system migration::simulation repeats it"
    );
    let sum = &moved.outcome.sum;
    assert_eq!(moved.sent_log.doubled, 0, "{replay}");
    assert_eq!(moved.sent_log.packets, sum.sent, "{replay}");
    assert_eq!(sum.originated, 0, "{replay}");
    assert_eq!((sum.held, sum.on_hold), (0, 0), "{replay}");
    assert_eq!((sum.shards_in, sum.shards_out), (moved.moved, moved.moved), "{replay}");
    assert!(moved.moved >= migrations, "{replay}");
    replay
}

#[test]
fn no_move_loses_doubles_or_reorders_packets() {
    let (seeds, migrations) = effort();
    let several = seeds.len() > 8;
    let mut met = [0; DropReason::COUNT];
    let (mut parked, mut widest, mut flows, mut late) = (0, 0, 0, 0);
    for seed in seeds {
        let moved = Schedule::new(seed, Fences::Strict, |_| ()).run(migrations);
        let replay = check(seed, &moved, migrations);
        assert_eq!(moved.outcome.violations, [], "{replay}");
        assert_eq!((moved.outcome.sum.reordered, moved.sent_log.overtaken), (0, 0), "{replay}");
        for (met, dropped) in met.iter_mut().zip(moved.outcome.sum.dropped) {
            *met += dropped;
        }
        met[DropReason::QueueFull as usize] += moved.outcome.device_dropped;
        parked += moved.parked;
        widest = widest.max(moved.widest);
        flows += moved.outcome.sum.flows_in;
        late += moved.outcome.sum.late_handoff;
    }
    assert_eq!(late, 0, "behind a strict fence, nothing comes late");
    if several {
        // The narrow places were met, or nothing was shown.
        for reason in [DropReason::HandoffFull, DropReason::HoldFull, DropReason::QueueFull] {
            assert!(met[reason as usize] > 0, "no packet was dropped as {}", reason.name());
        }
        assert!(parked > 0 && widest > 40 && flows > 1_000, "{parked} {widest} {flows}");
    }
}

/// With fences that pass at once, packets come late, and may be overtaken: all of it is counted, and none
/// is lost.
#[test]
fn without_waiting_for_fences_packets_come_late_and_none_is_lost() {
    let (seeds, migrations) = effort();
    let (mut late, mut reordered) = (0, 0);
    for seed in seeds {
        let moved = Schedule::new(seed, Fences::Fast, |_| ()).run(migrations);
        let replay = check(seed, &moved, migrations);
        let others =
            moved.outcome.violations.iter().filter(|violation| {
                !matches!(violation, rheostat_run::Violation::Reordered { .. })
            });
        assert_eq!(others.count(), 0, "{:?} {replay}", moved.outcome.violations);
        // What the lanes count is what can be seen, but for packets of flows that ended in between and
        // those that functions dropped.
        assert!(moved.outcome.sum.reordered > 0 || moved.sent_log.overtaken == 0, "{replay}");
        late += moved.outcome.sum.late_handoff;
        reordered += moved.outcome.sum.reordered;
    }
    assert!(late > reordered && reordered > 0, "{late} late, {reordered} reordered");
}

#[test]
fn a_seed_repeats_itself() {
    let run = |seed| {
        let moved = Schedule::new(seed, Fences::Strict, |_| ()).run(100);
        (moved.outcome.sum, moved.moved)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
