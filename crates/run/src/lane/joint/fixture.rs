//! Three lanes that take turns at receiving, each with a hardware queue in which packets of a flow of its own wait.

use std::sync::{Arc, Mutex};

use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_io::layer::shared_receive::Sharing;
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair};
use rheostat_packet::Mempool;
use rheostat_state::FlowHasher;
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_testkit::runtime;

use crate::invariant::{Remains, Violation};
use crate::lane::Lane;
use crate::lane::migration::fixture::{Departures, Ordered, Queue};
use crate::runtime::{RuntimeConfig, build_lanes, remains, run_dry};
use crate::service::Service;

pub(super) const LANES: usize = 3;
const SHARDS: usize = 4;
pub(super) const NOW: Time = Time::from_millis(1);

/// Lanes, and packets that wait for them.
pub(super) struct Turns {
    pub(super) lanes: Vec<Lane>,
    pub(super) queues: Vec<Queue>,
    pub(super) departures: Arc<Mutex<Departures>>,
    pool: Mempool,
    pub(super) arrived: u64,
}

impl Turns {
    /// Lanes whose hardware queues have so many packets each.
    pub(super) fn new(sharing: Sharing, packets: [u32; LANES]) -> Turns {
        Turns::running(sharing, packets, |_| Box::new(Ordered))
    }

    /// Lanes with these services.
    pub(super) fn running(
        sharing: Sharing,
        packets: [u32; LANES],
        service: impl FnMut(LaneId) -> Box<dyn Service>,
    ) -> Turns {
        let pool = runtime::pool(128);
        let steering = Steering::new(&HashKey::MICROSOFT, 4, SHARDS, vec![Orientation::Inside]);
        let steering = Arc::new(steering.expect("sizes fit"));
        let config = RuntimeConfig::new(LANES, pool.clone(), steering, FlowHasher::fixed());
        let config = RuntimeConfig { sharing: Some(sharing), ..config };
        let departures = Arc::new(Mutex::new(Departures::default()));
        let queue = |flow| Queue::of_flow(flow).noting(&departures);
        let queues: Vec<_> = (0..LANES as u16).map(queue).collect();
        for (queue, count) in queues.iter().zip(packets) {
            queue.stamps.lock().unwrap().extend(0..count);
        }
        let pair =
            |queue: &Queue| QueuePair { rx: Box::new(queue.clone()), tx: Box::new(queue.clone()) };
        let nic = Nic(queues.iter().map(pair).collect());
        let mut devices: Vec<Box<dyn Device>> = vec![Box::new(nic)];
        let shards = runtime::shards(SHARDS, 8, ());
        let lanes = build_lanes(&config, &mut devices, service, shards);
        let arrived = packets.iter().copied().map(u64::from).sum();
        Turns { lanes: lanes.expect("lanes that fit"), queues, departures, pool, arrived }
    }

    /// Packets that lanes have sent.
    pub(super) fn sent(queues: &[Queue]) -> u64 {
        queues.iter().map(|queue| *queue.sent.lock().unwrap()).sum()
    }

    pub(super) fn finish(mut self) -> Vec<Violation> {
        run_dry(&mut self.lanes, NOW);
        let sent = Turns::sent(&self.queues);
        let device = DeviceCounters { arrived: self.arrived, sent, ..DeviceCounters::default() };
        let found = remains(&self.lanes, &[device], SHARDS);
        drop(self.lanes);
        let (buffers, buffers_home) = (self.pool.capacity(), self.pool.available());
        let violations = Remains { buffers, buffers_home, ..found }.check();
        // Packets that enter out of order leave so, too.
        if violations.is_empty() {
            let reordered = self.departures.lock().unwrap().reordered;
            assert_eq!(reordered, 0, "packets left behind younger ones");
        }
        violations
    }
}

struct Nic(Vec<QueuePair>);

impl Device for Nic {
    fn name(&self) -> &str {
        "nic"
    }

    fn id(&self) -> DeviceId {
        DeviceId(0)
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.0)
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(Quiet)
    }
}

struct Quiet;

impl DeviceMonitor for Quiet {
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }

    fn is_exhausted(&self) -> bool {
        true
    }

    fn stop(&self) {}
}
