//! What an attack can be told.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;

use crate::SourceError;
use crate::usual::{Usual, check_rate, check_share};

/// How to attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// SYNs for one service, each from another host and port (RFC 4987, section 2).
    SynFlood,
    /// Datagrams of all sizes to all ports of one host, each from another host and port.
    UdpFlood,
    /// SYNs of one host to eight ports of 65,536 others.
    Scan,
    /// Whole connections of 256 hosts to one service: nothing distinguishes them from customers but their number.
    Service,
}

/// The settings of an attack.
#[derive(Clone, Debug, PartialEq)]
pub struct AttackConfig {
    /// Packets per second, those of the attack included.
    pub packets_per_second: u64,
    /// What kind of attack.
    pub kind: AttackKind,
    /// The attack's share of the packets.
    pub share: f64,
    /// The service attacked; of a UDP flood the host counts, of a scan its network of 65,536 addresses.
    pub target: SocketAddr,
    /// What goes on all the time.
    pub usual: Usual,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for AttackConfig {
    fn default() -> AttackConfig {
        AttackConfig {
            packets_per_second: 1_000_000,
            kind: AttackKind::SynFlood,
            share: 0.5,
            target: SocketAddr::from((Ipv4Addr::new(10, 255, 0, 1), 443)),
            usual: Usual::default(),
            seed: 1,
        }
    }
}

impl AttackConfig {
    pub(super) fn check(&self) -> Result<(), SourceError> {
        check_rate(self.packets_per_second)?;
        check_share("share", self.share)
    }
}
