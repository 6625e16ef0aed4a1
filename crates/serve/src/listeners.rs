//! Listeners, of which every lane has all.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_ip::Stack;
use rheostat_tcp::Config;

use crate::config::ListenerConfig;
use crate::egress::headers_towards;

/// What a peer takes that does not say, over IPv6 (RFC 9293, 3.7.1).
const DEFAULT_MSS_V6: u16 = 1_220;

/// The listeners of a lane.
#[derive(Debug)]
pub(crate) struct Listeners {
    all: Vec<ListenerConfig>,
    /// Settings as connections share them: by listener and segment size.
    shared: Vec<(usize, u16, bool, Arc<Config>)>,
}

impl Listeners {
    pub(crate) fn new(all: Vec<ListenerConfig>) -> Listeners {
        Listeners { all, shared: Vec::new() }
    }

    pub(crate) fn get(&self, number: u16) -> &ListenerConfig {
        &self.all[usize::from(number)]
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

    /// The settings of connections to `peer` that come to a listener on `device`: segments are no longer than the link carries.
    pub(crate) fn settings(
        &mut self,
        number: u16,
        device: DeviceId,
        peer: IpAddr,
        stack: &Stack,
    ) -> Arc<Config> {
        let longest = stack.longest_packet(device, peer).saturating_sub(headers_towards(peer));
        let config = &self.all[usize::from(number)].tcp;
        let mss = config.mss.min(longest);
        let is_it = |(of, size, is_v4, _): &&(usize, u16, bool, Arc<Config>)| {
            (*of, *size, *is_v4) == (number.into(), mss, peer.is_ipv4())
        };
        if let Some((.., known)) = self.shared.iter().find(is_it) {
            return known.clone();
        }
        let default_mss = if peer.is_ipv4() { config.default_mss } else { DEFAULT_MSS_V6 };
        let shared = Arc::new(Config { mss, default_mss, ..config.clone() });
        // Links change their MTU now and then; connections keep what they have.
        self.shared.truncate(63);
        self.shared.insert(0, (number.into(), mss, peer.is_ipv4(), shared.clone()));
        shared
    }
}
