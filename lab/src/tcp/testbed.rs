//! Lanes with a service, and clients of it.

use std::sync::Arc;

use rheostat_base::{Clock, LaneId, QueueId};
use rheostat_io::Device;
use rheostat_ip::Network;
use rheostat_packet::{Mempool, PoolCache};
use rheostat_run::{Runtime, RuntimeConfig, Service};
use rheostat_serve::{Application, ServeConfig, ServeControl, TcpServer};
use rheostat_state::{FlowHasher, FragmentConfig};
use rheostat_steer::Steering;
use rheostat_traffic::clients::{Clients, ClientsConfig};

use super::meter::{Metered, ServiceTicks};
use crate::error::BenchError;
use crate::testbed::{Cores, lanes as runs, server};

/// Packet buffers for each lane.
const BUFFERS: u32 = 4_096;

/// What a row is measured on.
pub(super) struct TcpTestbed {
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

impl TcpTestbed {
    /// Clients as `adapt` makes them, behind a queue for each lane.
    pub(super) fn new(
        lanes: usize,
        connections: u32,
        adapt: impl FnOnce(ClientsConfig) -> ClientsConfig,
    ) -> Result<TcpTestbed, BenchError> {
        let pool = runs::pool(BUFFERS * lanes as u32)?;
        touch(&pool);
        let steering = server::steering()?;
        let config = ClientsConfig::new(server::DEVICE, server::ADDRESS, connections);
        let config = adapt(ClientsConfig { queues: lanes, ..config });
        let macs = config.macs;
        let clients = Clients::new(config, &steering);
        let (network, hasher) = (server::network(macs[1]), FlowHasher::fixed());
        let clock = Clock::new();
        Ok(TcpTestbed { clients, pool, clock, steering, network, hasher })
    }

    /// Starts a service of `app` on lanes whose cores begin with number `core`.
    pub(super) fn start(
        &self,
        app: impl Application,
        lanes: usize,
        core: usize,
        limits: ServeConfig,
    ) -> Result<Running, BenchError> {
        let cores = Cores::of_lanes(core, lanes)?;
        let (listeners, network) = (vec![server::listener()], self.network.clone());
        let server = TcpServer::new(app, listeners, limits, network, lanes, &server::SECRET);
        let server = server.expect("one listener");
        let shards = server.shards(server::SHARDS, self.hasher, FragmentConfig::default())?;
        let config = RuntimeConfig {
            workers: cores.bound(lanes),
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
