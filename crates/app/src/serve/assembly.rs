//! From a configuration to devices, lanes and shards of a service.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use rheostat_base::{Clock, ClockSource};
use rheostat_capture::Endpoints;
use rheostat_control::config::steering::HashKeyChoice;
use rheostat_control::config::{BalanceConfig, ServeConfig};
use rheostat_control::{Config, KernelFollower};
use rheostat_io::{Device, ImpairConfig, ImpairMonitor, impair};
use rheostat_ip::{Network, RunLimit};
use rheostat_packet::Mempool;
use rheostat_run::{LoadReporting, Runtime, RuntimeConfig};
use rheostat_serve::{OutgoingConfig, ServeError, TcpServer, steering_for_connecting};
use rheostat_state::FlowHasher;
use rheostat_steer::{HashKey, Orientation, Steering, SteeringError};

use crate::assemble::{self, AssembleError};
use crate::devices::{Devices, Opener};
use crate::links::WatchedLink;
use crate::network::{self, NoAddress, Wiring};
use crate::workers::Workers;

/// Everything of a run that does not depend on the application.
pub(super) struct ServeAssembly {
    config: Config,
    clock: Clock,
    workers: Workers,
    pool: Mempool,
    steering: Arc<Steering>,
    devices: Vec<Box<dyn Device>>,
    impaired: Vec<ImpairMonitor>,
    network: Arc<Network>,
    errors: RunLimit,
    watched: Vec<WatchedLink>,
    follower: Option<KernelFollower>,
    hasher: FlowHasher,
    secret: [u8; 16],
}

impl ServeAssembly {
    /// Opens the devices of `config` for `workers`, behind a network with these faults. They take packets of `endpoints`, and all that
    /// they are configured to take if there are none.
    ///
    /// # Errors
    /// [`AssembleError`] when a device cannot be opened, or memory is lacking.
    pub(super) fn new(
        config: Config,
        workers: Workers,
        endpoints: Endpoints,
        faults: Option<ImpairConfig>,
    ) -> Result<ServeAssembly, AssembleError> {
        let mut rng = assemble::randomness(config.run.seed);
        let lanes = workers.lanes();
        let steering = Arc::new(steering(&config, &mut rng)?);
        let pool = Mempool::new(&assemble::pool_config(&config, lanes))?;
        let clock = Clock::new();
        let opener = Opener {
            lanes: lanes as u16,
            queue_sharing: 1,
            ordered: false,
            endpoints,
            steering: &steering,
            pool: &pool,
            clock: &clock,
            seed: rng.random(),
        };
        let Devices { devices, watched, .. } = opener.open(&config.devices)?;
        let shared: Arc<dyn ClockSource> = Arc::new(clock.clone());
        let mut impaired = Vec::new();
        let behind_faults = |device: Box<dyn Device>| -> Box<dyn Device> {
            let Some(faults) = &faults else { return device };
            let (device, faults) = impair(device, faults, &pool, &shared);
            impaired.push(faults);
            Box::new(device)
        };
        let devices = devices.into_iter().map(behind_faults).collect();
        let errors = assemble::error_limit(&config);
        let wiring = network::of(&config, errors.clone(), rng.random())?;
        let Wiring { network, follower, .. } = wiring.ok_or(NoAddress)?;
        let hasher = FlowHasher::new(rng.random());
        let secret = rng.random();
        Ok(ServeAssembly {
            config,
            clock,
            workers,
            pool,
            steering,
            devices,
            impaired,
            network,
            errors,
            watched,
            follower,
            hasher,
            secret,
        })
    }

    pub(super) fn network(&self) -> Arc<Network> {
        self.network.clone()
    }

    /// The limit of errors that the network layer sends.
    pub(super) fn errors(&self) -> RunLimit {
        self.errors.clone()
    }

    /// Counts the faults of the network before the devices.
    pub(super) fn faults(&self) -> Vec<ImpairMonitor> {
        self.impaired.clone()
    }

    pub(super) fn lanes(&self) -> usize {
        self.workers.lanes()
    }

    /// The clock that lanes are polled by.
    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// What initial sequence numbers are made of.
    pub(super) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// Lets a service connect.
    ///
    /// # Errors
    /// [`ServeError`] when there is nothing to connect from.
    pub(super) fn connecting(
        &self,
        server: TcpServer,
        outgoing: OutgoingConfig,
    ) -> Result<TcpServer, ServeError> {
        server.connecting(self.steering.clone(), self.hasher, outgoing)
    }

    /// The policy that moves shards.
    pub(super) fn balance(&self) -> BalanceConfig {
        self.config.balance.clone()
    }

    /// The interfaces of live devices; to be followed while the run goes on.
    pub(super) fn take_watched(&mut self) -> Vec<WatchedLink> {
        std::mem::take(&mut self.watched)
    }

    /// What follows the kernel's routes, if anything does: until it is dropped.
    pub(super) fn take_follower(&mut self) -> Option<KernelFollower> {
        self.follower.take()
    }

    /// Starts to serve.
    ///
    /// # Errors
    /// [`AssembleError`] when memory is lacking or a worker cannot be started.
    pub(super) fn start(self, server: &TcpServer) -> Result<Runtime, AssembleError> {
        let fragments = assemble::fragment_config(&self.config, self.pool.capacity());
        let shards = server.shards(self.config.state.shards, self.hasher, fragments)?;
        let config = RuntimeConfig {
            polling: assemble::polling(&self.config),
            workers: self.workers.pinned(),
            handoff_capacity: self.config.workers.handoff,
            reporting: match self.config.balance.is_static() {
                true => LoadReporting::Lanes,
                false => LoadReporting::Shards,
            },
            sharing: self.config.serve.as_ref().and_then(|serve| serve.scheduling.sharing()),
            ..RuntimeConfig::new(self.workers.lanes(), self.pool, self.steering, self.hasher)
        };
        let service = |lane| server.service(lane);
        Ok(Runtime::start(config, self.devices, self.clock, service, shards)?)
    }
}

/// How packets are placed.
///
/// # Errors
/// [`SteeringError`] when they cannot be placed so.
pub(super) fn steering(config: &Config, rng: &mut StdRng) -> Result<Steering, SteeringError> {
    // Only packets from peers arrive, so that keys have them first, whatever the device.
    let with = |key: &HashKey| {
        let orientations = vec![Orientation::Inside; config.devices.len()];
        Steering::new(key, config.steering.buckets, config.state.shards, orientations)
    };
    Ok(match config.steering.key {
        HashKeyChoice::Symmetric => with(&HashKey::symmetric())?,
        HashKeyChoice::Microsoft => with(&HashKey::MICROSOFT)?,
        HashKeyChoice::Random => {
            let serve = config.serve.as_ref();
            let listeners = serve.map_or_else(Vec::new, ServeConfig::listeners);
            let outgoing = serve.map_or_else(OutgoingConfig::default, ServeConfig::outgoing);
            let draw = || with(&HashKey::new(rng.random()));
            steering_for_connecting(&outgoing, &listeners, draw)?
        }
    })
}
