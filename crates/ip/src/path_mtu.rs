//! What paths to destinations carry (RFC 1191; RFC 8201), as far as routers have reported it.
//!
//! A report may be forged. [`TooBig::parse`] says what it quotes; whether that was sent is for the transport to tell, which
//! notes a report here once it believes it (RFC 5927, section 7: a segment of TCP in flight).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6};
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, icmpv4, icmpv6};
use rheostat_packet::{Headers, LinkType, Network, checksum, tuple};

/// No report lowers the MTU of a path of IPv4 below this. RFC 791 would allow 68, which only an attacker wants.
pub const MIN_V4: u16 = 552;
/// Every path of IPv6 carries this (RFC 8200, section 5).
pub const MIN_V6: u16 = 1_280;

/// MTUs that there are, for routers that do not say theirs (RFC 1191, section 7.1).
const PLATEAUS: [u16; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];

/// The ICMP error that a packet was too big for the next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Where the packet came from, with the port if the protocol has ports.
    pub source: (IpAddr, u16),
    /// Where it went.
    pub destination: (IpAddr, u16),
    /// Its protocol.
    pub protocol: u8,
    /// The four bytes behind the ports: the sequence number of TCP.
    pub sequence: u32,
    /// The MTU of the next link; 0 if the router does not say.
    pub mtu: u16,
    /// How long the packet was.
    pub length: u16,
}

impl TooBig {
    /// The report in a packet, from its IP header on, if it is one whose checksum is right and that quotes the ports.
    pub fn parse(packet: &[u8]) -> Option<TooBig> {
        let headers = Headers::parse_bytes(packet, packet.len(), LinkType::Raw).ok()?;
        let message = packet.get(usize::from(headers.l4)..headers.end as usize)?;
        let hosts = tuple::addresses(packet, &headers)?;
        match (headers.network, headers.protocol, message) {
            (Network::Ipv4, ICMPV4, [3, 4, _, _, _, _, high, low, ..]) => {
                let is_right = checksum::of(message) == 0;
                let quoted = icmpv4::embedded(message).filter(|_| is_right)?;
                let ip = Ipv4Packet::new(quoted).ok()?;
                let length = u16::from_be_bytes([*quoted.get(2)?, *quoted.get(3)?]);
                let at = usize::from(quoted.first()? & 15) * 4;
                let whole = ip.fragment_offset() == 0;
                let ends = (ip.source().into(), ip.destination().into());
                let mtu = u16::from_be_bytes([*high, *low]);
                TooBig::quoting(ends, ip.protocol(), quoted.get(at..)?, mtu, length)
                    .filter(|_| whole)
            }
            (Network::Ipv6, ICMPV6, [2, 0, sum_high, sum_low, mtu @ ..]) => {
                let sum = u16::from_be_bytes([*sum_high, *sum_low]);
                let validity =
                    checksum::evaluate(hosts.first(), hosts.second(), ICMPV6, sum, [message]);
                let quoted =
                    icmpv6::embedded(message).filter(|_| validity == checksum::Validity::Valid)?;
                let ip = Ipv6Packet::new(quoted).ok()?;
                let mtu = u32::from_be_bytes(*mtu.first_chunk()?).min(u16::MAX.into()) as u16;
                let length = u16::from_be_bytes([*quoted.get(4)?, *quoted.get(5)?]);
                let ends = (ip.source().into(), ip.destination().into());
                // Behind extension headers nothing is looked for.
                let (protocol, transport) = (*quoted.get(6)?, quoted.get(40..)?);
                TooBig::quoting(ends, protocol, transport, mtu, length.saturating_add(40))
            }
            _ => None,
        }
    }

    fn quoting(
        (source, destination): (IpAddr, IpAddr),
        protocol: u8,
        transport: &[u8],
        mtu: u16,
        length: u16,
    ) -> Option<TooBig> {
        let [a, b, c, d, e, f, g, h] = *transport.first_chunk()?;
        Some(TooBig {
            source: (source, u16::from_be_bytes([a, b])),
            destination: (destination, u16::from_be_bytes([c, d])),
            protocol,
            sequence: u32::from_be_bytes([e, f, g, h]),
            mtu,
            length,
        })
    }

    /// What the path carries according to the report, but for what no path may be said to carry less than: what the router says,
    /// or the next size that is usual below the packet's. `None` if a packet of that length would have passed, too.
    pub fn path_mtu(&self) -> Option<u16> {
        let (least, said) = match self.destination.0 {
            IpAddr::V4(_) if self.mtu == 0 => {
                let next = PLATEAUS.into_iter().find(|plateau| *plateau < self.length);
                (MIN_V4, next.unwrap_or(MIN_V4))
            }
            IpAddr::V4(_) => (MIN_V4, self.mtu),
            IpAddr::V6(_) => (MIN_V6, self.mtu),
        };
        Some(said.max(least)).filter(|mtu| *mtu < self.length)
    }
}

/// How many destinations a store knows, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtuConfig {
    /// Destinations. With one more, the oldest report is forgotten.
    pub destinations: usize,
    /// How long a report counts. Then a larger size is tried again (RFC 1191, section 6.3: 10 minutes; RFC 8201, section 4: no
    /// less than 5).
    pub lifetime: Duration,
}

impl Default for PathMtuConfig {
    fn default() -> PathMtuConfig {
        PathMtuConfig { destinations: 4_096, lifetime: Duration::from_secs(600) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    mtu: u16,
    expires: Time,
}

/// MTUs of paths by destination. A look is a look-up in a hash table; a report costs constant time on average.
#[derive(Debug, Default)]
pub struct PathMtus {
    config: PathMtuConfig,
    known: HashMap<IpAddr, Known>,
    /// Reports in order, those replaced since included.
    order: VecDeque<(Time, IpAddr)>,
}

impl PathMtus {
    /// An empty store.
    pub fn new(config: PathMtuConfig) -> PathMtus {
        PathMtus { config, ..PathMtus::default() }
    }

    /// Destinations of which something is known, or was until a short while ago.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// When [`PathMtus::expire`] has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        self.order.front().map(|(expires, _)| *expires)
    }

    /// Forgets reports that no longer count. Returns whether there were any.
    pub fn expire(&mut self, now: Time) -> bool {
        let before = self.known.len();
        self.forget_before(now);
        self.known.len() < before
    }

    /// What the path to a destination carries, if that is known to be less than its first link.
    pub fn get(&self, destination: IpAddr, now: Time) -> Option<u16> {
        self.known.get(&destination).filter(|known| known.expires > now).map(|known| known.mtu)
    }

    /// Notes a report that is believed. Returns what the path carries now, unless it was known to carry no more.
    pub fn note(&mut self, report: &TooBig, now: Time) -> Option<u16> {
        let destination = report.destination.0;
        let mtu = report.path_mtu()?;
        if self.get(destination, now).is_some_and(|known| known <= mtu) {
            return None;
        }
        self.forget_before(now);
        let expires = now + self.config.lifetime;
        let before = self.known.insert(destination, Known { mtu, expires });
        if before.is_none_or(|before| before.expires != expires) {
            self.order.push_back((expires, destination));
        }
        while self.known.len() > self.config.destinations {
            self.forget_oldest();
        }
        Some(mtu)
    }

    fn forget_before(&mut self, now: Time) {
        while self.order.front().is_some_and(|(expires, _)| *expires <= now) {
            self.forget_oldest();
        }
        // A destination may be reported again and again, each time with less: at most as often as there are sizes.
        if self.order.len() > 2 * self.config.destinations {
            let known = &self.known;
            let is_latest = |(expires, destination): &(Time, IpAddr)| {
                known.get(destination).is_some_and(|known| known.expires == *expires)
            };
            self.order.retain(is_latest);
        }
    }

    fn forget_oldest(&mut self) {
        let Some((expires, destination)) = self.order.pop_front() else { return };
        if self.known.get(&destination).is_some_and(|known| known.expires == expires) {
            self.known.remove(&destination);
        }
    }
}

#[cfg(test)]
mod tests;
