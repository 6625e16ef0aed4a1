//! Any packets through the firewall on two lanes: nothing panics, every packet is accounted for, every
//! buffer comes home, and what leaves is what came in or what the firewall itself wrote.
#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rheostat_base::{CoreId, DeviceId, ShardId, Time};
use rheostat_io::{Collector, Device, Driver, Pacing, SimConfig, SimNic};
use rheostat_nf::function::Firewall;
use rheostat_nf::function::firewall::{Action, FirewallConfig, RuleSet, TcpOptions};
use rheostat_nf::{ChainService, Seeds, Stage, make_shards};
use rheostat_packet::{LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{Routes, RuntimeConfig, TimeSource};
use rheostat_state::{FlowHasher, FragmentConfig, StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, PrefixList, Steering};
use rheostat_traffic::{Arrival, Source};

struct Frames {
    frames: std::vec::IntoIter<(u16, Vec<u8>)>,
    now: Time,
}

impl Source for Frames {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (pass, bytes) = self.frames.next()?;
        self.now += Duration::from_millis(u64::from(pass) * 10);
        *frame = bytes;
        let link = if pass % 2 == 0 { LinkType::Ethernet } else { LinkType::Raw };
        let len = frame.len();
        Some(Arrival { time: self.now, len, wire_len: len as u32, link })
    }
}

/// The steering, whose tables take long to make.
fn steering() -> Arc<Steering> {
    static STEERING: OnceLock<Arc<Steering>> = OnceLock::new();
    let make = || {
        let inside: PrefixList =
            ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).into_iter().collect();
        let orientations = vec![Orientation::ByPrefix(inside)];
        Arc::new(Steering::new(&HashKey::MICROSOFT, 128, 4, orientations).unwrap())
    };
    STEERING.get_or_init(make).clone()
}

fuzz_target!(|input: (bool, Vec<(u16, Vec<u8>)>)| {
    let (pickup, frames) = input;
    if frames.len() > 40 || frames.iter().any(|(_, bytes)| bytes.len() > 512) {
        return;
    }
    let pool = Mempool::new(&MempoolConfig { buffers: 128, data_room: 704, headroom: 0 }).unwrap();
    let mut cache = PoolCache::new(pool.clone());
    let steering = steering();
    let collector = Collector::new();
    let mut nic = SimConfig::new("nic", 2, steering.clone());
    nic.driver = Driver::Stepped;
    nic.pacing = Pacing::Lossless;
    nic.descriptors = 64;
    let source = Frames { frames: frames.clone().into_iter(), now: Time::ZERO };
    let sinks = collector.clone();
    let mut nic = SimNic::open(nic, Box::new(source), |queue| sinks.sink(queue), &pool).unwrap();
    let mut stepper = nic.stepper().unwrap();
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(nic)];

    let tcp = TcpOptions { pickup, ..TcpOptions::default() };
    // What comes from outside unasked is answered: the way that writes packets is taken, too.
    let rules = RuleSet { default_outside: Action::Reject, ..RuleSet::default() };
    let config = FirewallConfig { rules, tcp, ..FirewallConfig::default() };
    let mut layout = StateLayout::new();
    let chain = Arc::new(Stage::new(Firewall::new(config), &mut layout).unwrap());
    let table = TableConfig { capacity: 4, aliases: false };
    let hasher = FlowHasher::new([1, 2, 3, 4, 5, 6, 7]);
    let fragments = FragmentConfig { held: 8, ..FragmentConfig::default() };
    let seeds = Seeds { shards: 1 };
    let shards = make_shards(&*chain, &steering, table, Arc::new(layout), hasher, fragments, seeds);
    let mut shards: Vec<_> = shards.unwrap().into_iter().map(Some).collect();
    let config = RuntimeConfig {
        lanes: 2,
        workers: vec![None::<CoreId>],
        handoff_capacity: 128,
        time: TimeSource::Packet,
        pool: pool.clone(),
        steering,
        hasher,
    };
    let routes = Routes(vec![DeviceId(0)]);
    let service = |_| ChainService::new(chain.clone(), routes.clone());
    let shard = |id: ShardId| shards[id.index()].take().unwrap();
    let mut lanes = build_lanes(&config, &mut devices, service, shard).unwrap();

    let now = Time::ZERO;
    loop {
        let delivered = stepper.deliver_until(now, &mut cache);
        let polled: usize = lanes.iter_mut().map(|lane| lane.poll(now).packets).sum();
        if delivered + polled == 0 {
            break;
        }
    }
    run_dry(&mut lanes, now);
    let counters = vec![devices[0].monitor().counters()];
    let found = remains(&lanes, &counters, 4);
    drop((lanes, devices, stepper, cache));
    let (buffers, buffers_home) = (pool.capacity(), pool.available());
    let originated: u64 = found.lanes.iter().map(|lane| lane.originated).sum();
    let violations = Remains { buffers, buffers_home, ..found }.check();
    assert_eq!(violations, []);
    assert_eq!(counters[0].arrived, frames.len() as u64);
    let came_in = |bytes: &Vec<u8>| frames.iter().any(|(_, frame)| frame == bytes);
    let left = collector.drain();
    let written = left.iter().filter(|packet| !came_in(&packet.bytes)).count() as u64;
    assert!(written <= originated, "{written} packets were changed or made, {originated} counted");
});
