//! From a configuration to devices, lanes and shards of a service.

use std::sync::Arc;

use rand::Rng;
use rheostat_base::{Clock, ClockSource, CoreId};
use rheostat_control::Config;
use rheostat_control::config::BalanceConfig;
use rheostat_io::{Device, ImpairConfig, ImpairMonitor, impair};
use rheostat_ip::Network;
use rheostat_packet::Mempool;
use rheostat_run::{LoadReporting, Runtime, RuntimeConfig};
use rheostat_serve::{OutgoingConfig, ServeError, TcpServer};
use rheostat_state::FlowHasher;
use rheostat_steer::{HashKey, Orientation, Steering};

use crate::assemble;
use crate::devices::{Devices, Opener};
use crate::failure::Failure;
use crate::links::Watched;
use crate::network::{self, Wiring};

/// Shards of a service.
pub(super) const SHARDS: usize = 128;

/// Everything of a run that does not depend on the application.
pub(super) struct Assembly {
    config: Config,
    clock: Clock,
    cores: Vec<CoreId>,
    lanes: usize,
    pool: Mempool,
    steering: Arc<Steering>,
    devices: Vec<Box<dyn Device>>,
    impaired: Vec<ImpairMonitor>,
    network: Arc<Network>,
    watched: Vec<Watched>,
    hasher: FlowHasher,
    secret: [u8; 16],
}

impl Assembly {
    /// Opens the devices of `config`, behind a network with these faults.
    ///
    /// # Errors
    /// [`Failure`] when a device cannot be opened, or memory or cores are lacking.
    pub(super) fn new(config: Config, faults: Option<ImpairConfig>) -> Result<Assembly, Failure> {
        config.check_inputs()?;
        let mut rng = assemble::randomness(config.run.seed);
        let cores = assemble::choose_cores(&config)?;
        let lanes = assemble::lanes(&config, &cores);
        // Only packets from peers arrive, so that keys have them first, whatever the device.
        let orientations = vec![Orientation::Inside; config.devices.len()];
        let key = HashKey::new(rng.random());
        let steering = Steering::new(&key, config.steering.buckets, SHARDS, orientations)?;
        let steering = Arc::new(steering);
        let pool = Mempool::new(&assemble::pool_config(&config, lanes))?;
        let clock = Clock::new();
        let opener = Opener {
            lanes: lanes as u16,
            queue_sharing: 1,
            ordered: false,
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
        let wiring = network::of(&config, rng.random())?;
        let Wiring { network, .. } = wiring.ok_or(Failure::NoAddress)?;
        let hasher = FlowHasher::new(rng.random());
        let secret = rng.random();
        Ok(Assembly {
            config,
            clock,
            cores,
            lanes,
            pool,
            steering,
            devices,
            impaired,
            network,
            watched,
            hasher,
            secret,
        })
    }

    pub(super) fn network(&self) -> Arc<Network> {
        self.network.clone()
    }

    /// Counts the faults of the network before the devices.
    pub(super) fn faults(&self) -> Vec<ImpairMonitor> {
        self.impaired.clone()
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes
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
    pub(super) fn take_watched(&mut self) -> Vec<Watched> {
        std::mem::take(&mut self.watched)
    }

    /// Starts to serve.
    ///
    /// # Errors
    /// [`Failure`] when memory is lacking or a worker cannot be started.
    pub(super) fn start(self, server: &TcpServer) -> Result<Runtime, Failure> {
        let fragments = assemble::fragment_config(&self.config, self.pool.capacity());
        let shards = server.shards(SHARDS, self.hasher, fragments)?;
        let config = RuntimeConfig {
            polling: assemble::polling(&self.config),
            workers: assemble::workers(&self.config, &self.cores),
            handoff_capacity: self.config.workers.handoff,
            reporting: match self.config.balance.is_static() {
                true => LoadReporting::Lanes,
                false => LoadReporting::Shards,
            },
            ..RuntimeConfig::new(self.lanes, self.pool, self.steering, self.hasher)
        };
        let service = |lane| server.service(lane);
        Ok(Runtime::start(config, self.devices, self.clock, service, shards)?)
    }
}
