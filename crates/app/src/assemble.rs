//! From a checked configuration to devices, lanes and shards.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{Clock, DeviceId};
use rheostat_capture::Endpoints;
use rheostat_control::config::device::DeviceConfig;
use rheostat_control::config::steering::HashKeyChoice;
use rheostat_control::{Config, KernelFollower};
use rheostat_functions::lb::check::HealthChecks;
use rheostat_io::layer::ordered::in_order;
use rheostat_io::{CaptureWriter, Device};
use rheostat_ip::{Network, RunLimit};
use rheostat_nf::AnyChain;
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Family, Mempool, MempoolConfig};
use rheostat_run::poll::Interrupt;
use rheostat_run::{
    Classes, LoadReporting, Polling, Routes, Runtime, RuntimeConfig, StartError, TimeSource,
};
use rheostat_state::{ArenaError, FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{
    HashKey, KeyEnd, Orientation, Steering, SteeringError, fewest_ports, ports_are_even,
};
use thiserror::Error;

use crate::devices::{DeviceError, Devices, Opener};
use crate::links::WatchedLink;
use crate::memory::{MemoryPlan, Sizes};
use crate::network::{self, NoAddress, Wiring, WiringError};
use crate::workers::Workers;

/// Why the devices, lanes and shards of a run could not be made.
#[derive(Debug, Error)]
pub(crate) enum AssembleError {
    #[error("{0}")]
    Steering(#[from] SteeringError),
    #[error("{0}")]
    Pool(#[from] PoolError),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Network(#[from] WiringError),
    #[error("{0}")]
    NoAddress(#[from] NoAddress),
    #[error("{0}")]
    Memory(#[from] ArenaError),
    #[error("{0}")]
    Start(#[from] StartError),
}

/// Lanes up to which captures get the configured number of buffers: rings between lanes are as long
/// as the pool, so that a capture never overflows one.
const WIDE: usize = 8;
/// Buffers for a capture over more lanes than that.
const NARROW_POOL: u32 = 4_096;

/// Everything of a run that does not depend on its chain.
pub(crate) struct RunAssembly {
    config: Config,
    clock: Clock,
    rng: StdRng,
    workers: Workers,
    captures: bool,
    pool: Mempool,
    steering: Arc<Steering>,
    devices: Vec<Box<dyn Device>>,
    wiring: Option<Wiring>,
    writers: Vec<CaptureWriter>,
    watched: Vec<WatchedLink>,
}

impl RunAssembly {
    /// Opens the devices of `config` for `workers`, laid out and under `errors`, after [`preflight`](crate::preflight::preflight).
    ///
    /// # Errors
    /// [`AssembleError`] when a device cannot be opened, or memory is lacking.
    pub(crate) fn new(
        config: Config,
        workers: Workers,
        layout: Layout,
        errors: RunLimit,
    ) -> Result<RunAssembly, AssembleError> {
        let Layout { steering, mut rng } = layout;
        let lanes = workers.lanes();
        let captures = reads_captures(&config);
        let pool = pool_config(&config, lanes);
        let pool = Mempool::new(&pool)?;
        let clock = Clock::new();
        let opener = Opener {
            lanes: lanes as u16,
            queue_sharing: config.workers.queue_sharing,
            ordered: config.workers.ordered,
            endpoints: Endpoints::default(),
            steering: &steering,
            pool: &pool,
            clock: &clock,
            seed: rng.random(),
        };
        let Devices { mut devices, writers, watched } = opener.open(&config.devices)?;
        if config.workers.ordered {
            devices = in_order(devices, config.workers.queue_sharing.into());
        }
        let wiring = network::of(&config, errors, rng.random())?;
        Ok(RunAssembly {
            config,
            clock,
            rng,
            workers,
            captures,
            pool,
            steering,
            devices,
            wiring,
            writers,
            watched,
        })
    }

    /// The files that the run writes; to be closed when it is over.
    pub(crate) fn writers(&self) -> Vec<CaptureWriter> {
        self.writers.clone()
    }

    /// The interfaces of live devices; to be followed while the run goes on.
    pub(crate) fn take_watched(&mut self) -> Vec<WatchedLink> {
        std::mem::take(&mut self.watched)
    }

    /// The network layer of the run, where its devices have addresses.
    pub(crate) fn network(&self) -> Option<Arc<Network>> {
        self.wiring.as_ref().map(|wiring| wiring.network.clone())
    }

    /// The health checks of the run's load balancer, if there are any.
    pub(crate) fn checks(&self) -> Option<Arc<HealthChecks>> {
        self.wiring.as_ref()?.checks.clone()
    }

    /// What follows the kernel's routes, if anything does: until it is dropped.
    pub(crate) fn follower(&mut self) -> Option<KernelFollower> {
        self.wiring.as_mut()?.follower.take()
    }

    /// Starts a run of `chain`.
    ///
    /// # Errors
    /// [`AssembleError`] when memory is lacking or a worker cannot be started.
    pub(crate) fn start(mut self, chain: &AnyChain) -> Result<Runtime, AssembleError> {
        let lanes = self.workers.lanes();
        let hasher = FlowHasher::new(self.rng.random());
        let state = &self.config.state;
        let fragments = fragment_config(&self.config, self.pool.capacity());
        let capacity = usize::try_from(state.flows_per_shard()).unwrap_or(usize::MAX);
        let table = TableConfig { capacity, aliases: false };
        let seed = self.rng.random();
        let shards = chain.make_shards(&self.steering, table, hasher, fragments, seed)?;
        let offloading = self.config.workers.offloading.of(lanes);
        let plans_offloading = offloading > 0 && self.config.balance.plans_offloading();
        let handoff_capacity = handoff_capacity(&self.config, self.pool.capacity());
        let config = RuntimeConfig {
            polling: polling(&self.config),
            workers: self.workers.pinned(),
            handoff_capacity,
            time: if self.captures { TimeSource::Packet } else { TimeSource::Poll },
            reporting: match reports_shards(&self.config) {
                true => LoadReporting::Shards,
                false => LoadReporting::Lanes,
            },
            // Flows that belong to no object all lanes share are with all lanes that get their packets.
            claimants: match chain.owns_flows() {
                true => self.config.workers.queue_sharing.into(),
                false => 1,
            },
            // Where a policy decides about them, no lane offloads at the start.
            offloading: if plans_offloading { 0 } else { offloading },
            plans_offloading,
            classes: (plans_offloading || !self.config.slo.is_none()).then(|| {
                let (rules, objectives) = (self.config.classes.clone(), self.config.slo);
                Arc::new(Classes { rules, objectives, clock: Arc::new(self.clock.clone()) })
            }),
            ..RuntimeConfig::new(lanes, self.pool, self.steering, hasher)
        };
        let routes = routes(&self.config.devices);
        let network = self.wiring.map(|wiring| wiring.network);
        let service = |lane| chain.service(lane, &routes, network.as_ref());
        Ok(Runtime::start(config, self.devices, self.clock, service, shards)?)
    }
}

/// Whether lanes report the load of shards. Clients of the control socket may request what another policy would do.
pub(crate) fn reports_shards(config: &Config) -> bool {
    // With shared queues, packets stay with the lane that claims them, whatever their shard.
    config.workers.queue_sharing <= 1
        && (!config.balance.is_static() || config.observe.control.is_some())
}

/// How many errors and resets the network layer and the chain of a run send together.
pub(crate) fn error_limit(config: &Config) -> RunLimit {
    let (rate, burst) =
        (config.network.policy.errors_per_second, config.network.policy.errors_at_once);
    match reads_captures(config) {
        true => RunLimit::of_replay(rate, burst),
        false => RunLimit::new(rate, burst),
    }
}

fn reads_captures(config: &Config) -> bool {
    config.devices.iter().all(|device| device.facts().reads_capture)
}

/// The pool of a run of `config` on so many lanes.
pub(crate) fn pool_config(config: &Config, lanes: usize) -> MempoolConfig {
    let buffers = match reads_captures(config) && lanes > WIDE {
        true => config.pool.buffers.min(NARROW_POOL),
        false => config.pool.buffers,
    };
    match config.devices.iter().any(|device| device.facts().maps_pool) {
        true => MempoolConfig::umem(buffers),
        false => MempoolConfig { buffers, ..MempoolConfig::default() },
    }
}

/// Packets that each ring between two lanes holds, with a pool of so many buffers.
fn handoff_capacity(config: &Config, buffers: usize) -> usize {
    if reads_captures(config) { buffers } else { config.workers.handoff }
}

/// The limits of virtual reassembly in each shard, with a pool of so many buffers.
pub(crate) fn fragment_config(config: &Config, buffers: usize) -> FragmentConfig {
    let limits = &config.state.fragments;
    FragmentConfig {
        datagrams: limits.datagrams,
        pieces: limits.pieces,
        // Half of the pool at most, so that what is held cannot keep packets from arriving.
        held: limits.held.min(buffers / 2 / config.state.shards),
        timeout_v4: limits.timeout_v4,
        timeout_v6: limits.timeout_v6,
    }
}

/// What memory a run of `config` takes, whose chain is `chain`.
pub(crate) fn memory_plan(
    config: &Config,
    chain: &AnyChain,
    steering: &Arc<Steering>,
    lanes: usize,
) -> MemoryPlan {
    let pool = pool_config(config, lanes);
    let buffers = pool.buffers as usize;
    let sizes = Sizes {
        lanes,
        handoff: handoff_capacity(config, buffers),
        fragments: fragment_config(config, buffers),
        pool: &pool,
    };
    MemoryPlan::of(config, chain, steering, &sizes)
}

/// Where a run puts packets. A chain that was asked about one steering runs under the same: functions remember it.
pub(crate) struct Layout {
    pub(crate) steering: Arc<Steering>,
    /// What the run's later random choices are drawn from.
    pub(crate) rng: StdRng,
}

/// Where a run of `config`, whose chain is `chain`, puts packets; with a seed, the same each time.
///
/// # Errors
/// [`AssembleError`] when packets cannot be placed so.
pub(crate) fn lay_out(config: &Config, chain: &AnyChain) -> Result<Layout, AssembleError> {
    let mut rng = randomness(config.run.seed);
    Ok(Layout { steering: Arc::new(steering(config, chain, &mut rng)?), rng })
}

/// What random choices are drawn from.
pub(crate) fn randomness(seed: Option<u64>) -> StdRng {
    match seed {
        Some(seed) => StdRng::seed_from_u64(seed),
        None => StdRng::from_os_rng(),
    }
}

/// What idle workers do. Those of captures that are read as fast as possible wait for each other's packets, and
/// polling for them would only take the time of a worker that has some.
pub(crate) fn polling(config: &Config) -> Polling {
    match config.devices.iter().all(|device| device.facts().comes_as_taken) {
        true => Interrupt::polling(Duration::ZERO),
        false => config.polling.clone(),
    }
}

/// How packets are placed. A function that chooses ports gets a hash key under which each shard has its
/// share of them: of random ones, three of four are such.
fn steering(
    config: &Config,
    chain: &AnyChain,
    rng: &mut StdRng,
) -> Result<Steering, AssembleError> {
    let with = |key: &HashKey| {
        let orientations = config.devices.iter().map(|device| device.orientation.clone()).collect();
        let (buckets, shards) = (config.steering.buckets, config.state.shards);
        chain.steering_for(Steering::new(key, buckets, shards, orientations)?)
    };
    let ranges: Vec<_> =
        config.chain.iter().filter_map(|function| function.facts().ports).collect();
    Ok(match config.steering.key {
        HashKeyChoice::Symmetric => with(&HashKey::symmetric())?,
        HashKeyChoice::Microsoft => with(&HashKey::MICROSOFT)?,
        HashKeyChoice::Random => loop {
            let steering = with(&HashKey::new(rng.random()))?;
            if steering.translation().is_none() || suits_translating(&steering, &ranges) {
                break steering;
            }
        },
    })
}

/// Whether each shard has its share of ports, and of each range at least half of it. Of any range with two ports for each shard,
/// there are keys under which it has; of a smaller one, some shards may have none.
fn suits_translating(steering: &Steering, ranges: &[RangeInclusive<u16>]) -> bool {
    // ICMP, and UDP, whose ports are where those of TCP are.
    [1, 17].into_iter().all(|protocol| {
        let (family, end) = (Family::V4, KeyEnd::First);
        let has_half = |range: &RangeInclusive<u16>| {
            let half = range.len() / steering.shards() / 2;
            fewest_ports(steering, protocol, family, end, range.clone()) >= half
        };
        ports_are_even(steering, protocol, family, end) && ranges.iter().all(has_half)
    })
}

/// A packet leaves on the device of the other side; one device carries both directions.
fn routes(devices: &[DeviceConfig]) -> Routes {
    let find = |wanted: &Orientation| {
        devices.iter().position(|device| device.orientation == *wanted).unwrap_or(0)
    };
    let out = |(number, device): (usize, &DeviceConfig)| {
        let number = match device.orientation {
            Orientation::Inside => find(&Orientation::Outside),
            Orientation::Outside => find(&Orientation::Inside),
            Orientation::ByPrefix(_) => number,
        };
        DeviceId(number as u8)
    };
    Routes(devices.iter().enumerate().map(out).collect())
}
