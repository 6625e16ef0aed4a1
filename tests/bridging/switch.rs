//! A bridge between simulated NICs, in virtual time: frames that are due arrive, and then every lane runs until nothing is
//! left to do.

use std::sync::Arc;

use rheostat_base::{DeviceId, Time};
use rheostat_functions::Bridge;
use rheostat_functions::bridge::BridgeConfig;
use rheostat_functions::shipped;
use rheostat_io::{Collected, Collector, Device, Driver, Pacing, SimConfig, SimNic};
use rheostat_nf::{DeviceSet, shared_link};
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{LaneSample, Metrics, Routes, RuntimeConfig, TimeSource, Unusual, Violation};
use rheostat_state::txn::Objects;
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::Source;

const SHARDS: usize = 16;

/// What a run came to.
pub(crate) struct Outcome {
    /// What left on each port, in order.
    pub(crate) sent: Vec<Vec<Collected>>,
    pub(crate) counters: LaneSample,
    pub(crate) metrics: Metrics,
    pub(crate) violations: Vec<Violation>,
}

/// Runs a bridge of which each port has a source.
pub(crate) fn run(config: BridgeConfig, lanes: usize, ports: Vec<Box<dyn Source>>) -> Outcome {
    run_with(Unusual::default(), config, lanes, ports)
}

/// The same, with some packets that do not take the fast path.
pub(crate) fn run_with(
    unusual: Unusual,
    config: BridgeConfig,
    lanes: usize,
    ports: Vec<Box<dyn Source>>,
) -> Outcome {
    let pool = MempoolConfig { buffers: 4_096, ..MempoolConfig::default() };
    let pool = Mempool::new(&pool).expect("memory for packets");
    let objects = Objects::new(lanes);
    let bridge = Bridge::new(config, &objects);
    let chain = shipped::chain(vec![shared_link(bridge, &objects)]).expect("no state");
    let orientations = vec![Orientation::Inside; ports.len()];
    let steering = Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, orientations);
    let steering = Arc::new(chain.steering_for(steering.expect("sizes that fit")).expect("a set"));
    let collectors: Vec<_> = ports.iter().map(|_| Collector::new()).collect();
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    let mut steppers = Vec::new();
    for (number, source) in ports.into_iter().enumerate() {
        let mut nic = SimConfig::new(format!("port {number}"), lanes as u16, steering.clone());
        nic.device = DeviceId(number as u8);
        nic.driver = Driver::Stepped;
        nic.pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };
        let sinks = &collectors[number];
        let mut nic = SimNic::open(nic, source, |queue| sinks.sink(queue), &pool).expect("a NIC");
        steppers.push(nic.stepper().expect("a stepped NIC has a stepper"));
        devices.push(Box::new(nic));
    }
    let hasher = FlowHasher::fixed();
    let table = TableConfig { capacity: 1, aliases: false };
    let fragments = FragmentConfig::default();
    let made = chain.make_shards(&steering, table, hasher, fragments, 2);
    let made = made.expect("memory for shards");
    let config = RuntimeConfig {
        workers: vec![None],
        time: TimeSource::Packet,
        ..RuntimeConfig::new(lanes, pool.clone(), steering, hasher)
    };
    let routes = Routes((0..devices.len() as u8).map(DeviceId).collect());
    let service = |lane| chain.service(lane, &routes, None);
    let mut lanes = build_lanes(&config, &mut devices, service, made).expect("lanes fit");
    lanes.iter_mut().for_each(|lane| lane.treat_as_unusual(unusual));
    let mut cache = PoolCache::new(pool.clone());
    let mut now = Time::ZERO;
    loop {
        let mut work = 0;
        for stepper in &mut steppers {
            work += stepper.deliver_until(now, &mut cache);
        }
        work += lanes.iter_mut().map(|lane| lane.poll(now).packets).sum::<usize>();
        if work > 0 {
            continue;
        }
        match steppers.iter_mut().filter_map(|stepper| stepper.next_arrival(now)).min() {
            Some(due) => now = now.max(due),
            None => break,
        }
    }
    run_dry(&mut lanes, now);
    let mut metrics = Metrics::default();
    lanes[0].add_shared_metrics(&mut metrics);
    let counters: Vec<_> = devices.iter().map(|device| device.monitor().counters()).collect();
    let found = remains(&lanes, &counters, SHARDS);
    let sum = LaneSample::sum(&found.lanes);
    drop((lanes, devices, steppers, cache));
    let (buffers, buffers_home) = (pool.capacity(), pool.available());
    let violations = Remains { buffers, buffers_home, ..found }.check();
    let sent = collectors.iter().map(Collector::drain).collect();
    Outcome { sent, counters: sum, metrics, violations }
}

/// A bridge of so many ports that forgets no station.
pub(crate) fn config(ports: usize) -> BridgeConfig {
    BridgeConfig {
        stations: 2_000,
        ageing: std::time::Duration::from_secs(100 * 365 * 86_400),
        ..BridgeConfig::new(DeviceSet::first(ports))
    }
}
