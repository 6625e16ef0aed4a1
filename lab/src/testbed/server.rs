//! The network that a TCP service has: one interface whose neighbours are clients in this process.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_ip::{Interface, Network, Policy};
use rheostat_serve::ListenerConfig;
use rheostat_steer::{HashKey, Orientation, Steering, SteeringError};

/// Entries of the indirection table, and shards.
pub(crate) const SHARDS: usize = 128;
/// The secret of initial sequence numbers and of the table of connections.
pub(crate) const SECRET: [u8; 16] = [7; 16];
/// The interface.
pub(crate) const DEVICE: DeviceId = DeviceId(0);
/// Address and port of the service.
pub(crate) const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 80);

/// How packets of connections are placed.
pub(crate) fn steering() -> Result<Arc<Steering>, SteeringError> {
    let sides = vec![Orientation::Inside];
    Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, sides).map(Arc::new)
}

/// The network of a service whose interface has this hardware address.
pub(crate) fn network(mac: [u8; 6]) -> Arc<Network> {
    let interface = Interface {
        addresses: vec!["10.0.0.1/8".parse().expect("an address")],
        is_played: true,
        ..Interface::new(DEVICE, "sim", mac)
    };
    let policy = Policy { announce: false, ..Policy::default() };
    Arc::new(Network::new(vec![interface], &[], policy).expect("one interface"))
}

/// The listener of a service, which keeps idle connections.
pub(crate) fn listener() -> ListenerConfig {
    ListenerConfig { idle_timeout: None, ..ListenerConfig::new(ADDRESS.1) }
}
