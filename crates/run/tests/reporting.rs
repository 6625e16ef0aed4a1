//! Lanes tell as much of their load as the run is to report, and no more.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Clock, DeviceId, ShardId, Time};
use rheostat_io::{Device, NullSink, SimConfig, SimNic};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, LinkType, Mempool, MempoolConfig};
use rheostat_run::{
    Arrivals, Egress, LaneState, LoadReporting, Polling, Runtime, RuntimeConfig, Service,
    TimeSource,
};
use rheostat_state::{FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard};
use rheostat_state::{StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::{Arrival, Source};

const COUNT: u64 = 100;
const SHARDS: usize = 4;

/// Datagrams of as many flows as there are left.
struct Datagrams(u64);

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0 = self.0.checked_sub(1)?;
        let (from, to) = ([10, 0, 0, self.0 as u8].into(), [192, 0, 2, 1].into());
        let udp = Transport::Udp { ports: (1_000, 53) };
        *frame = FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec();
        let len = frame.len();
        Some(Arrival { time: Time::ZERO, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

/// Sends everything back.
struct Echo;

impl Service for Echo {
    type Local = ();

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, lane: &mut LaneState<'_, ()>, out: &mut Egress) {
        arrivals.drain(|packet, _| out.send(DeviceId(0), packet, lane.pool, lane.counters));
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

/// What the lanes of a run told: whether they were timed, whether they had work, and the packets of each
/// shard.
fn told(reporting: LoadReporting) -> (bool, bool, Vec<u64>) {
    let pool = Mempool::new(&MempoolConfig { buffers: 512, ..MempoolConfig::default() }).unwrap();
    let steering =
        Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, vec![Orientation::Inside]).unwrap();
    let steering = Arc::new(steering);
    let nic = SimConfig::new("nic", 1, steering.clone());
    let nic = SimNic::open(nic, Box::new(Datagrams(COUNT)), |_| Box::new(NullSink), &pool).unwrap();
    let device: Box<dyn Device> = Box::new(nic);
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
        reporting,
    };
    let shard = |id: ShardId| {
        let table = TableConfig { capacity: 8, aliases: false };
        let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher).unwrap();
        let fragments = FragmentTracker::new(FragmentConfig::default());
        Box::new(Shard { id, table, fragments, local: () })
    };
    let runtime = Runtime::start(config, vec![device], Clock::new(), |_| Echo, shard).unwrap();
    while !runtime.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let view = runtime.view();
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    let lane = &report.last.lanes[0];
    assert_eq!((lane.received, lane.sent), (COUNT, COUNT), "whatever is told, all is done");
    let packets = view.loads()[0].iter().map(|load| load.packets.get()).collect();
    (lane.total_ns > 0, lane.busy_ns > 0, packets)
}

#[test]
fn a_run_reports_what_it_is_asked_to() {
    assert_eq!(told(LoadReporting::Nothing), (false, false, vec![]));
    assert_eq!(told(LoadReporting::Lanes), (true, true, vec![]));
    let (timed, worked, packets) = told(LoadReporting::Shards);
    assert!(timed && worked);
    assert_eq!((packets.len(), packets.iter().sum()), (SHARDS, COUNT));
}
