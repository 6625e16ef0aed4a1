//! A service over TCP before it runs.

use std::net::IpAddr;
use std::sync::Arc;

use rheostat_base::{LaneId, ShardId};
use rheostat_ip::Network;
use rheostat_run::Service;
use rheostat_state::{
    Arena, ArenaError, FlowHasher, FragmentConfig, FragmentTracker, Shard, StateLayout, TableConfig,
};
use thiserror::Error;

use crate::application::Application;
use crate::config::{ListenerConfig, ServeConfig};
use crate::connections::Connections;
use crate::service::TcpService;
use crate::shared::{ServeControl, Shared};

/// Why there is no service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ServeError {
    /// Nothing is to be accepted.
    #[error("a service has no listener")]
    NoListener,
    /// Two listeners are at one place.
    #[error("two listeners have port {0} of the same address")]
    SamePort(u16),
    /// No peer can connect to port 0.
    #[error("a listener has port 0")]
    PortZero,
    /// The address is none of this machine's.
    #[error("a listener has the address {0}, which no device has")]
    Address(IpAddr),
}

/// A service over TCP: what the lanes of a run are built from.
pub struct TcpServer<A> {
    app: Arc<A>,
    network: Arc<Network>,
    shared: Arc<Shared>,
    lanes: usize,
}

impl<A: Application> TcpServer<A> {
    /// The service of `app` on `network`, for a run of so many lanes. The secret, of which initial sequence numbers are made
    /// (RFC 6528), is to be drawn at random.
    ///
    /// # Errors
    /// [`ServeError`] when listeners contradict each other or the network.
    pub fn new(
        app: A,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer<A>, ServeError> {
        check(&listeners, &network)?;
        let shared = Arc::new(Shared::new(listeners, limits, lanes, secret));
        Ok(TcpServer { app: Arc::new(app), network, shared, lanes })
    }

    /// What lane `lane` runs.
    pub fn service(&self, lane: LaneId) -> Box<dyn Service> {
        let (app, network) = (self.app.clone(), self.network.clone());
        Box::new(TcpService::new(lane, self.lanes, app, network, self.shared.clone()))
    }

    /// The shards of the run, without connections.
    ///
    /// # Errors
    /// [`ArenaError`] when the operating system does not give the memory.
    pub fn shards(
        &self,
        count: usize,
        hasher: FlowHasher,
        fragments: FragmentConfig,
    ) -> Result<Vec<Box<Shard>>, ArenaError> {
        // Connections have a table of their own.
        let table = TableConfig { capacity: 1, aliases: false };
        let tables = Arena::new(count, table, Arc::new(StateLayout::new()), hasher)?.into_tables();
        let shard = |(number, table)| {
            let id = ShardId(number as u16);
            let (fragments, local) = (FragmentTracker::new(fragments), Connections::<A>::new());
            Box::new(Shard { id, table, fragments, local }) as Box<Shard>
        };
        Ok(tables.into_iter().enumerate().map(shard).collect())
    }

    /// Looks at the service while it runs, and ends it.
    pub fn control(&self) -> ServeControl {
        ServeControl(self.shared.clone())
    }
}

fn check(listeners: &[ListenerConfig], network: &Network) -> Result<(), ServeError> {
    if listeners.is_empty() {
        return Err(ServeError::NoListener);
    }
    let own: Vec<_> = network
        .interfaces()
        .iter()
        .flat_map(|interface| interface.addresses.iter().map(|own| own.address))
        .collect();
    for (place, listener) in listeners.iter().enumerate() {
        let (address, port) = (listener.address, listener.port);
        if port == 0 {
            return Err(ServeError::PortZero);
        }
        if let Some(stranger) = address.filter(|address| !own.contains(address)) {
            return Err(ServeError::Address(stranger));
        }
        let is_same = |other: &ListenerConfig| (other.address, other.port) == (address, port);
        if listeners[..place].iter().any(is_same) {
            return Err(ServeError::SamePort(port));
        }
    }
    Ok(())
}

impl<A> std::fmt::Debug for TcpServer<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpServer").field("lanes", &self.lanes).finish_non_exhaustive()
    }
}
