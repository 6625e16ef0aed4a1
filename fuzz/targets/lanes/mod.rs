//! Any packets through a chain on two lanes: nothing panics, every packet is accounted for, and every buffer
//! comes home.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_io::{Collected, Collector, Device, Driver, Pacing, SimConfig, SimNic};
use rheostat_nf::{AnyChain, Chain};
use rheostat_packet::{LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{LaneSample, Routes, RuntimeConfig, TimeSource};
use rheostat_state::{FlowHasher, FragmentConfig, StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, PrefixList, Steering};
use rheostat_traffic::{Arrival, Source};

/// Frames with the time that passes before each.
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

/// Inside is 10.0.0.0/8 and fd00::/8.
pub fn orientations() -> Vec<Orientation> {
    let inside: PrefixList =
        ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).into_iter().collect();
    vec![Orientation::ByPrefix(inside)]
}

/// A chain with what belongs to it: made once, because its tables take long.
#[allow(dead_code, reason = "each target uses a part")]
pub struct Made {
    pub chain: AnyChain,
    pub steering: Arc<Steering>,
}

/// Makes a chain what [`run`] needs.
#[allow(dead_code, reason = "each target uses a part")]
pub fn made(chain: impl Chain, layout: StateLayout) -> Made {
    let chain = AnyChain::new(chain, layout);
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 4, orientations()).unwrap();
    let steering = Arc::new(chain.steering_for(steering).unwrap());
    Made { chain, steering }
}

/// Whether an input is worth a run.
pub fn is_small(frames: &[(u16, Vec<u8>)]) -> bool {
    frames.len() <= 40 && frames.iter().all(|(_, bytes)| bytes.len() <= 512)
}

/// Runs frames through a chain; what left, and what was counted.
pub fn run(
    chain: &AnyChain,
    steering: &Arc<Steering>,
    frames: &[(u16, Vec<u8>)],
) -> (Vec<Collected>, LaneSample) {
    let pool = Mempool::new(&MempoolConfig { buffers: 128, data_room: 704, headroom: 0 }).unwrap();
    let mut cache = PoolCache::new(pool.clone());
    let collector = Collector::new();
    let mut nic = SimConfig::new("nic", 2, steering.clone());
    nic.driver = Driver::Stepped;
    nic.pacing = Pacing::Lossless;
    nic.descriptors = 64;
    let source = Frames { frames: frames.to_vec().into_iter(), now: Time::ZERO };
    let sinks = collector.clone();
    let mut nic = SimNic::open(nic, Box::new(source), |queue| sinks.sink(queue), &pool).unwrap();
    let mut stepper = nic.stepper().unwrap();
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(nic)];

    let table = TableConfig { capacity: 4, aliases: false };
    let hasher = FlowHasher::fixed();
    let fragments = FragmentConfig { held: 8, ..FragmentConfig::default() };
    let shards = chain.make_shards(steering, table, hasher, fragments, 1);
    let config = RuntimeConfig {
        workers: vec![None],
        handoff_capacity: 128,
        time: TimeSource::Packet,
        ..RuntimeConfig::new(2, pool.clone(), steering.clone(), hasher)
    };
    let routes = Routes(vec![DeviceId(0)]);
    let service = |_| chain.service(&routes, None);
    let mut lanes = build_lanes(&config, &mut devices, service, shards.unwrap()).unwrap();

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
    let found = remains(&lanes, &counters, steering.shards());
    drop((lanes, devices, stepper, cache));
    let (buffers, buffers_home) = (pool.capacity(), pool.available());
    let remains = Remains { buffers, buffers_home, ..found };
    assert_eq!(remains.check(), []);
    assert_eq!(counters[0].arrived, frames.len() as u64);
    (collector.drain(), LaneSample::sum(&remains.lanes))
}
