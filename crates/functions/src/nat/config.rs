//! The settings of a NAT.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_steer::PrefixList;

/// When two flows from one inner endpoint have the same external one (RFC 4787, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Always.
    #[default]
    EndpointIndependent,
    /// Only when they go to the same endpoint, and then they are one flow.
    AddressAndPortDependent,
}

/// Whose packets are let in to an external endpoint (RFC 4787, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// Those of every host.
    EndpointIndependent,
    /// Those of hosts that the inner endpoint has sent to.
    #[default]
    AddressDependent,
    /// Those of endpoints that it has sent to.
    AddressAndPortDependent,
}

/// Which external address an inner one gets (RFC 4787, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// Always the same.
    #[default]
    Paired,
    /// The same while that has ports, else another.
    Arbitrary,
}

/// An external endpoint that always leads to an inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The IP protocol: one with ports.
    pub protocol: u8,
    /// Where packets from outside go.
    pub external: (Ipv4Addr, u16),
    /// Where they are sent on.
    pub internal: (Ipv4Addr, u16),
}

/// How long flows live without a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatTimeouts {
    /// TCP, once both ends have sent: at least 2 h 4 min (RFC 5382, REQ-5).
    pub tcp_established: Duration,
    /// TCP that opens or was reset: at least 4 min (RFC 5382, REQ-5; RFC 7857, 2.1 and 2.2).
    pub tcp_transitory: Duration,
    /// TCP that both ends have closed: 4 min, twice the longest life of a segment (RFC 9293, 3.4.2). The port
    /// serves others in the meantime.
    pub tcp_time_wait: Duration,
    /// UDP, from the last packet from inside: at least 2 min, 5 min recommended (RFC 4787, REQ-5).
    pub udp: Duration,
    /// ICMP queries: at least 60 s (RFC 5508, REQ-2).
    pub icmp: Duration,
    /// Every other protocol.
    pub other: Duration,
}

impl Default for NatTimeouts {
    fn default() -> NatTimeouts {
        NatTimeouts {
            tcp_established: Duration::from_secs(2 * 3600 + 4 * 60),
            tcp_transitory: Duration::from_secs(4 * 60),
            tcp_time_wait: Duration::from_secs(4 * 60),
            udp: Duration::from_secs(5 * 60),
            icmp: Duration::from_secs(60),
            other: Duration::from_secs(10 * 60),
        }
    }
}

/// The settings of a NAT.
#[derive(Clone, Debug, PartialEq)]
pub struct NatConfig {
    /// The addresses that inner ones are translated to; at least one.
    pub external: Vec<Ipv4Addr>,
    /// The ports that flows get; those of privileged flows besides.
    pub ports: RangeInclusive<u16>,
    /// When flows share an external endpoint.
    pub mapping: Mapping,
    /// Which hosts are let in. With [`Mapping::AddressAndPortDependent`], only the one that a flow goes to.
    pub filtering: Filtering,
    /// Which external address an inner one gets.
    pub pooling: Pooling,
    /// The hosts that are translated; empty for all that send from inside.
    pub inside: PrefixList,
    /// Destinations that see inner addresses.
    pub exempt: PrefixList,
    /// External endpoints with a fixed inner one.
    pub forwards: Vec<Forward>,
    /// Whether each host of `inside` has a block of ports that follows from its address
    /// (RFC 7422).
    pub deterministic: bool,
    /// External ports one host may have at a time; `None` for any number.
    pub quota: Option<u32>,
    /// Whether hosts inside reach each other by external endpoints.
    pub hairpinning: bool,
    /// How long a port rests before another endpoint gets it (RFC 6888, REQ-8).
    pub rest: Duration,
    /// How long an unsolicited SYN stays unanswered (RFC 5382, REQ-4); `None` for ever.
    pub silence: Option<Duration>,
    /// How long flows live without a packet.
    pub timeouts: NatTimeouts,
    /// ICMP errors each shard sends per second at most.
    pub answers_per_second: u32,
    /// Ethertypes besides IP that are let through.
    pub ethertypes: Vec<u16>,
}

impl NatConfig {
    /// The default settings with these external addresses.
    pub fn new(external: Vec<Ipv4Addr>) -> NatConfig {
        NatConfig {
            external,
            ports: 1_024..=65_535,
            mapping: Mapping::default(),
            filtering: Filtering::default(),
            pooling: Pooling::default(),
            inside: PrefixList::default(),
            exempt: PrefixList::default(),
            forwards: Vec::new(),
            deterministic: false,
            quota: None,
            hairpinning: true,
            rest: Duration::from_secs(120),
            silence: Some(Duration::from_secs(6)),
            timeouts: NatTimeouts::default(),
            answers_per_second: 100,
            ethertypes: vec![0x0806],
        }
    }
}
