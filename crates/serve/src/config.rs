//! Settings of a service.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_tcp::Config;

/// Where connections are accepted.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// The address; all of this machine without one.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
    /// Settings of its connections. The segment size is at most what the link carries.
    pub tcp: Config,
    /// How long the peer may take to complete the handshake.
    pub handshake_timeout: Duration,
    /// How long a connection may be silent; for ever without.
    pub idle_timeout: Option<Duration>,
    /// How long a request may take to arrive, from the first look at a part of it until [`Application::parse`](crate::Application::parse)
    /// finds all of it; for ever without. Then the connection ends ([`Application::time_out`](crate::Application::time_out)).
    pub request_timeout: Option<Duration>,
}

impl ListenerConfig {
    /// A listener at `port` of all addresses. Handshakes may take a minute. Connections that are idle for five minutes are closed.
    pub fn new(port: u16) -> ListenerConfig {
        // No bound but the link's.
        let tcp = Config { nagle: false, mss: u16::MAX, ..Config::default() };
        ListenerConfig {
            address: None,
            port,
            tcp,
            handshake_timeout: Duration::from_secs(60),
            idle_timeout: Some(Duration::from_secs(300)),
            request_timeout: None,
        }
    }
}

/// When SYNs are answered with cookies, of which nothing is kept (RFC 4987, 3.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookieMode {
    /// Never. A SYN beyond the bound of half-open connections takes the place of the oldest one.
    Off,
    /// Beyond the bound of half-open connections, unless the oldest one has been silent for longer than the first retransmission
    /// timeout: then the SYN takes its place.
    #[default]
    OnPressure,
    /// Always.
    Always,
}

impl SynCookieMode {
    /// All of them, by the names that configurations and command lines use.
    pub const NAMES: [(&'static str, SynCookieMode); 3] = [
        ("off", SynCookieMode::Off),
        ("on-pressure", SynCookieMode::OnPressure),
        ("always", SynCookieMode::Always),
    ];
}

/// How connections are opened.
#[derive(Clone, Debug)]
pub struct OutgoingConfig {
    /// Settings of the connections. The segment size is at most what the link carries.
    pub tcp: Config,
    /// How long a connection may be silent; for ever without.
    pub idle_timeout: Option<Duration>,
    /// The addresses they come from, in this order: all that the interface has if there are none.
    pub addresses: Vec<IpAddr>,
    /// The ports they come from, without those that are listened at.
    pub ports: RangeInclusive<u16>,
}

impl OutgoingConfig {
    /// Whether a connection may come from this port where these are listened at.
    pub(crate) fn may_use(&self, port: u16, listeners: &[ListenerConfig]) -> bool {
        let is_listened_at = listeners.iter().any(|listener| listener.port == port);
        port != 0 && self.ports.contains(&port) && !is_listened_at
    }
}

impl Default for OutgoingConfig {
    /// From all addresses and all ports that need no privileges (RFC 6056, 3.2).
    fn default() -> OutgoingConfig {
        let ListenerConfig { tcp, .. } = ListenerConfig::new(1);
        OutgoingConfig { tcp, idle_timeout: None, addresses: Vec::new(), ports: 1_024..=65_535 }
    }
}

/// Bounds of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeConfig {
    /// Connections at most, half-open ones included, of the whole process. A SYN beyond is dropped.
    pub connections: usize,
    /// Half-open connections at most, of the whole process. Beyond, `syn_cookies` decides.
    pub half_open: usize,
    /// When SYNs are answered with cookies.
    pub syn_cookies: SynCookieMode,
    /// Closed connections in TIME-WAIT at most, of the whole process. Beyond, a connection is forgotten when it is closed.
    pub time_wait: usize,
    /// Bytes allocated for data of all connections at most: TCP's buffers, unfinished requests, replies. From three quarters on,
    /// SYNs are dropped, windows close, and of the connections that move less than an eighth of their bytes in two seconds, the one
    /// with the most bytes is reset first. At the limit, data that finds no memory is sent again by the peer, or waits to be written. Requests and
    /// replies go beyond; then, of the connections with more than 128 KiB of these, the one with the most bytes is reset at once.
    pub memory: usize,
    /// The same for the connections of one shard, so that one cannot have everything.
    pub shard_memory: usize,
    /// The longest request. A longer one resets its connection.
    pub longest_request: usize,
    /// Bytes of memory that one reply may take. One that the application writes in pieces takes that of a piece, however long it
    /// is; another that takes more is replaced by an error reply, or resets its connection
    /// ([`Application::too_large`](crate::Application::too_large)).
    pub reply_memory: usize,
    /// How long a peer that has been sent everything may take to finish.
    pub linger: Duration,
}

impl Default for ServeConfig {
    fn default() -> ServeConfig {
        ServeConfig {
            connections: 100_000,
            half_open: 4_096,
            syn_cookies: SynCookieMode::default(),
            time_wait: 65_536,
            memory: 1 << 30,
            shard_memory: 256 << 20,
            longest_request: 1 << 20,
            reply_memory: 64 << 20,
            linger: Duration::from_secs(2),
        }
    }
}
