//! What a load balancer is told.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_steer::Prefix;

use super::check::CheckConfig;
use super::health::Health;
use super::maglev::Candidate;
use super::quic::{QuicRouting, ServerId};
use crate::firewall::PortRange;

/// The settings of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LbConfig {
    /// What the tables and the hash into them are drawn from. The same on every instance that serves the
    /// same addresses; with it, a client can choose connections that all go to one backend.
    pub seed: u64,
    /// Slots of each service's table: a prime, at least a hundred for each backend.
    pub table_size: usize,
    /// The services.
    pub services: Vec<ServiceConfig>,
    /// What becomes of packets that belong to no service.
    pub other: Other,
    /// How packets travel to backends that answer clients directly.
    pub tunnel: TunnelConfig,
    /// How long flows are remembered without a packet.
    pub timeouts: Timeouts,
    /// ICMP errors and resets that each shard sends per second at most, and echo replies.
    pub answers_per_second: u32,
    /// Where packets of its own leave.
    pub sides: Sides,
    /// The file that the program writes changes of health to.
    pub log: Option<PathBuf>,
}

/// The devices that lead to backends and clients; the same one twice where it carries both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// To the backends.
    pub inside: DeviceId,
    /// To the clients.
    pub outside: DeviceId,
}

/// An address and ports that clients know, and the backends that serve them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// What people call it.
    pub name: String,
    /// The virtual address.
    pub vip: IpAddr,
    /// TCP or UDP, by its IP protocol number.
    pub protocol: u8,
    /// The ports; none means all.
    pub ports: Vec<PortRange>,
    /// How packets get to the backends.
    pub mode: Mode,
    /// What becomes of the flows of a backend that is down.
    pub on_down: OnDown,
    /// Where QUIC connection IDs name the backend.
    pub quic: Option<QuicRouting>,
    /// How the backends are checked, if they are.
    pub check: Option<CheckConfig>,
    /// The backends. Flow state names them by their place here.
    pub backends: Vec<BackendConfig>,
}

/// A backend of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendConfig {
    /// Its address, of the same family as the service's.
    pub address: IpAddr,
    /// The port it serves, with [`Mode::Nat`] only; without one packets keep theirs.
    pub port: Option<u16>,
    /// Its share of new flows, compared with the others' weights.
    pub weight: u32,
    /// Whether it takes flows.
    pub health: Health,
    /// What connection IDs call it.
    pub server_id: Option<ServerId>,
}

/// Its address, and its port where it has its own.
impl fmt::Display for BackendConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// How packets get to the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In another IP header (RFC 2003; RFC 2473). The backend has the service's address and answers the
    /// client directly.
    DsrIpip,
    /// In UDP (Generic UDP Encapsulation), else the same.
    DsrGue,
    /// With the backend's address in place of the service's; answers come back through here.
    Nat,
}

/// What becomes of the flows of a backend that is down, on their next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDown {
    /// Another backend gets them; it will refuse a TCP connection that it does not know.
    #[default]
    Move,
    /// The client's TCP connection is reset; flows of UDP move.
    Reset,
}

/// What becomes of packets that belong to no service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Other {
    /// They are forwarded as they are.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// The tunnels to backends that answer directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// Bytes of the longest IP packet that reaches the backends.
    pub mtu: u16,
    /// Time to live, or hop limit, of outer headers.
    pub ttl: u8,
    /// Source addresses of outer headers, one prefix per family at most: each flow has its own, so that
    /// backends' interfaces spread flows over their queues.
    pub sources: Vec<Prefix>,
    /// The UDP port on which backends take [`Mode::DsrGue`].
    pub gue_port: u16,
}

/// How long flows are remembered without a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A TCP connection of which only the opening was seen.
    pub tcp_opening: Duration,
    /// An established TCP connection: at least 2 h 4 min where addresses are translated
    /// (RFC 5382, REQ-5).
    pub tcp_established: Duration,
    /// A TCP connection in which an end has said that it has no more to send.
    pub tcp_closing: Duration,
    /// A TCP connection after a reset.
    pub tcp_closed: Duration,
    /// UDP: at least 2 min, 5 min recommended (RFC 4787, REQ-5).
    pub udp: Duration,
}

impl Default for LbConfig {
    /// No services.
    fn default() -> LbConfig {
        LbConfig {
            seed: 0,
            table_size: 65_537,
            services: Vec::new(),
            other: Other::default(),
            tunnel: TunnelConfig::default(),
            timeouts: Timeouts::default(),
            answers_per_second: 100,
            sides: Sides { inside: DeviceId(0), outside: DeviceId(0) },
            log: None,
        }
    }
}

impl TunnelConfig {
    /// The prefix that source addresses of packets to `backend` are from.
    #[inline]
    pub(super) fn source_for(&self, backend: IpAddr) -> Option<Prefix> {
        let is_v4 = backend.is_ipv4();
        self.sources.iter().copied().find(|source| source.address().is_ipv4() == is_v4)
    }
}

impl Default for TunnelConfig {
    fn default() -> TunnelConfig {
        // The port is IANA's for GUE.
        TunnelConfig { mtu: 1_500, ttl: 64, sources: Vec::new(), gue_port: 6_080 }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            tcp_opening: Duration::from_secs(60),
            tcp_established: Duration::from_secs(2 * 3_600 + 4 * 60),
            tcp_closing: Duration::from_secs(4 * 60),
            tcp_closed: Duration::from_secs(10),
            udp: Duration::from_secs(5 * 60),
        }
    }
}

impl ServiceConfig {
    /// The port on which the backend at this place is checked; `None` where the configuration names none.
    pub fn checked_port(&self, backend: usize) -> Option<u16> {
        let asked = self.check.as_ref().and_then(|check| check.port);
        let of_backend = self.backends.get(backend).and_then(|backend| backend.port);
        asked.or(of_backend).or(self.ports.first().map(|range| range.low))
    }

    /// The backends as the table sees them, of this health: those that take no new flows have no weight.
    pub fn candidates(&self, health: &[Health]) -> Vec<Candidate> {
        let candidate = |(backend, health): (&BackendConfig, &Health)| Candidate {
            address: backend.address,
            port: backend.port.unwrap_or(0),
            weight: if *health == Health::Up { backend.weight } else { 0 },
        };
        self.backends.iter().zip(health).map(candidate).collect()
    }

    /// The health that the configuration states.
    pub fn health(&self) -> Vec<Health> {
        self.backends.iter().map(|backend| backend.health).collect()
    }
}
