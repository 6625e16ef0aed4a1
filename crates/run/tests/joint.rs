//! Lanes on two workers that claim packets of one queue and own its shards together.
//!
//! Timed: threads, sleep, clock.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::{Clock, DeviceId, DropReason, LaneId, ShardId};
use rheostat_io::{Device, NullSink, SimConfig, SimNic};
use rheostat_run::runtime::build_lanes;
use rheostat_run::{
    AnyPoolClient, Batch, DeferredWork, LaneSample, LiveMetrics, Metrics, MetricsPart, Migrator,
    Move, MoveError, Output, PacketClient, PoolConfig, RunReport, Runtime, RuntimeConfig, Service,
    ShardSet, StartError, Stepped, Violation,
};
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::{bounce, per_packet};

const PACKETS: u64 = 6_000;
const SHARDS: usize = 4;
/// How long lanes may take to answer; far more than they need.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts packets in their shards, with room for another lane between looking and writing, and panics at one of them.
struct Counting {
    /// Packets of all lanes until then.
    until_panic: Arc<AtomicU64>,
}

impl Service for Counting {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        for (packet, info) in batch.drain() {
            let shard = shards.get_mut(info.shard).expect("a packet meets its shard");
            let seen = shard.split::<u64>().1;
            let before = *seen;
            (0..50).for_each(|_| hint::spin_loop());
            *seen = hint::black_box(before) + 1;
            let left = self.until_panic.fetch_sub(1, Ordering::Relaxed);
            assert_ne!(left, 0, "one packet was too much");
            out.send(DeviceId(0), packet);
        }
    }

    fn metrics(&self, part: MetricsPart<'_>, metrics: &mut Metrics) {
        if let MetricsPart::Shard(shard) = part {
            metrics.add("seen", *shard.local());
        }
    }
}

fn settings(lanes: usize, packets: u64, claimants: usize) -> (RuntimeConfig, Box<dyn Device>) {
    let pool = pool(2 * PACKETS as u32);
    let config = RuntimeConfig { claimants, ..config(lanes, SHARDS, pool.clone()) };
    let mut nic = SimConfig::new("nic", lanes as u16, config.steering.clone());
    // All packets arrive at once, so that both lanes always find some to claim.
    (nic.claimants, nic.descriptors) = (claimants as u16, PACKETS.next_power_of_two() as u32);
    let source = Box::new(Datagrams::new(64, packets));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    (config, Box::new(nic))
}

/// A run; with a number, of so many packets, and then a panic.
fn run(panics_behind: Option<u64>) -> RunReport {
    let (config, device) = settings(2, PACKETS, 2);
    let until_panic = Arc::new(AtomicU64::new(panics_behind.unwrap_or(u64::MAX)));
    let service = |_| Box::new(Counting { until_panic: until_panic.clone() }) as Box<dyn Service>;
    let shards = shards(SHARDS, 64, 0_u64);
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The other lane goes on until the run is told to stop: it meets a packet of the shard soon.
    let dropped = || refused(&runtime.view().sample().lanes);
    let longest = Instant::now() + Duration::from_secs(10);
    while panics_behind.is_some() && dropped() == 0 && Instant::now() < longest {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.join().unwrap()
}

/// Packets dropped because a lane panicked while it had their shard.
fn refused(lanes: &[LaneSample]) -> u64 {
    LaneSample::sum(lanes).dropped[DropReason::HandlerPanic as usize]
}

#[test]
fn lanes_take_turns_at_each_shard_and_no_count_is_lost() {
    let report = run(None);
    assert_eq!(report.violations, []);
    assert_eq!(report.metrics.get("seen"), PACKETS);
    let sum = LaneSample::sum(&report.last.lanes);
    assert_eq!((sum.received, sum.sent, sum.handoff_out), (PACKETS, PACKETS, 0));
    assert!(sum.shard_visits >= PACKETS / 256, "{} visits", sum.shard_visits);
}

#[test]
fn counts_of_all_shards_can_be_read_while_lanes_go_on() {
    for claimants in [1, 2] {
        let (config, device) = settings(2, PACKETS, claimants);
        let until_panic = Arc::new(AtomicU64::new(u64::MAX));
        let service =
            |_| Box::new(Counting { until_panic: until_panic.clone() }) as Box<dyn Service>;
        let shards = shards(SHARDS, 64, 0_u64);
        let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
        while !runtime.is_finished() {
            let LiveMetrics { metrics, missing_shards, .. } = runtime.view().metrics(PATIENCE);
            assert_eq!(missing_shards, 0, "{claimants} claimants");
            assert!(metrics.get("seen") <= PACKETS);
        }
        let counted = runtime.view().metrics(PATIENCE);
        assert_eq!((counted.metrics.get("seen"), counted.missing_shards), (PACKETS, 0));
        let report = runtime.join().unwrap();
        assert_eq!((report.metrics.get("seen"), report.violations), (PACKETS, vec![]));
    }
}

#[test]
fn a_lane_that_panics_loses_no_shard_and_stops_no_other_lane() {
    let report = run(Some(500));
    let violations = report.violations;
    let panicked = |one: &Violation| matches!(one, Violation::WorkerPanicked { message, .. } if message.contains("one packet was too much"));
    assert!(violations.iter().any(panicked), "{violations:?}");
    let lost = |one: &Violation| matches!(one, Violation::Ownership { .. });
    assert!(!violations.iter().any(lost), "{violations:?}");
    assert!(refused(&report.last.lanes) > 0, "no lane works on what may be half changed");
}

#[test]
fn a_joint_shard_that_is_lost_is_named() {
    let (config, device) = settings(2, 1, 2);
    let service = |_| {
        per_packet(|packet, info, shards, out| {
            drop(shards.remove(info.shard));
            out.send(DeviceId(0), packet);
        })
    };
    let shards = shards(SHARDS, 64, 0_u64);
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let violations = runtime.join().unwrap().violations;
    assert!(matches!(violations[..], [Violation::Ownership { owners: 0, .. }]), "{violations:?}");
}

#[test]
fn joint_shards_do_not_move() {
    let (config, device) = settings(2, PACKETS, 2);
    let mut devices = vec![device];
    let shards = shards(SHARDS, 64, 0_u64);
    let mut lanes = build_lanes(&config, &mut devices, |_| bounce(), shards).unwrap();
    let mut migrator = Migrator::new(&mut lanes, Vec::new());
    let homes = [0, 1, 0, 1].map(LaneId);
    assert_eq!(migrator.owners(), homes, "each is where its fragments meet");
    let one = Move { shard: ShardId(1), from: LaneId(1), to: LaneId(0) };
    let refused = migrator.start(&[one], rheostat_base::Time::ZERO);
    assert_eq!(refused, Err(MoveError::Joint(ShardId(1))));
}

/// A service with a client of a pool.
struct Pooled(PacketClient<u8, u8>);

impl Service for Pooled {
    fn process(&mut self, _: &mut Batch, _: &mut ShardSet, _: &mut Output) {}

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for Pooled {
    fn settle(&mut self, _: &mut ShardSet, _: &mut Output) {}

    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        Some(&mut self.0)
    }
}

#[test]
fn services_that_work_with_a_pool_do_not_start_on_joint_shards() {
    for (claimants, starts) in [(1, true), (2, false)] {
        let (config, device) = settings(2, 0, 2);
        let (_pool, clients) =
            Stepped::new(&PoolConfig::new(1, 2, 4), |_| |task: u8| task).unwrap();
        let mut clients = clients.into_iter().map(|client| PacketClient::new(client, SHARDS));
        let service = |_| Box::new(Pooled(clients.next().unwrap())) as Box<dyn Service>;
        let config = RuntimeConfig { claimants, ..config };
        let shards = shards(SHARDS, 64, 0_u64);
        let mut devices = vec![device];
        let built = build_lanes(&config, &mut devices, service, shards);
        assert_eq!(built.is_ok(), starts, "{claimants}");
        assert!(starts || matches!(built.err(), Some(StartError::PoolClient)));
    }
}

#[test]
fn lanes_that_make_no_whole_groups_do_not_start() {
    for (lanes, claimants) in [(2, 0), (2, 3), (4, 3)] {
        let (config, device) = settings(if lanes == 2 { 2 } else { 4 }, 1, 2);
        let config = RuntimeConfig { claimants, ..config };
        let shards = shards(SHARDS, 64, 0_u64);
        let refused = Runtime::start(config, vec![device], Clock::new(), |_| bounce(), shards);
        assert!(matches!(refused.err(), Some(StartError::Claimants { .. })), "{lanes} {claimants}");
    }
}
