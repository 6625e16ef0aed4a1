//! The whole protocol, threads and all, under many schedules: a NIC, three lanes and the migrator.

use std::sync::Arc as StdArc;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicBool, Ordering};
use rheostat_base::{LaneId, QueueId, Time};
use rheostat_steer::{Fence, GenerationTable, IndirectionTable, RewriteError};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use super::fixture::{A, B, C, Fixture};
use crate::migrate::{Migrator, Move};

const SCHEDULES: usize = 500;
const PACKETS: u32 = 12;
/// Turns of others while a slow packet is on its way.
const SLOW: usize = 40;
const NOW: Time = Time::from_millis(1);

/// A table whose fences pass as they should, or at once.
struct Table {
    inner: GenerationTable,
    is_hasty: bool,
}

impl IndirectionTable for Table {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn read(&self) -> Vec<QueueId> {
        self.inner.read()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        let fence = self.inner.rewrite(entries)?;
        Ok(if self.is_hasty { Fence::new(|| true) } else { fence })
    }
}

/// The flow's shard goes round all lanes while its packets arrive.
fn round_trip(is_hasty: bool) {
    let mut fixture = Fixture::new(false);
    let table = StdArc::new(Table { inner: GenerationTable::new(4, 3), is_hasty });
    table.inner.rewrite(&[QueueId(A as u16); 4]).expect("entries that fit");
    table.inner.acknowledge();
    let mut migrator = Migrator::new(&mut fixture.lanes, vec![table.clone()]);
    let done = Arc::new(AtomicBool::new(false));

    let nic = {
        let (done, queues, bucket) = (done.clone(), fixture.queues.clone(), fixture.shard.index());
        thread::spawn(move || {
            let mut stamps = 0..PACKETS;
            while !done.load(Ordering::Relaxed) || !stamps.is_empty() {
                table.inner.acknowledge();
                if let Some(stamp) = stamps.next() {
                    let queue = table.inner.lookup(bucket);
                    // The packet is on its way to its queue, now and then for as long as a shard moves.
                    let turns = if stamp.is_multiple_of(4) { SLOW } else { 1 };
                    (0..turns).for_each(|_| thread::yield_now());
                    queues[queue.index()].stamps.lock().unwrap().push_back(stamp);
                }
                thread::yield_now();
            }
        })
    };
    let lanes = std::mem::take(&mut fixture.lanes);
    let lanes: Vec<_> = lanes
        .into_iter()
        .map(|mut lane| {
            let done = done.clone();
            thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    lane.poll(NOW);
                    thread::yield_now();
                }
                lane
            })
        })
        .collect();

    for (from, to) in [(A, B), (B, C), (C, A)] {
        let [from, to] = [from, to].map(|lane| LaneId(lane as u16));
        migrator.start(&[Move { shard: fixture.shard, from, to }], NOW).expect("a plan that fits");
        while !migrator.is_idle() {
            migrator.step(NOW);
            thread::yield_now();
        }
    }
    done.store(true, Ordering::Relaxed);
    nic.join().unwrap();
    fixture.lanes = lanes.into_iter().map(|lane| lane.join().unwrap()).collect();
    fixture.arrived = PACKETS.into();
    assert_eq!(fixture.finish(), []);
}

fn explore(scheduler: impl Scheduler + 'static, is_hasty: bool) {
    let mut config = Config::new();
    // Lanes need more than shuttle's coroutines have by default.
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(move || round_trip(is_hasty));
}

#[test]
fn a_shard_goes_round_under_any_schedule() {
    explore(RandomScheduler::new_from_seed(1, SCHEDULES), false);
    explore(PctScheduler::new_from_seed(2, 3, SCHEDULES), false);
}

#[test]
#[should_panic(expected = "Reordered")]
fn hasty_fences_are_found_out() {
    explore(RandomScheduler::new_from_seed(1, 10 * SCHEDULES), true);
}
