//! A run on virtual time in which shards move all the time, and whose every choice follows from a seed.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, ShardId, Time};
use rheostat_io::Pacing;
use rheostat_run::{Lane, Migrator, Move, TimeSource, Unusual};
use rheostat_traffic::{Mix, MixConfig};

use crate::migration::late_table::{Fences, LateTable};
use crate::migration::pauses::{Pause, Pauses};
use crate::migration::sent_log::SentLog;
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Outcome, Setup, World};

/// What a run of moving shards came to.
pub(crate) struct Moved {
    pub(crate) outcome: Outcome,
    pub(crate) sent_log: SentLog,
    /// Shards moved.
    pub(crate) moved: u64,
    /// Times that a lane was left without shards.
    pub(crate) parked: u64,
    /// The most shards that moved together.
    pub(crate) widest: usize,
}

/// Everything in motion.
pub(crate) struct Schedule {
    pub(crate) world: World,
    pub(crate) migrator: Migrator,
    pub(crate) table: Arc<LateTable>,
    pub(crate) rng: StdRng,
    stalled: Vec<u32>,
    latest_table: u32,
    pause: Pause,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    sent_log: SentLog,
    parked: u64,
    widest: usize,
}

/// The places of a run are as narrow as this seed decides.
pub(crate) fn setup(rng: &mut StdRng) -> Setup {
    Setup {
        lanes: rng.random_range(2..=6),
        claimants: 1,
        offloading: 0,
        plans_offloading: false,
        classes: None,
        shards: *[8, 16, 128].choose(rng).expect("one"),
        flows: *[16, 64, 256].choose(rng).expect("one"),
        buffers: *[128, 512, 2_048].choose(rng).expect("one"),
        descriptors: *[4, 16, 128].choose(rng).expect("one"),
        handoff: *[2, 8, 256].choose(rng).expect("one"),
        pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
        time: TimeSource::Poll,
        faults: None,
        pickup: true,
        half_open: 512,
        unusual: Unusual::percent(*[0, 0, 10, 100].choose(rng).expect("one"), 0),
    }
}

impl Schedule {
    /// The run that follows from `seed`, but for what `change` does to its setup.
    pub(crate) fn new(seed: u64, fences: Fences, change: impl FnOnce(&mut Setup)) -> Schedule {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut setup = setup(&mut rng);
        change(&mut setup);
        let mix = MixConfig {
            seed,
            flows: rng.random_range(5..400),
            packets_per_second: *[20_000, 200_000, 1_000_000].choose(&mut rng).expect("one"),
            ..MixConfig::default()
        };
        let (source, pause) = Pauses::new(Mix::new(mix).expect("a mix"));
        let source = Spliced::new(source);
        let mut world = World::open(&setup, Box::new(source));
        let table = LateTable::new(world.table(), fences);
        let migrator = Migrator::new(&mut world.lanes, vec![table.clone()]);
        let latest_table = *[0, 2, 20].choose(&mut rng).expect("one");
        let stalled = vec![0; setup.lanes];
        Schedule {
            world,
            migrator,
            table,
            rng,
            stalled,
            latest_table,
            pause,
            seen: Seen::default(),
        }
    }

    /// Runs until so many shards have moved, and to the end.
    pub(crate) fn run(mut self, migrations: u64) -> Moved {
        let mut steps = 0_u64;
        while self.migrator.moved() < migrations {
            self.step();
            steps += 1;
            if steps.is_multiple_of(256) {
                self.look();
            }
            assert!(steps < 1_000 * migrations, "shards do not arrive");
        }
        // More moves that the end comes upon.
        self.begin_moves();
        self.finish()
    }

    /// A little of everything.
    pub(crate) fn step(&mut self) {
        let rng = &mut self.rng;
        self.world.now += match rng.random_range(0..2_000) {
            0 => {
                let jump = Duration::from_secs(rng.random_range(1..400));
                self.pause.pause(jump);
                jump
            }
            1..20 => Duration::from_micros(rng.random_range(1..200)),
            _ => Duration::from_nanos(rng.random_range(1..3_000)),
        };
        if rng.random_ratio(2, 3) {
            self.world.deliver();
        }
        if rng.random_ratio(1, 80) {
            let lane = rng.random_range(0..self.stalled.len());
            self.stalled[lane] = rng.random_range(1..40);
        }
        for lane in 0..self.stalled.len() {
            if self.stalled[lane] == 0 && rng.random_ratio(1, 2) {
                self.world.poll(lane);
            }
        }
        for turns in &mut self.stalled {
            *turns = turns.saturating_sub(1);
        }
        let lateness = rng.random_range(0..=self.latest_table);
        self.table.step(lateness);
        if rng.random_ratio(2, 3) {
            self.migrator.step(self.world.now);
        }
        let begins = if self.migrator.is_idle() { 0.8 } else { 0.1 };
        if rng.random_bool(begins) {
            self.begin_moves();
        }
    }

    /// Sets shards moving that are not: a few or many, to anywhere, off one lane, or to one lane.
    fn begin_moves(&mut self) {
        let (rng, migrator) = (&mut self.rng, &self.migrator);
        let lanes = self.stalled.len() as u16;
        let mut free: Vec<_> = (0..migrator.owners().len() as u16)
            .map(ShardId)
            .filter(|shard| !migrator.is_moving(*shard))
            .collect();
        free.shuffle(rng);
        let emptied = rng.random_bool(0.2).then(|| LaneId(rng.random_range(0..lanes)));
        let filled = rng.random_bool(0.1).then(|| LaneId(rng.random_range(0..lanes)));
        match emptied {
            Some(lane) => free.retain(|shard| migrator.owners()[shard.index()] == lane),
            None => free.truncate(rng.random_range(1..=migrator.owners().len() / 2)),
        }
        let moves: Vec<_> = free
            .into_iter()
            .map(|shard| {
                let to = filled.unwrap_or_else(|| LaneId(rng.random_range(0..lanes)));
                Move { shard, from: migrator.owners()[shard.index()], to }
            })
            .filter(|one| one.from != one.to)
            .collect();
        self.seen.widest = self.seen.widest.max(moves.len());
        self.migrator.start(&moves, self.world.now).expect("a plan with the present owners");
    }

    /// Notes what has left, and looks whether a shard is in two places.
    fn look(&mut self) {
        self.seen.sent_log.note(&self.world.take_sent());
        let mut seen = vec![0; self.migrator.owners().len()];
        for lane in &self.world.lanes {
            self.seen.parked += u64::from(lane.shards().owned().next().is_none());
            lane.shards().owned().for_each(|shard| seen[shard.index()] += 1);
        }
        for (shard, seen) in seen.into_iter().enumerate() {
            let moves = self.migrator.is_moving(ShardId(shard as u16));
            assert!(seen == 1 || seen == 0 && moves, "shard {shard} has {seen} owners");
        }
    }

    /// Lets shards arrive that are moving, and the lanes run dry.
    pub(crate) fn finish(mut self) -> Moved {
        settle(&mut self);
        self.look();
        let Schedule { world, migrator, seen: Seen { mut sent_log, parked, widest }, .. } = self;
        let outcome = world.finish();
        sent_log.note(&outcome.packets);
        Moved { outcome, sent_log, moved: migrator.moved(), parked, widest }
    }
}

/// Goes on until no shard is moving, or none gets on.
fn settle(schedule: &mut Schedule) {
    for _ in 0..10_000 {
        if schedule.migrator.is_idle() {
            return;
        }
        schedule.table.step(0);
        schedule.world.deliver();
        schedule.migrator.step(schedule.world.now);
        poll_all(&mut schedule.world.lanes, schedule.world.now);
    }
}

/// Polls every lane once.
pub(crate) fn poll_all(lanes: &mut [Lane], now: Time) {
    for lane in lanes {
        lane.poll(now);
    }
}
