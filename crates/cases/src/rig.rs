//! A chain between two simulated NICs on virtual time, fed with the packets of a case.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_io::{Arrival, Collector, Device, Driver, Pacing, SimConfig, SimNic, Source, Stepper};
use rheostat_ip::Network;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::{Headers, LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{Lane, LaneSample, Routes, RuntimeConfig};
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};

use crate::chain::Tested;
use crate::compare::{ComparisonOutcome, compare};
use crate::error::CaseError;
use crate::names::CaseNames;
use crate::packet::tell;
use crate::port::CasePort;
use crate::script::Script;
use crate::subject::Subject;
use crate::topology::{MACS, Topology};
use crate::way::CaseWay;

/// The packets of one device, which the rig puts there one by one.
#[derive(Clone, Default)]
struct Frames(Arc<Mutex<Feed>>);

type Feed = VecDeque<(Time, Vec<u8>)>;

impl Frames {
    fn lock(&self) -> MutexGuard<'_, Feed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Frames {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (time, bytes) = self.lock().pop_front()?;
        *frame = bytes;
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }

    fn is_fed(&self) -> bool {
        true
    }
}

pub(crate) struct Rig {
    lanes: Vec<Lane>,
    /// The lane that is polled first: of claimants, each in its turn, so that all claim packets.
    first: usize,
    claimants: usize,
    feeds: [Frames; 2],
    steppers: Vec<Stepper>,
    devices: Vec<Box<dyn Device>>,
    collectors: [Collector; 2],
    pool: Mempool,
    cache: PoolCache,
    shards: usize,
}

/// The sides of the two devices, and the buffers of a rig.
pub(crate) struct RigLayout {
    pub(crate) orientations: [Orientation; 2],
    pub(crate) buffers: u32,
    /// Bytes of the longest packet.
    pub(crate) data_room: u16,
}

impl Default for RigLayout {
    fn default() -> RigLayout {
        let MempoolConfig { data_room, .. } = MempoolConfig::default();
        let orientations = [Orientation::Inside, Orientation::Outside];
        RigLayout { orientations, buffers: 512, data_room }
    }
}

/// Steps at one time are kept apart by this much, so that each one's outcome is its own.
const APART: u64 = 1_000;

/// Runs a case in one way; returns how many steps were taken.
///
/// # Errors
/// As of [`Case::run`](crate::Case::run).
pub(crate) fn run(
    script: &Script,
    subject: &Subject<'_>,
    way: CaseWay,
) -> Result<usize, CaseError> {
    let unreadable = |problem| CaseError::unreadable(&script.name, None, problem);
    let mut tested = subject.make(script, way.lanes)?;
    let topology = match (&script.topology, subject) {
        (None, Subject::Configured(_, config)) => Topology::of(config).map_err(unreadable)?,
        (stated, _) => stated.clone(),
    };
    let network = topology.as_ref().map(Topology::build).transpose().map_err(unreadable)?;
    let mut rig = Rig::new(&tested, way, network, &RigLayout::default()).map_err(unreadable)?;
    let control = &mut tested.control;
    let mut names = CaseNames::default();
    let mut before = [0; DropReason::COUNT];
    // What was sent into the rig so far, by line.
    let mut arrived: Vec<(usize, Vec<u8>)> = Vec::new();
    for (step, i) in script.steps.iter().zip(0..) {
        let wrong = |problem| CaseError::unreadable(&script.name, Some(step.line), problem);
        let now = nanos_later(step.time, i * APART);
        if let Some(time) = control.apply_until(now).map_err(unreadable)? {
            rig.idle(time, now);
        }
        let sent = match &step.packet {
            Some((port, packet)) => {
                let packet = packet.packet(&names).map_err(wrong)?;
                let mut own = packet.build().map_err(wrong)?;
                if topology.is_some() && !packet.names_receiver() {
                    own[..6].copy_from_slice(&MACS[*port as usize]);
                }
                arrived.push((step.line, own.clone()));
                rig.step(Some((*port, own)), now)
            }
            None => rig.step(None, now),
        };
        for (port, bytes) in &sent {
            // A wrong checksum passes if the packet came with it, and is never made here.
            let came_in = arrived.iter().any(|(_, frame)| *frame == *bytes);
            if !came_in && rig.has_wrong_checksum(bytes) {
                let told = format!("a wrong one in {} {}", port.name(), tell(bytes));
                let line = Some(step.line);
                return Err(CaseError::failed(&script.name, line, "a right checksum", told));
            }
        }
        let after = rig.dropped();
        let dropped = DropReason::all().flat_map(|reason| {
            let index = reason as usize;
            std::iter::repeat_n(reason, (after[index] - before[index]) as usize)
        });
        let outcome =
            ComparisonOutcome { sent, dropped: dropped.collect(), records: control.records() };
        before = after;
        compare(script, step, &arrived, &mut names, outcome)?;
    }
    let end = rig.finish();
    end.map_err(|broken| CaseError::failed(&script.name, None, "that invariants hold", broken))?;
    Ok(script.steps.len())
}

fn nanos_later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos() + nanos)
}

impl Rig {
    /// # Errors
    /// When there is no memory for the run, or the functions have nothing in common to place packets by.
    pub(crate) fn new(
        tested: &Tested,
        way: CaseWay,
        network: Option<Arc<Network>>,
        layout: &RigLayout,
    ) -> Result<Rig, String> {
        fn text(error: impl ToString) -> String {
            error.to_string()
        }
        let Tested { chain, shards, flows_per_shard, .. } = tested;
        let (lanes, shards) = (way.lanes, *shards);
        let claimants = if chain.owns_flows() { way.claimants } else { 1 };
        let orientations = layout.orientations.to_vec();
        let key = HashKey::new(std::array::from_fn(|i| (i as u8).wrapping_mul(37) ^ 0x5a));
        let buckets = shards.next_power_of_two().max(128);
        let steering = Steering::new(&key, buckets, shards, orientations).map_err(text)?;
        let steering = Arc::new(chain.steering_for(steering).map_err(text)?);
        let RigLayout { buffers, data_room, .. } = *layout;
        let pool = MempoolConfig { buffers, data_room, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).map_err(text)?;
        let collectors = [Collector::new(), Collector::new()];
        let feeds = [Frames::default(), Frames::default()];
        let (mut devices, mut steppers): (Vec<Box<dyn Device>>, Vec<_>) = (Vec::new(), Vec::new());
        for (number, port) in [CasePort::Lan, CasePort::Wan].into_iter().enumerate() {
            let mut nic = SimConfig::new(port.name(), lanes as u16, steering.clone());
            nic.device = DeviceId(number as u8);
            nic.claimants = claimants as u16;
            nic.driver = Driver::Stepped;
            nic.pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };
            let source = Box::new(feeds[number].clone());
            let sink = |queue| collectors[number].sink(queue);
            let mut nic = SimNic::open(nic, source, sink, &pool).map_err(text)?;
            steppers.extend(nic.stepper());
            devices.push(Box::new(nic));
        }
        let table = TableConfig { capacity: *flows_per_shard, aliases: false };
        let hasher = FlowHasher::fixed();
        let fragments = FragmentConfig { held: 16, ..FragmentConfig::default() };
        let made = chain.make_shards(&steering, table, hasher, fragments, 2).map_err(text)?;
        let config = RuntimeConfig {
            workers: vec![None],
            handoff_capacity: 64,
            claimants,
            ..RuntimeConfig::new(lanes, pool.clone(), steering, hasher)
        };
        let routes = Routes(vec![DeviceId(1), DeviceId(0)]);
        let service = |lane| chain.service(lane, &routes, network.as_ref());
        let mut lanes = build_lanes(&config, &mut devices, service, made).map_err(text)?;
        lanes.iter_mut().for_each(|lane| lane.treat_as_unusual(way.unusual()));
        let cache = PoolCache::new(pool.clone());
        Ok(Rig {
            lanes,
            first: 0,
            claimants,
            feeds,
            steppers,
            devices,
            collectors,
            pool,
            cache,
            shards,
        })
    }

    /// Lets a packet arrive at `now`, or nothing, and returns what left.
    pub(crate) fn step(
        &mut self,
        packet: Option<(CasePort, Vec<u8>)>,
        now: Time,
    ) -> Vec<(CasePort, Vec<u8>)> {
        if let Some((port, frame)) = packet {
            self.feeds[port as usize].lock().push_back((now, frame));
        }
        for stepper in &mut self.steppers {
            stepper.deliver_until(now, &mut self.cache);
        }
        // A packet may go over three lanes, there and back.
        let count = self.lanes.len();
        for turn in 0..6 * count {
            self.lanes[(self.first + turn) % count].poll(now);
        }
        if self.claimants > 1 {
            self.first = (self.first + 1) % count;
        }
        self.sent()
    }

    /// Lets time pass until every shard has had its regular turn, for which two seconds are enough.
    fn idle(&mut self, from: Time, to: Time) {
        let mut now = from;
        let to = to.min(from + Duration::from_secs(2));
        while now < to {
            for lane in &mut self.lanes {
                lane.poll(now);
            }
            now = nanos_later(now, 4_000_000);
        }
    }

    fn sent(&mut self) -> Vec<(CasePort, Vec<u8>)> {
        let mut sent = Vec::new();
        for (port, collector) in [CasePort::Lan, CasePort::Wan].into_iter().zip(&self.collectors) {
            for packet in collector.drain() {
                sent.push((port, packet.bytes));
            }
        }
        sent
    }

    fn has_wrong_checksum(&mut self, frame: &[u8]) -> bool {
        let Ok(packet) = self.cache.alloc_from(frame) else { return true };
        let validity =
            Headers::parse(&packet).ok().map(|headers| evaluate_packet(&packet, &headers));
        self.cache.free(packet);
        validity == Some(Some(Validity::Invalid))
    }

    pub(crate) fn dropped(&self) -> [u64; DropReason::COUNT] {
        self.sample().dropped
    }

    /// What the lanes have counted, together.
    pub(crate) fn sample(&self) -> LaneSample {
        let samples: Vec<_> = self.lanes.iter().map(|lane| lane.counters().sample()).collect();
        LaneSample::sum(&samples)
    }

    /// Checks that everything is accounted for.
    fn finish(mut self) -> Result<(), String> {
        run_dry(&mut self.lanes, Time::ZERO);
        let Rig { lanes, steppers, devices, pool, cache, shards, .. } = self;
        let counters: Vec<_> = devices.iter().map(|device| device.monitor().counters()).collect();
        let found = remains(&lanes, &counters, shards);
        drop((lanes, steppers, devices, cache));
        let (buffers, buffers_home) = (pool.capacity(), pool.available());
        match (Remains { buffers, buffers_home, ..found }).check().first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok(()),
        }
    }
}
