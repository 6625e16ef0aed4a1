//! Opens connections to peers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_tcp::Connection;
use thiserror::Error;

use crate::budget::Refused;
use crate::connections::{Connections, Found};
use crate::egress::Egress;
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::index::tag_of;
use crate::listeners::Listeners;
use crate::ports::Ports;
use crate::shared::Shared;

/// Why a connection was not opened. Nothing was sent then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The service was made without what it takes to connect: [`TcpServer::connecting`](crate::TcpServer::connecting).
    #[error("the service opens no connections")]
    Unsupported,
    /// The service ends.
    #[error("the service is draining")]
    Draining,
    /// No route leads to the peer, or no peer can have the address.
    #[error("no route leads to {0}")]
    NoRoute(IpAddr),
    /// No interface there has an address of the peer's family, or none of those that connections may come from.
    #[error("there is no address from which to connect to {0}")]
    NoAddress(IpAddr),
    /// Each port whose answers come home to the shard is taken by a connection to the peer, from each address.
    #[error("all ports for connections to {0} are taken in their shard")]
    PortsExhausted(SocketAddr),
    /// There are as many connections as there may be.
    #[error("there are as many connections as there may be")]
    ConnectionLimit,
    /// Connections have as much memory as they may.
    #[error("connections have as much memory as they may")]
    Memory,
}

/// A lane's way to open connections.
pub(crate) struct Connector {
    ports: Option<Arc<Ports>>,
    shared: Arc<Shared>,
    /// Connections opened, so that ports do not soon come again.
    turn: usize,
}

impl Connector {
    pub(crate) fn new(ports: Option<Arc<Ports>>, shared: Arc<Shared>) -> Connector {
        Connector { ports, shared, turn: 0 }
    }

    /// Enters a connection to `remote`, whose SYN is sent when it has its turn. It belongs to the shard of `connections`.
    pub(crate) fn open<S>(
        &mut self,
        remote: SocketAddr,
        stream: S,
        connections: &mut Connections<S>,
        (egress, listeners): (&Egress, &mut Listeners),
        now: Time,
    ) -> Result<u32, ConnectError> {
        let ports = self.ports.as_ref().ok_or(ConnectError::Unsupported)?;
        if self.shared.is_draining() {
            return Err(ConnectError::Draining);
        }
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let peer = remote.ip();
        let device = egress.stack.device_towards(peer).filter(|_| remote.port() != 0);
        let device = device.ok_or(ConnectError::NoRoute(peer))?;
        let interface = egress.stack.network().interface(device);
        let interface = interface.ok_or(ConnectError::NoRoute(peer))?;
        let turn = self.turn;
        let addresses = addresses(&ports.config().addresses, interface, peer, turn);
        if addresses.is_empty() {
            return Err(ConnectError::NoAddress(peer));
        }
        self.shared.budget.open_at_once(connections.memory()).map_err(|refused| match refused {
            Refused::Memory => ConnectError::Memory,
            Refused::Connections => ConnectError::ConnectionLimit,
        })?;
        let (shard, zone) = (connections.shard(), u32::from(interface.vlan.unwrap_or(0)));
        let found = ports.find(shard, remote, addresses.into_iter(), zone, turn, |key, hash| {
            matches!(connections.find(key, hash), Found::Nothing)
        });
        let Some((key, hash)) = found else {
            self.shared.budget.close();
            return Err(ConnectError::PortsExhausted(remote));
        };
        self.turn = turn.wrapping_add(1);
        let config = listeners.settings(None, device, peer, &egress.stack);
        let initial = self.shared.numbers.of(Ends::of(&key).local, remote, now);
        let mut tcp = Connection::connect(config, initial, now);
        tcp.set_memory(Some(connections.memory().clone()));
        let route = egress.route(remote, device, now);
        tcp.set_path_mss(route.mss);
        let entry = Entry {
            key,
            device,
            listener: None,
            tcp,
            route,
            phase: Phase::Opening,
            peer_finished: false,
            stream,
            active: now,
            charged: 0,
            retransmitted: 0,
            tag: tag_of(hash),
        };
        Ok(connections.insert(entry))
    }
}

/// The addresses from which to connect to `peer`, in the order to try them: those of the interface, the nearest first; or of
/// those, the ones that were listed, each first in its turn.
fn addresses(
    listed: &[IpAddr],
    interface: &rheostat_ip::Interface,
    peer: IpAddr,
    turn: usize,
) -> Vec<IpAddr> {
    let own = interface.addresses.iter().map(|own| own.address);
    let own = own.filter(|own| own.is_ipv4() == peer.is_ipv4());
    if listed.is_empty() {
        let near = interface.address_towards(peer);
        return near.into_iter().chain(own.filter(|own| Some(*own) != near)).collect();
    }
    let mut usable: Vec<_> = own.filter(|own| listed.contains(own)).collect();
    if !usable.is_empty() {
        let first = turn % usable.len();
        usable.rotate_left(first);
    }
    usable
}
