//! A chain between two simulated NICs on virtual time, fed with the packets of a case.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_control::{Config, Registry};
use rheostat_functions::lb::LbConfig;
use rheostat_functions::monitor::{MonitorFunction, MonitorLog};
use rheostat_functions::nat::{NatConfig, NatFunction, SharedNat};
use rheostat_functions::shipped;
use rheostat_functions::{AntiDdos, Bridge, Firewall, Lb, Monitor, Nat, Policer, Portscan};
use rheostat_io::{Collector, Device, Driver, Pacing, SimConfig, SimNic, Stepper};
use rheostat_ip::Network;
use rheostat_nf::registry::{ConfiguredFunction, FunctionSettings};
use rheostat_nf::{AnyChain, Seeds};
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::{Headers, LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{Lane, LaneSample, Routes, RuntimeConfig};
use rheostat_state::txn::Objects;
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::{Arrival, Source};

use crate::cases::Way;
use crate::cases::control::Control;
use crate::cases::names::Names;
use crate::cases::packet::tell;
use crate::cases::record;
use crate::cases::script::{Expected, Port, Script, Step};
use crate::cases::topology::MACS;

/// The packets of one device, which the rig puts there one by one.
#[derive(Clone, Default)]
struct Frames(Arc<Mutex<Feed>>);

type Feed = VecDeque<(Time, Vec<u8>)>;

impl Frames {
    fn lock(&self) -> MutexGuard<'_, Feed> {
        self.0.lock().expect("no thread panicked with it")
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

struct Rig {
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

/// Steps at one time are kept apart by this much, so that each one's outcome is its own.
const APART: u64 = 1_000;

/// Runs a case; returns how many packets were sent.
pub(crate) fn run(script: &Script, way: Way) -> Result<usize, String> {
    let config = configure(script)?;
    let (chain, control) = chain(script, &config, way.lanes)?;
    run_chain(script, &config, &chain, way, control)
}

/// The chain of a case, and what its function is told on the way.
fn chain(script: &Script, config: &Config, lanes: usize) -> Result<(AnyChain, Control), String> {
    let mut control = Control::default();
    let objects = Objects::new(lanes);
    let names: Vec<_> = config.chain.iter().map(ConfiguredFunction::name).collect();
    let chain = match names[..] {
        [] => Ok(shipped::empty()),
        ["firewall"] => shipped::firewall(Firewall::new(set(config))),
        ["antiddos"] => shipped::antiddos(AntiDdos::new(set(config), &objects), &objects),
        ["bridge"] => shipped::bridge(Bridge::new(set(config), &objects), &objects),
        ["portscan"] => shipped::portscan(Portscan::new(set(config), &objects), &objects),
        ["lb"] => {
            let lb: LbConfig = set(config);
            let function = Lb::new(lb.clone());
            control = Control::of(&function, &lb, script);
            shipped::lb(function)
        }
        ["monitor"] => {
            let (log, MonitorFunction { monitor, .. }) = (MonitorLog::new(), set(config));
            control = Control::over(log.clone());
            shipped::monitor(Monitor::new(monitor, Some(log)))
        }
        ["nat"] => match set(config) {
            NatFunction { nat, sharing: Some(sharing), .. } => {
                let mut rng = StdRng::seed_from_u64(3);
                let nat = SharedNat::new(nat, sharing, &objects, &mut rng);
                shipped::shared_nat(nat.map_err(|error| error.to_string())?, &objects)
            }
            NatFunction { nat, .. } => shipped::nat(make_nat(&nat)?),
        },
        ["policer"] => shipped::policer(Policer::new(set(config))),
        ["firewall", "nat"] => {
            let NatFunction { nat, .. } = set(config);
            shipped::firewall_nat(Firewall::new(set(config)), make_nat(&nat)?)
        }
        _ => return Err(format!("{}: no rig for this chain", script.name)),
    };
    Ok((chain.expect("room for the states"), control))
}

/// The settings of this type, which a function of the chain has.
fn set<T: FunctionSettings + Clone>(config: &Config) -> T {
    config.function::<T>().expect("the settings of the function").clone()
}

fn make_nat(config: &NatConfig) -> Result<Nat, String> {
    Nat::new(config.clone(), None).map_err(|error| error.to_string())
}

fn configure(script: &Script) -> Result<Config, String> {
    // The router is the network layer alone.
    let functions = script.chain.iter().filter(|name| *name != "router");
    let names: Vec<_> = functions.map(|name| format!("\"{name}\"")).collect();
    let text = format!(
        "[[device]]\nname = \"lan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"inside\"\n\
         [[device]]\nname = \"wan\"\nkind = \"sim\"\nrate = \"1Mpps\"\nside = \"outside\"\n\
         [chain]\nfunctions = [{}]\n[state]\n{}\n{}",
        names.join(", "),
        script.state,
        script.settings
    );
    // Its lines are not those of the case, but the message shows the text.
    let name = format!("{}, its settings", script.name);
    let registry = Registry::new().with_functions(rheostat_functions::ALL);
    Config::parse(&text, &name, &registry)
        .map(|(config, _)| config)
        .map_err(|report| report.render(false))
}

fn run_chain(
    script: &Script,
    config: &Config,
    chain: &AnyChain,
    way: Way,
    mut control: Control,
) -> Result<usize, String> {
    let network = script.topology.as_ref().map(|topology| topology.build()).transpose();
    let network = network.map_err(|problem| format!("{}: {problem}", script.name))?;
    let mut rig = Rig::new(config, chain, way, network);
    let mut names = Names::default();
    let mut before = [0; DropReason::COUNT];
    // What was sent into the rig so far, by line.
    let mut arrived: Vec<(usize, Vec<u8>)> = Vec::new();
    for (step, i) in script.steps.iter().zip(0..) {
        let wrong = |problem| format!("{}:{}: {problem}", script.name, step.line);
        let now = nanos_later(step.time, i * APART);
        if let Some(time) = control.apply_until(now).map_err(wrong)? {
            rig.idle(time, now);
        }
        let sent = match &step.packet {
            Some((port, packet)) => {
                let packet = packet.packet(&names).map_err(wrong)?;
                let mut own = packet.build();
                if script.topology.is_some() && !packet.names_receiver() {
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
                let told = format!("{} {}", port.name(), tell(bytes));
                return Err(format!("{}:{}: wrong checksum in {told}", script.name, step.line));
            }
        }
        let after = rig.dropped();
        let dropped: Vec<DropReason> = DropReason::all()
            .flat_map(|reason| {
                let index = reason as usize;
                std::iter::repeat_n(reason, (after[index] - before[index]) as usize)
            })
            .collect();
        before = after;
        let records = control.records();
        compare(script, step, &arrived, &mut names, sent, dropped, records)?;
    }
    rig.finish().map_err(|problem| format!("{}: {problem}", script.name))?;
    Ok(script.steps.len())
}

fn nanos_later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos() + nanos)
}

/// Holds what came of a step against what was expected.
fn compare(
    script: &Script,
    step: &Step,
    arrived: &[(usize, Vec<u8>)],
    names: &mut Names,
    sent: Vec<(Port, Vec<u8>)>,
    dropped: Vec<DropReason>,
    records: Vec<String>,
) -> Result<(), String> {
    let mut got: Vec<(String, Option<Vec<u8>>)> = sent
        .into_iter()
        .map(|(port, bytes)| (format!("{} {}", port.name(), tell(&bytes)), Some(bytes)))
        .collect();
    got.extend(dropped.iter().map(|reason| (format!("drop {}", reason.name()), None)));
    got.extend(records.into_iter().map(|record| (record, None)));
    for (line, expected) in &step.expected {
        let wrong = |problem| format!("{}:{line}: {problem}", script.name);
        let frame_of = |line: usize| {
            let frame = arrived.iter().find(|(sent, _)| *sent == line);
            frame.expect("checked when it was read").1.clone()
        };
        let (text, bytes) = match expected {
            Expected::Same(port) => {
                let own = frame_of(step.line);
                (format!("{} {}", port.name(), tell(&own)), Some(own))
            }
            Expected::SameAs(port, earlier) => {
                let bytes = frame_of(*earlier);
                (format!("{} {}", port.name(), tell(&bytes)), Some(bytes))
            }
            Expected::Packet(port, packet) => {
                let on_port = format!("{} ", port.name());
                let mut found = None;
                for (at, (told, frame)) in got.iter().enumerate() {
                    let Some(frame) = frame.as_ref().filter(|_| told.starts_with(&on_port)) else {
                        continue;
                    };
                    if packet.matches(frame, names).map_err(wrong)? {
                        found = Some(at);
                        break;
                    }
                }
                match found {
                    Some(at) => {
                        got.remove(at);
                        continue;
                    }
                    None => (format!("{on_port}{}", packet.text(names)), None),
                }
            }
            Expected::Check(check) => {
                if check.holds(names).map_err(wrong)? {
                    continue;
                }
                return Err(wrong(format!("it does not hold that {}", check.text(names))));
            }
            Expected::Record(words) => {
                let whole = got.iter().find(|(told, _)| record::says(told, words));
                (whole.map_or_else(|| format!("record {words}"), |(told, _)| told.clone()), None)
            }
            Expected::Drop(reason) => (format!("drop {}", reason.name()), None),
        };
        let is_it = |(told, frame): &(String, Option<Vec<u8>>)| {
            *told == text && (bytes.is_none() || *frame == bytes)
        };
        let Some(at) = got.iter().position(is_it) else {
            let got: Vec<_> = got
                .into_iter()
                .map(|(told, frame)| match (&bytes, frame) {
                    (Some(bytes), Some(frame)) if told == text => {
                        format!("{told}, {}", difference(bytes, &frame))
                    }
                    _ => told,
                })
                .collect();
            let got = if got.is_empty() { "nothing".to_owned() } else { got.join(", ") };
            return Err(format!("{}:{line}: expected {text}\n  got {got}", script.name));
        };
        got.remove(at);
    }
    match got.first() {
        Some((told, _)) => {
            Err(format!("{}:{}: expected nothing more\n  got {told}", script.name, step.line))
        }
        None => Ok(()),
    }
}

/// Where two frames differ that the words of a case cannot tell apart.
fn difference(expected: &[u8], got: &[u8]) -> String {
    match expected.iter().zip(got).position(|(a, b)| a != b) {
        Some(at) => format!("but byte {at} is {:#04x} and not {:#04x}", got[at], expected[at]),
        None => format!("but {} bytes and not {}", got.len(), expected.len()),
    }
}

impl Rig {
    fn new(config: &Config, chain: &AnyChain, way: Way, network: Option<Arc<Network>>) -> Rig {
        let Way { lanes, unusual, .. } = way;
        let claimants = if chain.owns_flows() { way.claimants } else { 1 };
        let shards = config.state.shards;
        let orientations = vec![Orientation::Inside, Orientation::Outside];
        let key = HashKey::new(std::array::from_fn(|i| (i as u8).wrapping_mul(37) ^ 0x5a));
        let steering = Steering::new(&key, 128, shards, orientations).expect("sizes that fit");
        let steering = Arc::new(chain.steering_for(steering).expect("something in common"));
        let pool = MempoolConfig { buffers: 512, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).expect("memory for packets");
        let collectors = [Collector::new(), Collector::new()];
        let feeds = [Frames::default(), Frames::default()];
        let (mut devices, mut steppers): (Vec<Box<dyn Device>>, Vec<_>) = (Vec::new(), Vec::new());
        for (number, port) in [Port::Lan, Port::Wan].into_iter().enumerate() {
            let mut nic = SimConfig::new(port.name(), lanes as u16, steering.clone());
            nic.device = DeviceId(number as u8);
            nic.claimants = claimants as u16;
            nic.driver = Driver::Stepped;
            nic.pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };
            let source = Box::new(feeds[number].clone());
            let sink = |queue| collectors[number].sink(queue);
            let mut nic = SimNic::open(nic, source, sink, &pool).expect("a NIC");
            steppers.push(nic.stepper().expect("a stepped NIC has a stepper"));
            devices.push(Box::new(nic));
        }
        let capacity = config.state.flows_per_shard() as usize;
        let table = TableConfig { capacity, aliases: false };
        let hasher = FlowHasher::fixed();
        let fragments = FragmentConfig { held: 16, ..FragmentConfig::default() };
        let seeds = Seeds { shards: 2 };
        let made = chain.make_shards(&steering, table, hasher, fragments, seeds);
        let made = made.expect("memory for flows");
        let config = RuntimeConfig {
            workers: vec![None],
            handoff_capacity: 64,
            claimants,
            ..RuntimeConfig::new(lanes, pool.clone(), steering, hasher)
        };
        let routes = Routes(vec![DeviceId(1), DeviceId(0)]);
        let service = |_| chain.service(&routes, network.as_ref());
        let mut lanes = build_lanes(&config, &mut devices, service, made).expect("lanes fit");
        lanes.iter_mut().for_each(|lane| lane.treat_as_unusual(unusual));
        let cache = PoolCache::new(pool.clone());
        Rig {
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
        }
    }

    /// Lets a packet arrive at `now`, or nothing, and returns what left.
    fn step(&mut self, packet: Option<(Port, Vec<u8>)>, now: Time) -> Vec<(Port, Vec<u8>)> {
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

    /// Lets time pass until every shard has had its regular turn.
    fn idle(&mut self, from: Time, to: Time) {
        let mut now = from;
        while now < to {
            for lane in &mut self.lanes {
                lane.poll(now);
            }
            now = nanos_later(now, 4_000_000);
        }
    }

    fn sent(&mut self) -> Vec<(Port, Vec<u8>)> {
        let mut sent = Vec::new();
        for (port, collector) in [Port::Lan, Port::Wan].into_iter().zip(&self.collectors) {
            for packet in collector.drain() {
                sent.push((port, packet.bytes));
            }
        }
        sent
    }

    fn has_wrong_checksum(&mut self, frame: &[u8]) -> bool {
        let packet = self.cache.alloc_from(frame).expect("a buffer");
        let validity =
            Headers::parse(&packet).ok().map(|headers| evaluate_packet(&packet, &headers));
        self.cache.free(packet);
        validity == Some(Some(Validity::Invalid))
    }

    fn dropped(&self) -> [u64; DropReason::COUNT] {
        let samples: Vec<_> = self.lanes.iter().map(|lane| lane.counters().sample()).collect();
        LaneSample::sum(&samples).dropped
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
