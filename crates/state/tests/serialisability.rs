//! Whatever lanes do at the same time, what has committed is as if one transaction had run after the other: in the
//! order of the times at which they took effect, done again by one lane after the other, every operation returns the
//! same. Lanes run programs of random operations on objects of every kind.
//!
//! That the operations do what they should, one after the other, is the matter of `objects.rs`.
//!
//! Timed: threads.

mod history;
mod operation;

use std::sync::atomic::{AtomicU64, Ordering};
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
/// Aborts that they come to at least, as the first lane waits for others in the middle of its transactions.
const MEETINGS: u64 = 100;
/// How often it looks, at most, whether others have committed: they may be waiting for it.
const LOOKS: u32 = 50;

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

    fn commit(&mut self) {
        if let Some(record) = self.record.take()
            && self.txn.commit().is_ok()
        {
            self.history.add(record, self.txn.committed_at());
        }
        self.txn.rest();
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
                None => lanes[lane].commit(),
            }
        }
        lanes.iter_mut().for_each(Lane::commit);
        History::of(lanes.into_iter().map(|lane| lane.history)).replay(&World::new(LANES));
    }
}

/// As above with threads, which meet in memory and not only between operations.
#[test]
fn concurrent_transactions_are_as_if_in_a_row() {
    let mut meetings = 0;
    for seed in 0..RUNS {
        let others = Arc::new(Others::default());
        let world = Arc::new(World::new(LANES));
        let start = Arc::new(Barrier::new(LANES));
        let threads: Vec<_> = (0..LANES)
            .map(|lane| {
                let (world, start, others) = (world.clone(), start.clone(), others.clone());
                thread::spawn(move || {
                    start.wait();
                    run_alone(&world, lane, seed, &others)
                })
            })
            .collect();
        let histories: Vec<_> = threads.into_iter().map(|lane| lane.join().unwrap()).collect();
        let history = History::of(histories);
        assert!(history.len() > 1_000, "{} transactions", history.len());
        history.replay(&World::new(LANES));
        meetings += world.objects.profile().total().aborts;
    }
    assert!(meetings >= MEETINGS, "lanes that do not meet prove nothing: {meetings} aborts");
}

/// What all lanes but the first have done.
#[derive(Default)]
struct Others {
    commits: AtomicU64,
    ended: AtomicU64,
}

impl Others {
    /// Waits until they have committed twice more, if they can.
    fn await_commits(&self) {
        let before = self.commits.load(Ordering::Relaxed);
        for _ in 0..LOOKS {
            let ended = self.ended.load(Ordering::Relaxed) == LANES as u64 - 1;
            if ended || self.commits.load(Ordering::Relaxed) >= before + 2 {
                return;
            }
            thread::yield_now();
        }
    }
}

/// A lane's part of the above: transactions of a few random operations, some of them alone. The first lane has the others
/// commit while its own are under way.
fn run_alone(world: &World, number: usize, seed: u64, others: &Others) -> History {
    let mut rng = SmallRng::seed_from_u64(seed * LANES as u64 + number as u64);
    let mut lane = Lane::new(world, number);
    for round in 0..1_500_u64 {
        if rng.random_ratio(1, 50) {
            lane.txn.make_serial();
        }
        for _ in 0..rng.random_range(1..8) {
            let now = Time::from_nanos(round * 5 + rng.random_range(0..20));
            lane.run(world, Operation::random(&mut rng), now);
            if rng.random_ratio(1, 16) {
                match number {
                    0 => others.await_commits(),
                    _ => thread::yield_now(),
                }
            }
        }
        lane.commit();
        others.commits.fetch_add(u64::from(number > 0), Ordering::Relaxed);
    }
    others.ended.fetch_add(u64::from(number > 0), Ordering::Relaxed);
    lane.history
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
