//! A whole run on one thread and in virtual time: a simulated NIC, lanes with the firewall, and what
//! left. Time passes only when a test advances it, and lanes run only when a test polls them.

use std::sync::Arc;

use rheostat_base::sync::succession::Succession;
use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_functions::Firewall;
use rheostat_functions::firewall::{FirewallConfig, TcpOptions};
use rheostat_io::{Collected, Collector, Device, Driver, FaultConfig, Pacing};
use rheostat_io::{SimConfig, SimNic, Stepper, with_faults};
use rheostat_nf::{AnyChain, ChainService, Stage};
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::listing::{WalkBoard, WalkHandle, WalkRequest};
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{
    Classes, Lane, LaneSample, Routes, RuntimeConfig, Service, TimeSource, Unusual, Violation,
};
use rheostat_state::{FlowHasher, FragmentConfig, Shard, StateLayout, TableConfig};
use rheostat_steer::{HashKey, IndirectionTable, Orientation, PrefixList, Steering};
use rheostat_traffic::Source;

/// The service of every world.
pub type FirewallService = ChainService<Stage<Firewall>>;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Lanes, each with a queue of the NIC.
    pub lanes: usize,
    /// Lanes that share each queue, and the shards of its packets.
    pub claimants: usize,
    /// Offloading lanes among them.
    pub offloading: usize,
    /// Whether lanes become offloading lanes while it runs.
    pub plans_offloading: bool,
    /// What is measured of classes.
    pub classes: Option<Arc<Classes>>,
    /// Shards, a power of two.
    pub shards: usize,
    /// Flows per shard at most.
    pub flows: usize,
    /// Buffers of the pool.
    pub buffers: u32,
    /// Descriptors of each queue.
    pub descriptors: u32,
    /// Packets that a hand-off ring holds.
    pub handoff: usize,
    /// When the NIC delivers.
    pub pacing: Pacing,
    /// What packets take their time from.
    pub time: TimeSource,
    /// Faults of the device, if it has any.
    pub faults: Option<FaultConfig>,
    /// Whether connections may be entered in the middle, as captures need.
    pub pickup: bool,
    /// Connections of a shard that may be half open.
    pub half_open: u32,
    /// Packets to treat as unusual ones.
    pub unusual: Unusual,
}

impl Setup {
    /// A run that loses nothing, so that its outcome is decided by the packets alone.
    pub fn lossless(lanes: usize) -> Setup {
        Setup {
            lanes,
            claimants: 1,
            offloading: 0,
            plans_offloading: false,
            classes: None,
            shards: 16,
            flows: 4_096,
            buffers: 4_096,
            descriptors: 256,
            handoff: 4_096,
            pacing: Pacing::Lossless,
            time: TimeSource::Packet,
            faults: None,
            pickup: true,
            half_open: FirewallConfig::default().half_open_per_shard,
            unusual: Unusual::default(),
        }
    }

    /// The settings of the firewall of such a world.
    pub fn config(&self) -> FirewallConfig {
        let tcp = TcpOptions { pickup: self.pickup, ..TcpOptions::default() };
        FirewallConfig { tcp, half_open_per_shard: self.half_open, ..FirewallConfig::default() }
    }

    fn firewall(&self) -> Firewall {
        Firewall::new(self.config())
    }
}

/// A run that is not over.
pub struct World {
    /// The chain of its lanes, in whose place another one can be put.
    pub chain: AnyChain,
    /// Its lanes.
    pub lanes: Vec<Lane>,
    /// The time, which only the test advances.
    pub now: Time,
    stepper: Stepper,
    device: Box<dyn Device>,
    collector: Collector,
    pool: Mempool,
    /// The buffers of the NIC.
    cache: PoolCache,
    shards: usize,
    walks: Arc<WalkBoard>,
    /// The lane that [`World::round`] polls first: of claimants, each in its turn, so that all claim packets.
    first: usize,
    claimants: usize,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What left, in order.
    pub packets: Vec<Collected>,
    /// All lanes' counters together.
    pub sum: LaneSample,
    /// Packets that each lane received.
    pub received: Vec<u64>,
    /// What is wrong with the accounts.
    pub violations: Vec<Violation>,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that the device itself dropped.
    pub device_dropped: u64,
}

/// A shard of a world, which keeps the [`Limits`] of the firewall.
pub type FirewallShard = Box<Shard>;

impl World {
    /// A world with the firewall in every lane.
    pub fn open(setup: &Setup, source: Box<dyn Source>) -> World {
        World::with(setup, source, |_, service| service, |shard| shard)
    }

    /// A world whose services and shards a test may change before the lanes get them.
    pub fn with<S: Service>(
        setup: &Setup,
        source: Box<dyn Source>,
        wrap: impl Fn(LaneId, FirewallService) -> S,
        change: impl FnMut(FirewallShard) -> FirewallShard,
    ) -> World {
        let mut layout = StateLayout::new();
        let chain =
            Stage::new(setup.firewall(), &mut layout).expect("room for one state").listing();
        let chains = Arc::new(Succession::new(Arc::new(chain)));
        let chain = AnyChain::following(chains.clone(), layout);
        let (routes, walks) = (Routes(vec![DeviceId(0)]), chain.walks().clone());
        let service = |lane| {
            let service = ChainService::following(&chains, lane, routes.clone());
            Box::new(wrap(lane, service.with_walks(walks.clone()))) as Box<dyn Service>
        };
        World::assemble(setup, source, chain, service, change)
    }

    /// A world with another chain in every lane.
    pub fn of_chain(setup: &Setup, source: Box<dyn Source>, chain: AnyChain) -> World {
        let (of_lanes, routes) = (chain.clone(), Routes(vec![DeviceId(0)]));
        let service = |lane| of_lanes.service(lane, &routes, None);
        World::assemble(setup, source, chain, service, |shard| shard)
    }

    fn assemble(
        setup: &Setup,
        source: Box<dyn Source>,
        chain: AnyChain,
        service: impl FnMut(LaneId) -> Box<dyn Service>,
        change: impl FnMut(FirewallShard) -> FirewallShard,
    ) -> World {
        let pool = MempoolConfig { buffers: setup.buffers, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).expect("memory for packets");
        let inside: PrefixList = ["10.0.0.0/8", "fd00::/8"]
            .map(|text| text.parse().expect("a prefix"))
            .into_iter()
            .collect();
        let orientations = vec![Orientation::ByPrefix(inside)];
        let steering = Steering::new(&HashKey::MICROSOFT, 128, setup.shards, orientations);
        let steering = chain.steering_for(steering.expect("sizes that fit"));
        let steering = Arc::new(steering.expect("a chain that can be placed"));

        let collector = Collector::new();
        let mut nic = SimConfig::new("nic", setup.lanes as u16, steering.clone());
        nic.claimants = setup.claimants as u16;
        nic.descriptors = setup.descriptors;
        nic.pacing = setup.pacing;
        nic.driver = Driver::Stepped;
        let sinks = collector.clone();
        let mut nic = SimNic::open(nic, source, |queue| sinks.sink(queue), &pool).expect("a NIC");
        let stepper = nic.stepper().expect("a stepped NIC has a stepper");
        let mut device: Box<dyn Device> = Box::new(nic);
        if let Some(faults) = &setup.faults {
            device = Box::new(with_faults(device, faults).0);
        }

        let table = TableConfig { capacity: setup.flows, aliases: false };
        let hasher = FlowHasher::fixed();
        let fragments = FragmentConfig {
            held: setup.buffers as usize / 4 / setup.shards,
            ..FragmentConfig::default()
        };
        let shards = chain.make_shards(&steering, table, hasher, fragments, 5);
        let shards = shards.expect("memory for flows").into_iter().map(change);
        let config = RuntimeConfig {
            workers: vec![None],
            handoff_capacity: setup.handoff,
            time: setup.time,
            claimants: setup.claimants,
            offloading: setup.offloading,
            plans_offloading: setup.plans_offloading,
            classes: setup.classes.clone(),
            ..RuntimeConfig::new(setup.lanes, pool.clone(), steering, hasher)
        };
        let mut devices = vec![device];
        let mut lanes = build_lanes(&config, &mut devices, service, shards).expect("lanes fit");
        lanes.iter_mut().for_each(|lane| lane.treat_as_unusual(setup.unusual));
        let device = devices.pop().expect("one device");
        let cache = PoolCache::new(pool.clone());
        World {
            lanes,
            now: Time::ZERO,
            stepper,
            device,
            collector,
            pool,
            cache,
            shards: setup.shards,
            walks: chain.walks().clone(),
            chain,
            first: 0,
            claimants: setup.claimants,
        }
    }

    /// Lets everything arrive that is due by now, and returns how many packets that were.
    pub fn deliver(&mut self) -> usize {
        self.stepper.deliver_until(self.now, &mut self.cache)
    }

    /// When the next packet is due; `None` when there is none.
    pub fn next_arrival(&mut self) -> Option<Time> {
        self.stepper.next_arrival(self.now)
    }

    /// Polls lane `lane`; returns how many packets it found.
    pub fn poll(&mut self, lane: usize) -> usize {
        let now = self.now;
        self.lanes[lane].poll(now).packets
    }

    /// The table of the NIC.
    pub fn table(&self) -> Arc<dyn IndirectionTable> {
        self.device.table().expect("the NIC has one")
    }

    /// Begins a walk through the shards of the lanes.
    pub fn walk(&self, request: WalkRequest) -> WalkHandle {
        WalkHandle::begin(&self.walks, request, self.lanes.len(), self.shards)
            .expect("few walks at a time")
    }

    /// Takes what has left since this was asked last.
    pub fn take_sent(&self) -> Vec<Collected> {
        self.collector.drain()
    }

    /// Delivers and polls lanes in turn until nothing is left, and draws up the account.
    pub fn run(mut self) -> Outcome {
        while self.round() {}
        self.finish()
    }

    /// One delivery, and one poll of every lane. `false` when there was nothing to do, nor will be.
    pub fn round(&mut self) -> bool {
        let delivered = self.deliver();
        let count = self.lanes.len();
        let polled: usize = (0..count).map(|turn| self.poll((self.first + turn) % count)).sum();
        if self.claimants > 1 {
            self.first = (self.first + 1) % count;
        }
        if delivered + polled > 0 {
            return true;
        }
        match self.next_arrival() {
            Some(due) if due > self.now => self.now = due,
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Lets the lanes run dry and draws up the account.
    pub fn finish(mut self) -> Outcome {
        let now = self.now;
        run_dry(&mut self.lanes, now);
        self.account()
    }

    /// Draws up the account of the lanes as they are.
    pub fn account(self) -> Outcome {
        let World { lanes, device, collector, pool, cache, shards, stepper, .. } = self;
        let devices = vec![device.monitor().counters()];
        let found = remains(&lanes, &devices, shards);
        let sum = LaneSample::sum(&found.lanes);
        let received = found.lanes.iter().map(|lane| lane.received).collect();
        drop((lanes, device, stepper, cache));
        let (buffers, buffers_home) = (pool.capacity(), pool.available());
        let violations = Remains { buffers, buffers_home, ..found }.check();
        let device_dropped = devices[0].lost();
        let arrived = devices[0].arrived;
        Outcome { packets: collector.drain(), sum, received, violations, arrived, device_dropped }
    }
}
