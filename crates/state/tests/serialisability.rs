//! Whatever lanes do at the same time, what has committed is as if one transaction had run after the other: in the
//! order of the times at which they took effect, done again by one lane after the other, every operation returns the
//! same. Lanes run programs of random operations on objects of every kind.
//!
//! That the operations do what they should, one after the other, is the matter of `objects.rs`.
//!
//! Timed: threads.

mod history;
mod operation;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use crate::serialisability::history::{History, Record};
use crate::serialisability::operation::{Operation, World, operation};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, Time};
use rheostat_state::txn::Txn;

const LANES: usize = 3;
/// Runs on threads.
const RUNS: u64 = 3;
/// Random transactions of each lane in a run.
const ROUNDS: u64 = 1_500;
/// Of so many rounds of the first lane, one has a meeting: what it has read, another lane writes before it commits.
const MEETING_EVERY: u64 = 10;

/// A lane that runs operations, and commits now and then.
struct Lane {
    txn: Txn,
    record: Option<Record>,
    history: History,
}

impl Lane {
    fn new(world: &World, lane: usize) -> Lane {
        let mut txn = Txn::new(&world.objects, LaneId(lane as u16));
        txn.sample_every(1);
        Lane { txn, record: None, history: History::default() }
    }

    /// Runs one operation at `now`. After an abort the next one begins another transaction.
    fn run(&mut self, world: &World, operation: Operation, now: Time) {
        let lane = self.txn.lane();
        let record = self.record.get_or_insert_with(|| {
            self.txn.begin(now);
            Record::new(lane, now)
        });
        match operation.run(world, &mut self.txn) {
            Ok(result) => record.steps.push((operation, result)),
            Err(_) => {
                assert!(self.txn.is_conflicted());
                self.record = None;
            }
        }
    }

    /// Returns whether anything was committed.
    fn commit(&mut self) -> bool {
        let mut committed = false;
        if let Some(record) = self.record.take()
            && self.txn.commit().is_ok()
        {
            self.history.add(record, self.txn.committed_at());
            committed = true;
        }
        self.txn.rest();
        committed
    }
}

/// What happens next: a lane runs an operation, or commits.
fn steps() -> impl Strategy<Value = Vec<(usize, Option<Operation>, u64)>> {
    let step = (0..LANES, prop::option::weighted(0.8, operation()), 0_u64..40);
    prop::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Lanes take turns, operation by operation, in one thread.
    #[test]
    fn interleaved_transactions_are_as_if_in_a_row(steps in steps()) {
        let world = World::new(LANES);
        let mut lanes: Vec<_> = (0..LANES).map(|lane| Lane::new(&world, lane)).collect();
        let mut now = 0;
        for (lane, operation, elapsed) in steps {
            now += elapsed;
            match operation {
                Some(operation) => lanes[lane].run(&world, operation, Time::from_nanos(now)),
                None => {
                    lanes[lane].commit();
                }
            }
        }
        for lane in &mut lanes {
            lane.commit();
        }
        History::of(lanes.into_iter().map(|lane| lane.history)).replay(&World::new(LANES));
    }
}

/// As above with threads, which meet in memory and not only between operations.
#[test]
fn concurrent_transactions_are_as_if_in_a_row() {
    for seed in 0..RUNS {
        let meetings = Arc::new(Meetings::default());
        let world = Arc::new(World::new(LANES));
        let start = Arc::new(Barrier::new(LANES));
        let threads: Vec<_> = (0..LANES)
            .map(|lane| {
                let (world, start, meetings) = (world.clone(), start.clone(), meetings.clone());
                thread::spawn(move || {
                    start.wait();
                    match lane {
                        0 => run_first(&world, seed, &meetings),
                        _ => run_other(&world, lane, seed, &meetings),
                    }
                })
            })
            .collect();
        let histories: Vec<_> = threads.into_iter().map(|lane| lane.join().unwrap()).collect();
        let history = History::of(histories);
        assert!(history.len() > 1_000, "{} transactions", history.len());
        history.replay(&World::new(LANES));
        let aborts = world.objects.profile().total().aborts;
        assert!(aborts >= ROUNDS / MEETING_EVERY, "lanes that do not meet prove nothing: {aborts}");
    }
}

/// Where the first lane asks another to write what it has just read. Requests have numbers from 1 on.
#[derive(Default)]
struct Meetings {
    wanted: AtomicU64,
    /// The latest request that was attended to.
    written: AtomicU64,
    /// Lanes that want to run alone, and so may wait until the first one has ended its transaction.
    alone: AtomicU64,
    /// The first lane wants no more.
    ended: AtomicBool,
}

impl Meetings {
    /// Waits until another lane has written the first element; `false` when that lane may be waiting as well.
    fn await_write(&self, request: u64) -> bool {
        self.wanted.store(request, Ordering::Relaxed);
        loop {
            // Acquire: what was written is there.
            if self.written.load(Ordering::Acquire) == request {
                return true;
            }
            if self.alone.load(Ordering::Relaxed) > 0 {
                return false;
            }
            thread::yield_now();
        }
    }

    /// Writes it, if that is requested.
    fn attend(&self, world: &World, lane: &mut Lane, now: Time) {
        let request = self.wanted.swap(0, Ordering::Relaxed);
        if request > 0 {
            loop {
                lane.run(world, Operation::Write(0, request), now);
                if lane.commit() {
                    break;
                }
            }
            self.written.store(request, Ordering::Release);
        }
    }
}

/// The first lane: random transactions, and meetings.
fn run_first(world: &World, seed: u64, meetings: &Meetings) -> History {
    let mut rng = SmallRng::seed_from_u64(seed * LANES as u64);
    let mut lane = Lane::new(world, 0);
    let mut request = 0;
    for round in 0..ROUNDS {
        let now = Time::from_nanos(round * 5);
        let mut has_met = round % MEETING_EVERY != 0;
        while !has_met {
            request += 1;
            lane.run(world, Operation::ReadElement(0), now);
            // Unless a write that was requested earlier, and comes only now, has got in its way.
            has_met = lane.record.is_some() && meetings.await_write(request);
            lane.run(world, Operation::Write(0, round), now);
            let committed = lane.commit();
            assert!(!(has_met && committed), "what it has read was no longer there");
            thread::yield_now();
        }
        run_random(world, &mut lane, round, &mut rng, meetings);
    }
    meetings.ended.store(true, Ordering::Relaxed);
    lane.history
}

/// Another lane: random transactions, and meetings until the first lane wants no more.
fn run_other(world: &World, number: usize, seed: u64, meetings: &Meetings) -> History {
    let mut rng = SmallRng::seed_from_u64(seed * LANES as u64 + number as u64);
    let mut lane = Lane::new(world, number);
    let mut round = 0;
    while round < ROUNDS || !meetings.ended.load(Ordering::Relaxed) {
        meetings.attend(world, &mut lane, Time::from_nanos(round * 5));
        if round < ROUNDS {
            run_random(world, &mut lane, round, &mut rng, meetings);
            round += 1;
        } else {
            thread::yield_now();
        }
    }
    lane.history
}

/// A transaction of a few random operations, now and then while no other lane runs one.
fn run_random(world: &World, lane: &mut Lane, round: u64, rng: &mut SmallRng, meetings: &Meetings) {
    let alone = rng.random_ratio(1, 50);
    if alone {
        meetings.alone.fetch_add(1, Ordering::Relaxed);
        lane.txn.make_serial();
    }
    for _ in 0..rng.random_range(1..8) {
        let now = Time::from_nanos(round * 5 + rng.random_range(0..20));
        lane.run(world, Operation::random(rng), now);
        if rng.random_ratio(1, 16) {
            thread::yield_now();
        }
    }
    lane.commit();
    if alone {
        meetings.alone.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The check notices a transaction that saw what was not there.
#[test]
#[should_panic(expected = "as if in a row")]
fn a_history_that_cannot_be_is_noticed() {
    let world = World::new(LANES);
    let mut lane = Lane::new(&world, 0);
    for operation in [Operation::Write(0, 5), Operation::ReadElement(0)] {
        lane.run(&world, operation, Time::ZERO);
        lane.commit();
    }
    lane.history.forge();
    History::of([lane.history]).replay(&World::new(LANES));
}
