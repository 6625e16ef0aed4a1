//! Thousands of flows that leave their lanes and come home under load, while shards move.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, ShardId};
use rheostat_run::{LaneSample, Migrator, Move, RunReport, Runtime};

use super::numbers::TraceNumbers;
use super::sabotage::Sabotaged;
use super::{OffloadBench, Transitions};
use crate::error::BenchError;
use crate::migrate::DESCRIPTORS;
use crate::testbed::{MOST_PACKETS, MixLoad, SHARDS};

/// Working lanes, then an offloading one.
const WORKING: u16 = 2;
const LANES: u16 = WORKING + 1;
/// Shards that move together.
const TOGETHER: usize = 8;
/// From one change of what leaves to the next.
const STEP: Duration = Duration::from_millis(2);

/// Runs the firewall on the synthetic mix until so many flows have left and come home.
pub(super) fn run(bench: &OffloadBench) -> Result<Transitions, BenchError> {
    let numbers = TraceNumbers::new(MOST_PACKETS);
    let mut runtime = start(bench, &numbers)?;
    let last = Instant::now() + bench.limit;
    let mut rng = StdRng::seed_from_u64(bench.seed);
    loop {
        // Each flow that leaves comes home.
        let done = 2 * LaneSample::sum(&runtime.sample().lanes).flows_offloaded;
        if done >= bench.transitions {
            break;
        }
        if Instant::now() > last {
            let (asked, limit) = (bench.transitions, bench.limit);
            return Err(BenchError::FewTransitions { done, asked, limit });
        }
        meddle(&runtime, &mut rng);
        runtime.step_migrator();
        std::thread::sleep(STEP);
    }
    let report = runtime.join()?;
    let row = account(&report, &numbers);
    match report.violations.into_iter().next() {
        Some(violation) if bench.sabotage.is_none() => Err(BenchError::Violated(violation)),
        _ => Ok(row),
    }
}

/// Changes where the flows of a lane go, takes them home, or moves shards.
fn meddle(runtime: &Runtime, rng: &mut StdRng) {
    let mut migrator = runtime.migrator();
    let from = LaneId(rng.random_range(0..WORKING));
    match rng.random_range(0..8) {
        0 => _ = migrator.offload(from, None, 0),
        1 => _ = migrator.offload(from, Some(LaneId(1 - from.0)), 100),
        2 if migrator.is_idle() => {
            let moves = choose(&migrator, rng);
            drop(migrator);
            runtime.migrate(&moves).expect("a plan with the present owners");
        }
        _ => _ = migrator.offload(from, Some(LaneId(WORKING)), 100),
    }
}

/// Some shards that are to change places between the working lanes.
fn choose(migrator: &Migrator, rng: &mut StdRng) -> Vec<Move> {
    let mut shards: Vec<_> = (0..SHARDS).map(ShardId).collect();
    shards.shuffle(rng);
    shards.truncate(TOGETHER);
    let cross = |shard: ShardId| {
        let from = migrator.owners()[shard.index()];
        Move { shard, from, to: LaneId((from.0 + 1) % WORKING) }
    };
    shards.into_iter().map(cross).collect()
}

fn start(bench: &OffloadBench, numbers: &TraceNumbers) -> Result<Runtime, BenchError> {
    let load = MixLoad {
        lanes: LANES,
        offloading: usize::from(LANES - WORKING),
        flows: 2_048,
        packets_per_second: bench.packets_per_second,
        descriptors: DESCRIPTORS,
        seed: bench.seed,
    };
    load.start(|_| match bench.sabotage {
        Some(sabotage) => Box::new(Sabotaged::new(numbers.sink(), sabotage)),
        None => numbers.sink(),
    })
}

fn account(report: &RunReport, numbers: &TraceNumbers) -> Transitions {
    let sum = LaneSample::sum(&report.last.lanes);
    let (packets, dropped) = (report.last.arrived(), || report.last.dropped());
    let entered = packets + sum.originated + sum.copied;
    let explained =
        dropped().map(|(_, count)| count).sum::<u64>() + sum.consumed + sum.held_total();
    Transitions {
        transitions: 2 * sum.flows_offloaded,
        lost: entered.saturating_sub(explained + numbers.seen()),
        duplicated: numbers.doubled(),
        // Whatever the lanes have noticed, they have noticed before the packets left.
        reordered: numbers.reordered().max(sum.reordered),
        dropped: dropped().map(|(reason, count)| (reason.name(), count)).collect(),
        migrations: sum.shards_in,
        offloaded: sum.offloaded,
        refused: sum.refused,
        packets,
    }
}
