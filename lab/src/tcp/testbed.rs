//! Lanes with a service, and clients of it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rheostat_base::{Clock, DeviceId, LaneId, QueueId};
use rheostat_io::Device;
use rheostat_ip::{Interface, Network, Policy};
use rheostat_kernel::CoreSet;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};
use rheostat_run::{Runtime, RuntimeConfig, Service};
use rheostat_serve::{Application, ListenerConfig, ServeConfig, ServeControl, TcpServer};
use rheostat_state::{FlowHasher, FragmentConfig};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::clients::{Clients, ClientsConfig};

use super::meter::{Metered, ServiceTicks};
use crate::error::BenchError;

/// Entries of the indirection table, and shards.
pub(super) const SHARDS: usize = 128;
const BUFFERS: u32 = 4_096;
const PORT: u16 = 80;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DEVICE: DeviceId = DeviceId(0);

/// What a row is measured on.
pub(super) struct Testbed {
    pub(super) clients: Clients,
    pub(super) pool: Mempool,
    pub(super) clock: Clock,
    steering: Arc<Steering>,
    network: Arc<Network>,
    hasher: FlowHasher,
}

/// A service that runs.
pub(super) struct Running {
    pub(super) runtime: Runtime,
    pub(super) control: ServeControl,
    pub(super) ticks: Vec<Arc<ServiceTicks>>,
}

impl Testbed {
    /// Clients as `adapt` makes them, behind a queue for each lane.
    pub(super) fn new(
        lanes: usize,
        connections: u32,
        adapt: impl FnOnce(ClientsConfig) -> ClientsConfig,
    ) -> Result<Testbed, BenchError> {
        let buffers = BUFFERS * lanes as u32;
        let pool = Mempool::new(&MempoolConfig { buffers, ..MempoolConfig::default() })?;
        touch(&pool);
        let key = HashKey::MICROSOFT;
        let steering = Arc::new(Steering::new(&key, SHARDS, SHARDS, vec![Orientation::Inside])?);
        let config = ClientsConfig::new(DEVICE, (SERVER, PORT), connections);
        let config = adapt(ClientsConfig { queues: lanes, ..config });
        let macs = config.macs;
        let clients = Clients::new(config, &steering);
        let interface = Interface {
            addresses: vec!["10.0.0.1/8".parse().expect("an address")],
            is_played: true,
            ..Interface::new(DEVICE, "sim", macs[1])
        };
        let policy = Policy { announce: false, ..Policy::default() };
        let network = Network::new(vec![interface], &[], policy).expect("one interface");
        let hasher = FlowHasher::fixed();
        let (network, clock) = (Arc::new(network), Clock::new());
        Ok(Testbed { clients, pool, clock, steering, network, hasher })
    }

    /// Starts a service of `app` on lanes whose cores begin with number `core`.
    pub(super) fn start(
        &self,
        app: impl Application,
        lanes: usize,
        core: usize,
        limits: ServeConfig,
    ) -> Result<Running, BenchError> {
        let cores = CoreSet::available()?.cores().to_vec();
        if cores.len() < core + lanes {
            return Err(BenchError::TooFewCores { lanes, cores: cores.len() });
        }
        let listener = ListenerConfig { idle_timeout: None, ..ListenerConfig::new(PORT) };
        let network = self.network.clone();
        let server = TcpServer::new(app, vec![listener], limits, network, lanes, &[7; 16]);
        let server = server.expect("one listener");
        let shards = server.shards(SHARDS, self.hasher, FragmentConfig::default())?;
        let config = RuntimeConfig {
            workers: cores[core..core + lanes].iter().copied().map(Some).collect(),
            handoff_capacity: 1_024,
            ..RuntimeConfig::new(lanes, self.pool.clone(), self.steering.clone(), self.hasher)
        };
        let ticks: Vec<Arc<ServiceTicks>> = (0..lanes).map(|_| Arc::default()).collect();
        let devices: Vec<Box<dyn Device>> = vec![Box::new(self.clients.clone())];
        let service = |lane: LaneId| -> Box<dyn Service> {
            Box::new(Metered {
                service: server.service(lane),
                clock: self.clock.clone(),
                clients: self.clients.counters(QueueId(lane.0)),
                ticks: ticks[lane.index()].clone(),
            })
        };
        let runtime = Runtime::start(config, devices, Clock::new(), service, shards)?;
        let control = server.control();
        Ok(Running { runtime, control, ticks })
    }
}

/// Uses every page of a pool once, so that it is in memory before growth is measured.
fn touch(pool: &Mempool) {
    let mut cache = PoolCache::new(pool.clone());
    let room = pool.buffer_room();
    let mut taken = Vec::new();
    while let Ok(mut packet) = cache.alloc(room) {
        packet.data_mut().fill(0);
        taken.push(packet);
    }
    taken.into_iter().for_each(|packet| cache.free(packet));
    cache.flush();
}
