//! From a checked configuration to devices, lanes and shards.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{Clock, CoreId, CoreSet, DeviceId};
use rheostat_control::config::PollingConfig;
use rheostat_control::config::device::live::Access;
use rheostat_control::config::device::{DeviceConfig, DeviceKind};
use rheostat_control::config::steering::HashKeyChoice;
use rheostat_control::{Config, KernelFollower};
use rheostat_io::{CaptureWriter, Device};
use rheostat_nf::function::lb::check::HealthChecks;
use rheostat_nf::{Chain, ChainService, Seeds, make_shards, steering_for};
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::{LoadReporting, Polling, Routes, Runtime, RuntimeConfig, TimeSource};
use rheostat_state::{FlowHasher, FragmentConfig, StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, PortClasses, Steering};

use crate::devices::{Devices, Opener};
use crate::failure::Failure;
use crate::network::{self, Wiring};

/// Lanes up to which captures get the configured number of buffers: rings between lanes are as long
/// as the pool, so that a capture never overflows one.
const WIDE: usize = 8;
/// Buffers for a capture over more lanes than that.
const NARROW_POOL: u32 = 4_096;

/// Everything of a run that does not depend on its chain.
pub(crate) struct Assembly {
    config: Config,
    clock: Clock,
    rng: StdRng,
    cores: Vec<CoreId>,
    lanes: usize,
    captures: bool,
    pool: Mempool,
    steering: Arc<Steering>,
    devices: Vec<Box<dyn Device>>,
    wiring: Option<Wiring>,
    writers: Vec<CaptureWriter>,
}

impl Assembly {
    /// Opens the devices of `config`, whose chain is `chain`.
    ///
    /// # Errors
    /// [`Failure`] when a device cannot be opened, or memory or cores are lacking.
    pub(crate) fn new<C: Chain>(config: Config, chain: &C) -> Result<Assembly, Failure> {
        config.check_inputs()?;
        let mut rng = randomness(config.run.seed);
        let cores = choose_cores(&config)?;
        let lanes = lanes(&config, &cores);
        let captures =
            config.devices.iter().all(|device| matches!(device.kind, DeviceKind::Pcap(_)));
        let buffers = match captures && lanes > WIDE {
            true => config.pool.buffers.min(NARROW_POOL),
            false => config.pool.buffers,
        };
        let shared = |device: &DeviceConfig| match &device.kind {
            DeviceKind::Live(live) => matches!(live.access, Access::AfXdp { .. }),
            DeviceKind::Pcap(_) | DeviceKind::Sim(_) => false,
        };
        let pool = Mempool::new(&match config.devices.iter().any(shared) {
            true => MempoolConfig::umem(buffers),
            false => MempoolConfig { buffers, ..MempoolConfig::default() },
        })?;
        let steering = Arc::new(steering(&config, chain, &mut rng)?);
        let clock = Clock::new();
        let opener = Opener {
            lanes: lanes as u16,
            steering: &steering,
            pool: &pool,
            clock: &clock,
            seed: rng.random(),
        };
        let Devices { devices, writers } = opener.open(&config.devices)?;
        let wiring = network::of(&config, rng.random())?;
        Ok(Assembly {
            config,
            clock,
            rng,
            cores,
            lanes,
            captures,
            pool,
            steering,
            devices,
            wiring,
            writers,
        })
    }

    /// The files that the run writes; to be closed when it is over.
    pub(crate) fn writers(&self) -> Vec<CaptureWriter> {
        self.writers.clone()
    }

    /// The health checks of the run's load balancer, if there are any.
    pub(crate) fn checks(&self) -> Option<Arc<HealthChecks>> {
        self.wiring.as_ref()?.checks.clone()
    }

    /// What follows the kernel's routes, if anything does: until it is dropped.
    pub(crate) fn follower(&mut self) -> Option<KernelFollower> {
        self.wiring.as_mut()?.follower.take()
    }

    /// Starts a run of `chain`, whose functions have their places in `layout`.
    ///
    /// # Errors
    /// [`Failure`] when memory is lacking or a worker cannot be started.
    pub(crate) fn start<C: Chain>(
        mut self,
        chain: C,
        layout: StateLayout,
    ) -> Result<Runtime<ChainService<C>>, Failure> {
        let hasher = FlowHasher::new(self.rng.random());
        let state = &self.config.state;
        let limits = &state.fragments;
        let fragments = FragmentConfig {
            datagrams: limits.datagrams,
            pieces: limits.pieces,
            // Half of the pool at most, so that what is held cannot keep packets from arriving.
            held: limits.held.min(self.pool.capacity() / 2 / state.shards),
            timeout_v4: limits.timeout_v4,
            timeout_v6: limits.timeout_v6,
        };
        let capacity = usize::try_from(state.flows_per_shard()).unwrap_or(usize::MAX);
        let table = TableConfig { capacity, aliases: false };
        let seeds = Seeds { shards: self.rng.random() };
        let shards =
            make_shards(&chain, &self.steering, table, Arc::new(layout), hasher, fragments, seeds)?;
        let mut shards: Vec<_> = shards.into_iter().map(Some).collect();
        let handoff = self.config.workers.handoff;
        let config = RuntimeConfig {
            polling: match self.config.polling {
                PollingConfig::Busy => Polling::Busy,
                PollingConfig::Interrupt { spin } => Polling::Interrupt(spin),
            },
            lanes: self.lanes,
            workers: self.cores.iter().copied().map(Some).collect(),
            handoff_capacity: if self.captures { self.pool.capacity() } else { handoff },
            time: if self.captures { TimeSource::Packet } else { TimeSource::Poll },
            pool: self.pool,
            steering: self.steering,
            hasher,
            // Who has a control socket may ask what another policy would do.
            reporting: match (self.config.balance.is_static(), &self.config.observe.control) {
                (true, None) => LoadReporting::Lanes,
                _ => LoadReporting::Shards,
            },
        };
        let chain = Arc::new(chain);
        let routes = routes(&self.config.devices);
        let network = self.wiring.map(|wiring| wiring.network);
        let lanes = self.lanes;
        let service = |_| {
            let service = ChainService::new(chain.clone(), routes.clone());
            match &network {
                Some(network) => service.with_network(network.clone(), lanes),
                None => service,
            }
        };
        let shard = |id: rheostat_base::ShardId| {
            shards[id.index()].take().expect("each shard is asked for once")
        };
        Ok(Runtime::start(config, self.devices, self.clock, service, shard)?)
    }
}

/// Where a run would put packets.
pub(crate) struct Layout {
    pub(crate) steering: Steering,
    pub(crate) lanes: usize,
}

/// Where a run of `config`, whose chain is `chain`, would put packets; with a seed, the same as the run.
///
/// # Errors
/// [`Failure`] when packets cannot be placed so, or cores are lacking.
pub(crate) fn lay_out<C: Chain>(config: &Config, chain: &C) -> Result<Layout, Failure> {
    let lanes = lane_count(config)?;
    Ok(Layout { steering: steering(config, chain, &mut randomness(config.run.seed))?, lanes })
}

/// What random choices are drawn from.
pub(crate) fn randomness(seed: Option<u64>) -> StdRng {
    match seed {
        Some(seed) => StdRng::seed_from_u64(seed),
        None => StdRng::from_os_rng(),
    }
}

/// How many lanes a run of `config` has.
///
/// # Errors
/// [`Failure`] when cores are lacking.
pub(crate) fn lane_count(config: &Config) -> Result<usize, Failure> {
    Ok(lanes(config, &choose_cores(config)?))
}

fn lanes(config: &Config, cores: &[CoreId]) -> usize {
    config.workers.lanes.map_or(cores.len(), usize::from)
}

/// How packets are placed. A function that chooses ports gets a hash key under which each shard has its
/// share of them: of random ones, three of four are such.
fn steering<C: Chain>(config: &Config, chain: &C, rng: &mut StdRng) -> Result<Steering, Failure> {
    let with = |key: &HashKey| {
        let orientations = config.devices.iter().map(|device| device.orientation.clone()).collect();
        let (buckets, shards) = (config.steering.buckets, config.state.shards);
        steering_for(chain, Steering::new(key, buckets, shards, orientations)?)
    };
    Ok(match config.steering.key {
        HashKeyChoice::Symmetric => with(&HashKey::symmetric())?,
        HashKeyChoice::Microsoft => with(&HashKey::MICROSOFT)?,
        HashKeyChoice::Random => loop {
            let steering = with(&HashKey::new(rng.random()))?;
            let even = || [1, 17].iter().all(|p| PortClasses::new(&steering, *p).is_even());
            if steering.translation().is_none() || even() {
                break steering;
            }
        },
    })
}

/// The cores for workers: those of the configuration, or as many as can run at once.
fn choose_cores(config: &Config) -> Result<Vec<CoreId>, Failure> {
    let available = CoreSet::available()?;
    let Some(list) = &config.workers.cores else {
        return Ok(available.cores().iter().copied().take(available.parallelism()).collect());
    };
    if list.cores().iter().all(|core| available.cores().contains(core)) {
        return Ok(list.cores().to_vec());
    }
    let names = |cores: &[CoreId]| {
        cores.iter().map(|core| core.0.to_string()).collect::<Vec<_>>().join(",")
    };
    Err(Failure::TooManyCores { cores: names(list.cores()), available: names(available.cores()) })
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
