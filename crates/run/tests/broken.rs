//! A worker that panics, and a device that loses what it is given: both are named at the end of a run.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Clock, DeviceId, ShardId, Time};
use rheostat_io::{Device, DeviceMonitor, NullSink, QueuePair, SimConfig, SimNic, TxQueue};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::{
    Arrivals, Egress, LaneState, LoadReporting, Polling, RunReport, Runtime, RuntimeConfig,
    Service, TimeSource, Violation,
};
use rheostat_state::{FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard};
use rheostat_state::{StateLayout, TableConfig};
use rheostat_steer::{HashKey, IndirectionTable, Orientation, Steering};
use rheostat_traffic::{Arrival, Source};

const COUNT: u64 = 100;

struct Datagrams(u64);

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0 = self.0.checked_sub(1)?;
        let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let udp = Transport::Udp { ports: (1_000, 53) };
        *frame = FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec();
        let len = frame.len();
        Some(Arrival { time: Time::ZERO, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

/// Sends everything back, until a packet on which it panics.
struct Echo {
    seen: u64,
    panics_at: u64,
}

impl Service for Echo {
    type Local = ();

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, lane: &mut LaneState<'_, ()>, out: &mut Egress) {
        arrivals.drain(|packet, _| {
            self.seen += 1;
            assert!(self.seen != self.panics_at, "packet {} was too much", self.seen);
            out.send(DeviceId(0), packet, lane.pool, lane.counters);
        });
    }

    fn relay(&mut self, _: &mut Burst, _: &mut LaneState<'_, ()>, _: &mut Egress, _: Time) {
        unreachable!("a service with state is given arrivals")
    }

    fn tick(&mut self, _: &mut LaneState<'_, ()>, _: &mut Egress, _: Time) {}

    fn finish(&mut self, _: &mut LaneState<'_, ()>, _: &mut Egress, _: Time) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// A device whose transmit queue takes one packet in ten without sending or counting it.
struct Lossy(Box<dyn Device>);

struct LossyTx(Box<dyn TxQueue>, u64);

impl TxQueue for LossyTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let offered = burst.len();
        for packet in burst.take() {
            self.1 += 1;
            if self.1.is_multiple_of(10) { pool.free(packet) } else { burst.push(packet) }
        }
        let kept = burst.len();
        let sent = self.0.send(burst, pool, now);
        assert_eq!(sent, kept, "the device below has room");
        offered
    }
}

impl Device for Lossy {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let lossy = |pair: QueuePair| QueuePair { rx: pair.rx, tx: Box::new(LossyTx(pair.tx, 0)) };
        self.0.queues().into_iter().map(lossy).collect()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.0.table()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.0.monitor()
    }
}

fn run(panics_at: u64, is_lossy: bool) -> RunReport {
    let pool = Mempool::new(&MempoolConfig { buffers: 512, ..MempoolConfig::default() }).unwrap();
    let steering = Steering::new(&HashKey::MICROSOFT, 1, 1, vec![Orientation::Inside]).unwrap();
    let steering = Arc::new(steering);
    let nic = SimConfig::new("nic", 1, steering.clone());
    let source = Box::new(Datagrams(COUNT));
    let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
    let device: Box<dyn Device> =
        if is_lossy { Box::new(Lossy(Box::new(nic))) } else { Box::new(nic) };
    let hasher = FlowHasher::new([1, 2, 3, 4, 5, 6, 7]);
    let config = RuntimeConfig {
        polling: Polling::Busy,
        lanes: 1,
        workers: vec![None],
        handoff_capacity: 8,
        time: TimeSource::Packet,
        pool,
        steering,
        hasher,
        reporting: LoadReporting::Shards,
    };
    let shard = |id: ShardId| {
        let table = TableConfig { capacity: 8, aliases: false };
        let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher).unwrap();
        let fragments = FragmentTracker::new(FragmentConfig::default());
        Box::new(Shard { id, table, fragments, local: () })
    };
    let service = |_| Echo { seen: 0, panics_at };
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shard).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.join().unwrap()
}

#[test]
fn a_sound_run_has_no_violation() {
    assert_eq!(run(0, false).violations, []);
}

#[test]
fn what_a_device_loses_on_the_way_out_is_named() {
    let lost = Violation::Sent { sent: COUNT, taken: COUNT - COUNT / 10 };
    assert_eq!(run(0, true).violations, [lost]);
}

#[test]
fn a_worker_that_panics_is_named() {
    let violations = run(50, false).violations;
    let message = "packet 50 was too much".to_owned();
    let panicked = Violation::WorkerPanicked { worker: 0, message };
    assert!(violations.contains(&panicked), "{violations:?}");
    // Its shard went down with it, and that is not passed over either.
    assert!(violations.contains(&Violation::Ownership { shard: ShardId(0), owners: 0 }));
}
