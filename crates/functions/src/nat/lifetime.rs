//! How long what a NAT keeps lives without a packet.

use std::time::Duration;

use super::TCP;
use super::config::NatTimeouts;
use super::session::Session;

/// What a time-out is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    TcpEstablished,
    TcpTransitory,
    TcpTimeWait,
    Udp,
    Icmp,
    Other,
}

impl Lifetime {
    /// All of them, in order.
    pub(super) const ALL: [Lifetime; 6] = [
        Lifetime::TcpEstablished,
        Lifetime::TcpTransitory,
        Lifetime::TcpTimeWait,
        Lifetime::Udp,
        Lifetime::Icmp,
        Lifetime::Other,
    ];

    /// That of a flow of `protocol`, whose connection, if it is one, is in state `session`.
    #[inline]
    pub(super) fn of(protocol: u8, session: Session) -> Lifetime {
        match protocol {
            TCP if session.is_established() => Lifetime::TcpEstablished,
            TCP if session.is_closed() => Lifetime::TcpTimeWait,
            TCP => Lifetime::TcpTransitory,
            17 | 136 => Lifetime::Udp,
            1 | 58 => Lifetime::Icmp,
            _ => Lifetime::Other,
        }
    }
}

impl NatTimeouts {
    /// How long that is.
    #[inline]
    pub(super) fn of(&self, lifetime: Lifetime) -> Duration {
        match lifetime {
            Lifetime::TcpEstablished => self.tcp_established,
            Lifetime::TcpTransitory => self.tcp_transitory,
            Lifetime::TcpTimeWait => self.tcp_time_wait,
            Lifetime::Udp => self.udp,
            Lifetime::Icmp => self.icmp,
            Lifetime::Other => self.other,
        }
    }
}
