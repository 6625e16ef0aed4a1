//! Listeners, of which every lane has all.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_ip::Stack;
use rheostat_tcp::Config;

use crate::config::{ListenerConfig, OutgoingConfig};
use crate::egress::headers_towards;

/// What a peer takes that does not say, over IPv6 (RFC 9293, 3.7.1).
const DEFAULT_MSS_V6: u16 = 1_220;

/// The listeners of a lane.
#[derive(Debug)]
pub(crate) struct Listeners {
    all: Vec<ListenerConfig>,
    /// Of connections that this end opens.
    outgoing: OutgoingConfig,
    /// Settings as connections share them: by listener and segment size.
    shared: Vec<(Option<u16>, u16, bool, Arc<Config>)>,
}

impl Listeners {
    pub(crate) fn new(all: Vec<ListenerConfig>, outgoing: OutgoingConfig) -> Listeners {
        Listeners { all, outgoing, shared: Vec::new() }
    }

    /// How long connections of a listener, or those that this end opens, may be silent.
    pub(crate) fn idle_timeout(&self, number: Option<u16>) -> Option<Duration> {
        match number {
            Some(number) => self.all[usize::from(number)].idle_timeout,
            None => self.outgoing.idle_timeout,
        }
    }

    /// How long a request may take to arrive on connections of a listener.
    pub(crate) fn request_timeout(&self, number: Option<u16>) -> Option<Duration> {
        self.all[usize::from(number?)].request_timeout
    }

    /// The listener at `local`: the one of this address rather than one of all.
    pub(crate) fn find(&self, local: SocketAddr) -> Option<u16> {
        let position = |address: Option<IpAddr>| {
            let is_it = |listener: &ListenerConfig| {
                listener.port == local.port() && listener.address == address
            };
            self.all.iter().position(is_it)
        };
        position(Some(local.ip())).or_else(|| position(None)).map(|number| number as u16)
    }

    /// The settings of connections to `peer` that come to a listener on `device`, or that this end opens: segments are no longer
    /// than the link carries.
    pub(crate) fn settings(
        &mut self,
        number: Option<u16>,
        device: DeviceId,
        peer: IpAddr,
        stack: &Stack,
    ) -> Arc<Config> {
        let config = match number {
            Some(number) => &self.all[usize::from(number)].tcp,
            None => &self.outgoing.tcp,
        };
        let longest = stack.longest_packet(device, peer).saturating_sub(headers_towards(peer));
        let mss = config.mss.min(longest);
        let is_it = |(of, size, is_v4, _): &&(Option<u16>, u16, bool, Arc<Config>)| {
            (*of, *size, *is_v4) == (number, mss, peer.is_ipv4())
        };
        if let Some((.., known)) = self.shared.iter().find(is_it) {
            return known.clone();
        }
        let default_mss = if peer.is_ipv4() { config.default_mss } else { DEFAULT_MSS_V6 };
        let shared = Arc::new(Config { mss, default_mss, ..config.clone() });
        // Links change their MTU now and then; connections keep what they have.
        self.shared.truncate(63);
        self.shared.insert(0, (number, mss, peer.is_ipv4(), shared.clone()));
        shared
    }
}
