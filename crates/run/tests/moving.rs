//! Shards that move between lanes on running workers, up to the end of the run, and workers whose lanes
//! have none.
//!
//! Timed: threads, sleep, clock.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{Clock, DeviceId, LaneId, QueueId, ShardId, Time};
use rheostat_io::{Device, DeviceMonitor, NullSink, Pacing, QueuePair, RxQueue, SimConfig, SimNic};
use rheostat_packet::{Burst, PoolCache};
use rheostat_run::poll::metronome::MetronomeSettings;
use rheostat_run::{LaneSample, Move, QueueMap, RunReport, Runtime, RuntimeConfig};
use rheostat_steer::IndirectionTable;
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::{note_order, per_packet};

const LANES: usize = 3;
const SHARDS: usize = 32;
const FLOWS: u16 = 256;
/// How long to wait for what takes milliseconds where nothing else keeps the lanes from their cores.
const LIMIT: Duration = Duration::from_secs(120);

/// A device that counts how often each of its queues is polled.
struct Counted(Box<dyn Device>, Vec<Arc<AtomicU64>>);

struct CountedRx(Box<dyn RxQueue>, Arc<AtomicU64>);

impl RxQueue for CountedRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.recv(burst, pool, now)
    }

    fn backlog(&self) -> usize {
        self.0.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.wait_fd()
    }
}

impl Device for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn id(&self) -> DeviceId {
        self.0.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let counted = |(pair, polls): (QueuePair, &Arc<AtomicU64>)| QueuePair {
            rx: Box::new(CountedRx(pair.rx, polls.clone())),
            tx: pair.tx,
        };
        self.0.queues().into_iter().zip(&self.1).map(counted).collect()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.0.table()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.0.monitor()
    }
}

/// Lanes on a worker each, and how often each of them polls its device.
fn start() -> (Runtime, Vec<Arc<AtomicU64>>) {
    start_as(|config| config)
}

/// The same, of another configuration.
fn start_as(change: impl FnOnce(RuntimeConfig) -> RuntimeConfig) -> (Runtime, Vec<Arc<AtomicU64>>) {
    let pool = pool(2_048);
    let config = change(config(LANES, SHARDS, pool.clone()));
    let mut nic = SimConfig::new("nic", LANES as u16, config.steering.clone());
    nic.pacing = Pacing::Lossless;
    let source = Box::new(Datagrams::endless(FLOWS));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    let polls: Vec<_> = (0..LANES).map(|_| Arc::default()).collect();
    let device: Box<dyn Device> = Box::new(Counted(Box::new(nic), polls.clone()));
    // Sends everything on, and notes whether flows keep their order.
    let service = |_| {
        per_packet(|packet, info, shards, out| {
            note_order(&packet, info, shards, out);
            out.send(DeviceId(0), packet);
        })
    };
    let shards = shards(SHARDS, usize::from(FLOWS), ());
    (Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap(), polls)
}

/// Moves every shard that `to` gives another lane to that lane.
fn plan(runtime: &Runtime, mut to: impl FnMut(ShardId) -> LaneId) -> Vec<Move> {
    let owners = runtime.migrator().owners().to_vec();
    let owners = owners.into_iter().enumerate();
    owners
        .map(|(shard, from)| (ShardId(shard as u16), from))
        .map(|(shard, from)| Move { shard, from, to: to(shard) })
        .filter(|one| one.from != one.to)
        .collect()
}

/// Waits until no shard is moving.
fn arrive(runtime: &Runtime) {
    let start = Instant::now();
    while !runtime.step_migrator() {
        assert!(start.elapsed() < LIMIT, "shards do not arrive");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Moves shards between the lanes of a run until enough have moved, and on into its end.
fn move_until_the_end(runtime: Runtime) -> RunReport {
    let mut rng = StdRng::seed_from_u64(7);
    let mut anywhere = move |_| LaneId(rng.random_range(0..LANES as u16));
    let received = || LaneSample::sum(&runtime.view().sample().lanes).received;
    while runtime.migrator().moved() < 1_000 || received() <= 10_000 {
        let moves = plan(&runtime, &mut anywhere);
        runtime.migrate(&moves).unwrap();
        arrive(&runtime);
    }
    // The end comes upon more of them.
    let moves = plan(&runtime, &mut anywhere);
    let moved = runtime.migrator().moved() + moves.len() as u64;
    runtime.migrate(&moves).unwrap();
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    let sum = LaneSample::sum(&report.last.lanes);
    assert_eq!((sum.shards_in, sum.shards_out, sum.dropped_total()), (moved, moved, 0));
    assert_eq!(sum.late_handoff, 0);
    assert!(sum.received > 10_000);
    assert_eq!(report.migration.moved.count(), moved);
    report
}

#[test]
fn shards_move_between_running_lanes_until_the_run_ends() {
    move_until_the_end(start().0);
}

#[test]
fn shards_move_between_lanes_that_poll_queues_of_other_numbers() {
    let queues = QueueMap::new([2, 0, 1].map(QueueId));
    move_until_the_end(start_as(|config| RuntimeConfig { queues, ..config }).0);
}

#[test]
fn shards_move_between_lanes_that_workers_share() {
    for workers in [1, 2, 3, 5] {
        let settings = MetronomeSettings::default();
        let change = |config| RuntimeConfig {
            polling: settings.polling(),
            workers: vec![None; workers],
            ..config
        };
        let report = move_until_the_end(start_as(change).0);
        assert_eq!(report.last.polling.workers.len(), workers);
    }
}

#[test]
fn shared_lanes_are_parked_and_come_back() {
    let polling = MetronomeSettings::default().polling();
    let (runtime, _) = start_as(|config| RuntimeConfig { polling, ..config });
    for _ in 0..20 {
        for lanes in [1, LANES as u16] {
            let moves = plan(&runtime, |shard| LaneId(shard.0 % lanes));
            runtime.migrate(&moves).unwrap();
            arrive(&runtime);
            let received = || runtime.view().sample().lanes[usize::from(lanes) - 1].received;
            let (start, before) = (Instant::now(), received());
            while received() == before {
                assert!(start.elapsed() < LIMIT, "no packet comes to the lane");
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(report.last.lanes[1].late_handoff, 0);
}

#[test]
fn packets_reach_the_owners_of_their_shards_by_the_queues_that_these_poll() {
    let queues = QueueMap::new([2, 0, 1].map(QueueId));
    let (runtime, _) = start_as(|config| RuntimeConfig { queues, ..config });
    let start = Instant::now();
    while runtime.view().sample().lanes.iter().any(|lane| lane.received < 100) {
        assert!(start.elapsed() < LIMIT, "a lane receives nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(LaneSample::sum(&report.last.lanes).handoff_out, 0, "no packet was misdirected");
}

#[test]
fn a_lane_without_shards_sleeps_until_it_is_given_one() {
    let (runtime, polls) = start();
    let polled = |lane: usize| polls[lane].load(Ordering::Relaxed);
    let last = LaneId(LANES as u16 - 1);
    let moves = plan(&runtime, |shard| LaneId(shard.0 % last.0));
    runtime.migrate(&moves).unwrap();
    arrive(&runtime);
    // Next to nothing else happens to it while its neighbour polls without end, however long that takes: it looks twice
    // a second whether it has missed something.
    let asleep = (0..100).any(|_| {
        let (start, before) = (Instant::now(), (polled(0), polled(last.index())));
        while polled(0) - before.0 < 1_000 {
            assert!(start.elapsed() < LIMIT, "its neighbour does not poll");
            std::thread::sleep(Duration::from_millis(1));
        }
        (polled(last.index()) - before.1) <= 2 + 4 * start.elapsed().as_secs()
    });
    assert!(asleep, "the lane goes on polling");
    let received = || runtime.view().sample().lanes[last.index()].received;
    let before = received();

    let moves = plan(&runtime, |shard| if shard.0 < 4 { last } else { LaneId(shard.0 % last.0) });
    runtime.migrate(&moves).unwrap();
    arrive(&runtime);
    let start = Instant::now();
    while received() == before {
        assert!(start.elapsed() < LIMIT, "no packet comes to the lane");
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    // The first of the four woke it.
    assert_eq!(report.migration.woken.count(), 1);
}
