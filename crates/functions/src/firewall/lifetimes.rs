//! How long flows live without a packet.

use std::time::Duration;

/// Lifetimes by protocol and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// An established TCP connection, also one that is half closed: at least 2 h 4 min
    /// (RFC 5382, REQ-5).
    pub tcp_established: Duration,
    /// A TCP connection that is opening, or that both ends have closed: at least 4 min
    /// (RFC 5382, REQ-5).
    pub tcp_transitory: Duration,
    /// A TCP connection after a reset: long enough for what is still under way.
    pub tcp_closed: Duration,
    /// UDP answered by the other end: at least 2 min, 5 min recommended (RFC 4787, REQ-5).
    pub udp: Duration,
    /// UDP not answered yet: the least that RFC 4787, REQ-5, allows.
    pub udp_unanswered: Duration,
    /// ICMP queries: at least 60 s (RFC 5508, REQ-2).
    pub icmp: Duration,
    /// Every other protocol.
    pub other: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            tcp_established: Duration::from_secs(2 * 3600 + 4 * 60),
            tcp_transitory: Duration::from_secs(4 * 60),
            tcp_closed: Duration::from_secs(10),
            udp: Duration::from_secs(5 * 60),
            udp_unanswered: Duration::from_secs(2 * 60),
            icmp: Duration::from_secs(60),
            other: Duration::from_secs(10 * 60),
        }
    }
}
