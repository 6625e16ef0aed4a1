//! The words before a value, and values.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use rheostat_packet::Network;
use rheostat_packet::wire::protocol::{SCTP, TCP, UDP};
use rheostat_steer::Prefix;

use super::{Expression, Term, Way};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Host,
    Net,
    Port,
    Protocol,
}

/// The words before a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Qualifiers<'t> {
    /// The word of a protocol.
    pub(super) protocol: Option<&'t str>,
    /// Each of these ends.
    pub(super) ends: &'static [Way],
    pub(super) kind: Kind,
}

/// A value that was read.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Host(IpAddr),
    Net(Prefix),
    Port(RangeInclusive<u16>),
    Protocol(u8),
}

impl Qualifiers<'_> {
    /// The expression that a value behind these words is.
    pub(super) fn with(&self, value: &Value) -> Expression {
        let mut parts = Vec::new();
        parts.extend(self.protocol.and_then(protocol).map(Expression::Term));
        parts.extend(self.ends.iter().map(|end| Expression::Term(value.term(*end))));
        if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) }
    }
}

impl Kind {
    /// The word that names it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Net => "net",
            Kind::Port => "port",
            Kind::Protocol => "proto",
        }
    }

    pub(super) fn needs(self, word: &str) -> &'static str {
        match self {
            Kind::Host => "an address such as 10.0.0.1",
            Kind::Net => "a prefix such as 10.0.0.0/8",
            Kind::Port if word == "portrange" => "two ports as in 1024-2047",
            Kind::Port => "a port, or two as in 1024-2047",
            Kind::Protocol => "a protocol number, 0 to 255, or a name such as gre",
        }
    }

    pub(super) fn read(self, word: &str, text: &str) -> Option<Value> {
        Some(match self {
            Kind::Host => Value::Host(text.parse().ok()?),
            Kind::Net => Value::Net(prefix(text)?),
            Kind::Port => {
                Value::Port(ports(text).filter(|_| word != "portrange" || text.contains('-'))?)
            }
            Kind::Protocol => Value::Protocol(protocol_number(text)?),
        })
    }
}

impl Value {
    fn term(&self, end: Way) -> Term {
        match self {
            Value::Host(host) => Term::Host(end, *host),
            Value::Net(net) => Term::Net(end, *net),
            Value::Port(ports) => Term::Port(end, ports.clone()),
            Value::Protocol(number) => Term::Protocol(*number),
        }
    }
}

/// Whether the word stands before a value.
pub(super) fn qualifies(word: &str) -> bool {
    matches!(word, "src" | "dst") || kind(word).is_some()
}

pub(super) fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "host" => Kind::Host,
        "net" => Kind::Net,
        "port" | "portrange" => Kind::Port,
        "proto" => Kind::Protocol,
        _ => return None,
    })
}

pub(super) fn protocol(word: &str) -> Option<Term> {
    Some(match word {
        "ip" => Term::Network(Network::Ipv4),
        "ip6" => Term::Network(Network::Ipv6),
        "arp" => Term::Network(Network::Arp),
        "tcp" => Term::Protocol(TCP),
        "udp" => Term::Protocol(UDP),
        "sctp" => Term::Protocol(SCTP),
        "icmp" => Term::Icmp(Network::Ipv4),
        "icmp6" => Term::Icmp(Network::Ipv6),
        _ => return None,
    })
}

/// A protocol above IP by its number or its name, before which a shell's user writes a backslash.
fn protocol_number(text: &str) -> Option<u8> {
    /// Protocol Numbers, IANA.
    const NAMES: [(&str, u8); 12] = [
        ("icmp", 1),
        ("igmp", 2),
        ("tcp", TCP),
        ("udp", UDP),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("icmp6", 58),
        ("ospf", 89),
        ("pim", 103),
        ("vrrp", 112),
        ("sctp", SCTP),
    ];
    let name = text.strip_prefix('\\').unwrap_or(text);
    let named = NAMES.iter().find(|(known, _)| *known == name);
    named.map(|(_, number)| *number).or_else(|| text.parse().ok())
}

/// A prefix, of IPv4 also without its last bytes: `10`, `10.1`, `10.1/20`.
pub(super) fn prefix(text: &str) -> Option<Prefix> {
    text.parse().ok().or_else(|| {
        let (bytes, length) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let bytes: Vec<u8> =
            bytes.split('.').map(|byte| byte.parse().ok()).collect::<Option<_>>()?;
        let mut whole = [0; 4];
        whole.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        let given = bytes.len() * 8;
        let length = length.map_or(Some(given), |length| length.parse().ok())?;
        format!("{}/{length}", Ipv4Addr::from(whole)).parse().ok()
    })
}

/// `net` with the mask in `text`, if that is one and leaves no bit of the address.
pub(super) fn with_mask(net: Prefix, text: &str) -> Option<Prefix> {
    let mask = text.parse::<Ipv4Addr>().ok()?.to_bits();
    let length = mask.leading_ones();
    let is_mask = mask.count_ones() == length && net.address().is_ipv4();
    is_mask.then(|| format!("{}/{length}", net.address()).parse().ok())?
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    match text.split_once('-') {
        None => text.parse().ok().map(|port| port..=port),
        Some((first, last)) => {
            let ports = first.parse().ok()?..=last.parse().ok()?;
            (!ports.is_empty()).then_some(ports)
        }
    }
}
