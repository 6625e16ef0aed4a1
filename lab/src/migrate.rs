//! Shards that move between lanes under load: what it costs packets, and that it costs no packet.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, ShardId};
use rheostat_run::{LaneSample, Move, RunReport, Runtime};
use serde::Serialize;

use crate::error::BenchError;
use crate::testbed::{MOST_PACKETS, MixLoad, SHARDS, lanes};
use crate::witness::Witness;

/// Shards that move together, and at once.
const TOGETHER: usize = 32;
const AT_ONCE: usize = 2 * TOGETHER;
/// How often the migrator looks after shards that are moving.
const STEP: Duration = Duration::from_micros(50);
/// Descriptors of each receive queue, by default: with these, a worker which the operating system
/// suspends for a while loses nothing.
pub const DESCRIPTORS: u32 = 1 << 14;

/// What is to be moved, and under what load.
#[derive(Clone, Debug)]
pub struct MigrateBench {
    /// How many shards to move, at least.
    pub migrations: u64,
    /// Between how many lanes.
    pub lanes: u16,
    /// Packets that arrive per second.
    pub packets_per_second: u64,
    /// Decides which shards move where, and the packets.
    pub seed: u64,
    /// Descriptors of each receive queue, usually [`DESCRIPTORS`].
    pub descriptors: u32,
    /// When to give up.
    pub limit: Duration,
    /// Takes every so many packets away where they leave, without a count, to show that `lost` notices.
    pub sabotage: Option<NonZeroU32>,
}

/// What came of it. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MigrateRow {
    /// Shards moved.
    pub migrations: u64,
    /// Packets that no counter explains: of those that arrived, those that neither left, seen from outside, nor were
    /// dropped for any reason. Anything but 0 is a fault of the runtime.
    pub lost: u64,
    /// Packets dropped, by reason; reasons without drops are left out. A full queue or ring states that more arrived than
    /// the lanes can do while shards move; `hold_full` that packets waited too long for their shard.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets that left more than once, seen from outside.
    pub duplicated: u64,
    /// Packets processed after a younger packet of the same direction of their flow.
    pub reordered: u64,
    /// Packets that came to a shard's former owner after the shard had left.
    pub late_handoff: u64,
    /// How long half of the packets that had to wait for their shard waited, in microseconds; `null` if
    /// none had to.
    pub held_us_p50: Option<f64>,
    /// How long all but one in a hundred of them waited.
    pub held_us_p99: Option<f64>,
    /// Packets that had to wait.
    pub held: u64,
    /// From the start of a move to the shard's arrival, in microseconds; half of them.
    pub moved_us_p50: Option<f64>,
    /// All but one in a hundred of them.
    pub moved_us_p99: Option<f64>,
    /// Packets that arrived.
    pub packets: u64,
    /// Packets that changed lanes.
    pub handoff: u64,
    /// Lanes.
    pub lanes: u16,
    /// How long the run took.
    pub seconds: f64,
}

impl MigrateRow {
    /// Whether every packet left once, in order, or was counted as dropped.
    pub fn is_sound(&self) -> bool {
        self.lost + self.duplicated + self.reordered + self.late_handoff == 0
    }
}

impl MigrateBench {
    /// Runs the firewall on the synthetic mix, and moves shards about at random meanwhile.
    ///
    /// # Errors
    /// [`BenchError`] when the run cannot start, an invariant breaks, or the time is up.
    pub fn run(&self) -> Result<MigrateRow, BenchError> {
        let witness = Witness::new(MOST_PACKETS);
        let runtime = self.start(&witness)?;
        let last = Instant::now() + self.limit;
        let mut rng = StdRng::seed_from_u64(self.seed);
        while runtime.migrator().moved() < self.migrations {
            if Instant::now() > last {
                let (done, asked) = (runtime.migrator().moved(), self.migrations);
                return Err(BenchError::Slow { done, asked, limit: self.limit });
            }
            if runtime.migrator().moving() + TOGETHER <= AT_ONCE {
                let moves = self.choose(&runtime.migrator(), &mut rng);
                runtime.migrate(&moves).expect("a plan with the present owners");
            }
            runtime.step_migrator();
            std::thread::sleep(STEP);
        }
        Ok(self.row(&lanes::finish(runtime)?, &witness))
    }

    fn choose(&self, migrator: &rheostat_run::Migrator, rng: &mut StdRng) -> Vec<Move> {
        let mut shards: Vec<_> =
            (0..SHARDS).map(ShardId).filter(|shard| !migrator.is_moving(*shard)).collect();
        shards.shuffle(rng);
        shards.truncate(TOGETHER);
        let away = |shard: ShardId| {
            let from = migrator.owners()[shard.index()];
            let to = LaneId((from.0 + rng.random_range(1..self.lanes)) % self.lanes);
            Move { shard, from, to }
        };
        shards.into_iter().map(away).collect()
    }

    fn start(&self, witness: &Witness) -> Result<Runtime, BenchError> {
        let load = MixLoad {
            lanes: self.lanes,
            offloading: 0,
            flows: 16_384,
            packets_per_second: self.packets_per_second,
            descriptors: self.descriptors,
            seed: self.seed,
        };
        load.start(|_| witness.sink(self.sabotage))
    }

    fn row(&self, report: &RunReport, witness: &Witness) -> MigrateRow {
        let sum = LaneSample::sum(&report.last.lanes);
        let (packets, dropped) = (report.last.arrived(), || report.last.dropped());
        let entered = packets + sum.originated + sum.copied;
        let explained =
            dropped().map(|(_, count)| count).sum::<u64>() + sum.consumed + sum.held_total();
        let us = |nanos: Option<u64>| nanos.map(|nanos| nanos as f64 / 1e3);
        let times = &report.migration;
        MigrateRow {
            migrations: sum.shards_in,
            lost: entered.saturating_sub(explained + witness.seen()),
            dropped: dropped().map(|(reason, count)| (reason.name(), count)).collect(),
            duplicated: witness.doubled(),
            reordered: sum.reordered,
            late_handoff: sum.late_handoff,
            held_us_p50: us(times.held.quantile(0.5)),
            held_us_p99: us(times.held.quantile(0.99)),
            held: times.held.count(),
            moved_us_p50: us(times.moved.quantile(0.5)),
            moved_us_p99: us(times.moved.quantile(0.99)),
            packets,
            handoff: sum.handoff_out,
            lanes: self.lanes,
            seconds: report.last.seconds,
        }
    }
}

impl std::fmt::Display for MigrateRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |value: Option<f64>| value.map_or("-".into(), |us| format!("{us:.0} us"));
        writeln!(
            f,
            "{} shards moved between {} lanes in {:.1} s, {} packets meanwhile",
            self.migrations, self.lanes, self.seconds, self.packets
        )?;
        writeln!(
            f,
            "lost {}, duplicated {}, reordered {}, late hand-offs {}",
            self.lost, self.duplicated, self.reordered, self.late_handoff
        )?;
        for (reason, count) in &self.dropped {
            writeln!(f, "dropped {count} {reason}")?;
        }
        writeln!(f, "a move takes {} (99 %: {})", us(self.moved_us_p50), us(self.moved_us_p99))?;
        write!(
            f,
            "{} packets waited for their shard, {} (99 %: {})",
            self.held,
            us(self.held_us_p50),
            us(self.held_us_p99)
        )
    }
}
