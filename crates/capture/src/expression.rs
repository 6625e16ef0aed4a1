//! Which packets are meant: the usual part of pcap-filter(7), which tcpdump reads, and words for fragments and VLAN tags that
//! need no order.
//!
//! ```text
//! tcp port 443 and (host 10.0.0.1 or 10.0.0.2)
//! (udp or icmp) and not src net 192.0.2.0/24
//! vlan 7 and dst portrange 1024-2047
//! ```

mod fields;
mod parse;
mod primitive;
mod qualifiers;
#[cfg(test)]
mod tests;
mod token;

pub use fields::Fields;
pub use parse::{ExpressionError, Mistake};

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rheostat_packet::{Mbuf, Network};
use rheostat_steer::Prefix;

/// What a packet must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// One property.
    Term(Term),
    /// Not this.
    Not(Box<Expression>),
    /// All of these.
    And(Vec<Expression>),
    /// One of these at least.
    Or(Vec<Expression>),
}

/// One property of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// The network layer: `ip`, `ip6`, `arp`.
    Network(Network),
    /// The protocol above IP: `tcp`, `udp`, `sctp`, `proto 47`.
    Protocol(u8),
    /// `icmp` for IPv4, `icmp6` for IPv6.
    Icmp(Network),
    /// A fragment, the first included: `fragment`.
    Fragment,
    /// A VLAN tag, the outer or the inner: `vlan`, `vlan 7`.
    Vlan(Option<u16>),
    /// An address: `host 10.0.0.1`, `src host 2001:db8::1`.
    Host(Way, IpAddr),
    /// A range of addresses: `net 10.0.0.0/8`.
    Net(Way, Prefix),
    /// A port, or a range of them: `port 53`, `dst port 1024-2047`.
    Port(Way, RangeInclusive<u16>),
    /// Bytes of the whole frame, at most: `less 128`.
    AtMost(u32),
    /// Bytes of the whole frame, at least: `greater 128`.
    AtLeast(u32),
}

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Either.
    Either,
    /// The source.
    Source,
    /// The destination.
    Destination,
}

impl Expression {
    /// Whether the packet is meant.
    pub fn matches(&self, packet: &Mbuf) -> bool {
        self.holds(&Fields::of(packet))
    }

    /// Whether a packet with these fields is meant.
    pub fn holds(&self, fields: &Fields) -> bool {
        match self {
            Expression::Term(term) => term.holds(fields),
            Expression::Not(inner) => !inner.holds(fields),
            Expression::And(all) => all.iter().all(|one| one.holds(fields)),
            Expression::Or(any) => any.iter().any(|one| one.holds(fields)),
        }
    }
}

impl Term {
    fn holds(&self, fields: &Fields) -> bool {
        const ICMPV4: u8 = 1;
        const ICMPV6: u8 = 58;
        match self {
            Term::Network(network) => fields.network == *network,
            Term::Protocol(protocol) => fields.protocol == Some(*protocol),
            Term::Icmp(Network::Ipv6) => fields.protocol == Some(ICMPV6),
            Term::Icmp(_) => fields.protocol == Some(ICMPV4),
            Term::Fragment => fields.is_fragment,
            Term::Vlan(None) => fields.tags > 0,
            Term::Vlan(Some(id)) => match fields.tags {
                0 => false,
                1 => fields.zone == u32::from(*id),
                _ => [fields.zone >> 12, fields.zone & 0xfff].contains(&u32::from(*id)),
            },
            Term::Host(way, host) => way.any(fields.addresses, |address| address == *host),
            Term::Net(way, net) => way.any(fields.addresses, |address| net.contains(address)),
            Term::Port(way, ports) => way.any(fields.ports, |port| ports.contains(&port)),
            Term::AtMost(bytes) => fields.length <= *bytes,
            Term::AtLeast(bytes) => fields.length >= *bytes,
        }
    }
}

impl Way {
    /// Whether the end meant, if there are ends, has a property.
    fn any<T: Copy>(self, ends: Option<(T, T)>, has: impl Fn(T) -> bool) -> bool {
        let Some((source, destination)) = ends else { return false };
        match self {
            Way::Either => has(source) || has(destination),
            Way::Source => has(source),
            Way::Destination => has(destination),
        }
    }
}

impl FromStr for Expression {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Expression, ExpressionError> {
        parse::parse(text)
    }
}

/// In the language, with as many parentheses as it needs.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut join = |all: &[Expression], word: &str| {
            for (number, one) in all.iter().enumerate() {
                if number > 0 {
                    write!(f, " {word} ")?;
                }
                match one {
                    Expression::And(_) | Expression::Or(_) => write!(f, "({one})")?,
                    _ => write!(f, "{one}")?,
                }
            }
            Ok(())
        };
        match self {
            Expression::And(all) => join(all, "and"),
            Expression::Or(any) => join(any, "or"),
            Expression::Term(term) => term.fmt(f),
            Expression::Not(inner) => match **inner {
                Expression::And(_) | Expression::Or(_) => write!(f, "not ({inner})"),
                _ => write!(f, "not {inner}"),
            },
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Network(Network::Ipv4) => f.write_str("ip"),
            Term::Network(Network::Ipv6) => f.write_str("ip6"),
            Term::Network(Network::Arp) => f.write_str("arp"),
            // The language has no word for it; it is what none of the three is.
            Term::Network(Network::Other) => f.write_str("not (ip or ip6 or arp)"),
            Term::Icmp(Network::Ipv6) => f.write_str("icmp6"),
            Term::Icmp(_) => f.write_str("icmp"),
            Term::Protocol(6) => f.write_str("tcp"),
            Term::Protocol(17) => f.write_str("udp"),
            Term::Protocol(132) => f.write_str("sctp"),
            Term::Protocol(number) => write!(f, "proto {number}"),
            Term::Fragment => f.write_str("fragment"),
            Term::Vlan(None) => f.write_str("vlan"),
            Term::Vlan(Some(id)) => write!(f, "vlan {id}"),
            Term::Host(way, address) => write!(f, "{way}host {address}"),
            Term::Net(way, prefix) => write!(f, "{way}net {prefix}"),
            Term::Port(way, ports) if ports.start() == ports.end() => {
                write!(f, "{way}port {}", ports.start())
            }
            Term::Port(way, ports) => write!(f, "{way}port {}-{}", ports.start(), ports.end()),
            Term::AtMost(bytes) => write!(f, "less {bytes}"),
            Term::AtLeast(bytes) => write!(f, "greater {bytes}"),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Either => "",
            Way::Source => "src ",
            Way::Destination => "dst ",
        })
    }
}
