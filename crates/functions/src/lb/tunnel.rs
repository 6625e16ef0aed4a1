//! Outer headers: how a packet travels to a backend that answers the client directly.
//!
//! Either one more IP header (RFC 2003 for IPv4; RFC 2473 for IPv6), or UDP as well: Generic UDP
//! Encapsulation (draft-ietf-intarea-gue-09), variant 1, in which the IP packet follows the UDP header at
//! once. Variant 0 would put four bytes between them that say nothing here; Linux takes both on a port
//! made by `ip fou add port 6080 gue`, and variant 1 also on one made with `ipproto 4` or `41`.
//!
//! A backend's interface sees outer headers only. Every flow therefore has a source address of its own, out
//! of the configured prefix, and for UDP a source port, so that flows spread over the backend's queues.

pub(super) mod fragments;
pub(super) mod returned;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_packet::checksum::{self, Sum};
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, ipv4, ipv6, protocol, udp};
use rheostat_packet::{Headers, Mbuf, Network};
use rheostat_steer::Prefix;

use super::config::{Mode, TunnelConfig};

/// The longest outer header: IPv6 and UDP.
pub(super) const LONGEST: usize = ipv6::HEADER + udp::HEADER;

/// The first of the 2^14 ports that tell flows apart (RFC 6335, section 6: dynamic ports).
const FIRST_PORT: u16 = 0xc000;

/// What stands between the outer IP header and the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// Nothing.
    Ip,
    /// UDP to this port.
    Gue(u16),
}

/// What of a packet its outer header depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inner {
    is_v6: bool,
    /// Bytes of the IP packet.
    len: usize,
    /// Type of service or traffic class, with the ECN bits.
    class: u8,
    /// Whether the packet may not be fragmented; never for IPv6.
    dont_fragment: bool,
}

/// Where a packet goes, and what tells its flow from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The backend.
    pub(super) backend: IpAddr,
    /// The flow's hash.
    pub(super) entropy: u32,
    /// The identification of the outer header, where the packet may be fragmented.
    pub(super) id: u16,
}

/// An outer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outer {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Wrapper {
    /// What a service's packets are wrapped in; `None` where they are translated instead.
    pub(super) fn of(mode: Mode, config: &TunnelConfig) -> Option<Wrapper> {
        match mode {
            Mode::DsrIpip => Some(Wrapper::Ip),
            Mode::DsrGue => Some(Wrapper::Gue(config.gue_port)),
            Mode::Nat => None,
        }
    }

    /// Bytes of the outer header.
    pub(super) fn overhead(self, is_v6: bool) -> usize {
        let ip = if is_v6 { ipv6::HEADER } else { ipv4::MIN_HEADER };
        match self {
            Wrapper::Ip => ip,
            Wrapper::Gue(_) => ip + udp::HEADER,
        }
    }
}

impl Inner {
    /// What the header of an IP packet says; `None` without one.
    #[inline]
    pub(super) fn of(data: &[u8], headers: &Headers) -> Option<Inner> {
        let ip = data.get(usize::from(headers.l3)..)?;
        let len = (headers.end as usize).checked_sub(headers.l3.into())?;
        match headers.network {
            Network::Ipv4 => {
                let ip = Ipv4Packet::new(ip).ok()?;
                let (class, dont_fragment) = (ip.tos(), ip.dont_fragment());
                Some(Inner { is_v6: false, len, class, dont_fragment })
            }
            Network::Ipv6 => {
                let class = Ipv6Packet::new(ip).ok()?.traffic_class();
                Some(Inner { is_v6: true, len, class, dont_fragment: true })
            }
            Network::Arp | Network::Other => None,
        }
    }

    /// Bytes of a packet of this family that just reach the backends.
    pub(super) fn longest(&self, wrapper: Wrapper, mtu: u16) -> usize {
        usize::from(mtu).saturating_sub(wrapper.overhead(self.is_v6))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn dont_fragment(&self) -> bool {
        self.dont_fragment
    }
}

impl Outer {
    /// The header of a packet, of which `sum` is the checksum's sum, asked for where it counts. `None`
    /// when no source address of the backend's family is configured.
    #[inline]
    pub(super) fn new(
        config: &TunnelConfig,
        wrapper: Wrapper,
        inner: &Inner,
        path: &Path,
        sum: impl FnOnce() -> Sum,
    ) -> Option<Outer> {
        let mut outer =
            Outer { bytes: [0; LONGEST], len: wrapper.overhead(path.backend.is_ipv6()) };
        let source = source_of(config.source_for(path.backend)?, path.entropy);
        match (source, path.backend) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                outer.write_v4(config, wrapper, inner, path, (from, to));
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                outer.write_v6(config, wrapper, inner, path, (from, to));
            }
            _ => return None,
        }
        if let Wrapper::Gue(port) = wrapper {
            let at = outer.len - udp::HEADER;
            let len = (udp::HEADER + inner.len) as u16;
            let from = FIRST_PORT | (path.entropy >> 16) as u16 & !FIRST_PORT;
            let header = &mut outer.bytes[at..at + udp::HEADER];
            put(header, 0, &from.to_be_bytes());
            put(header, 2, &port.to_be_bytes());
            put(header, 4, &len.to_be_bytes());
            // IPv4 has a checksum of its own over the addresses, and the packet inside one over its data
            // (RFC 768 makes UDP's optional). IPv6 has neither (RFC 8200, section 8.1).
            if inner.is_v6 {
                let mut whole = Sum::default();
                whole.add(header);
                whole.add_pseudo_header(source, path.backend, protocol::UDP, len.into());
                whole.add_sum(sum());
                put(header, 6, &checksum::for_udp(whole.checksum()).to_be_bytes());
            }
        }
        Some(outer)
    }

    /// The bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn write_v4(
        &mut self,
        config: &TunnelConfig,
        wrapper: Wrapper,
        inner: &Inner,
        path: &Path,
        (from, to): (Ipv4Addr, Ipv4Addr),
    ) {
        let total = (self.len + inner.len) as u16;
        // RFC 2003, section 3.1: what may not be fragmented inside may not be fragmented outside. Where
        // it may not, the identification says nothing (RFC 6864, section 4.1).
        let (id, flags) = if inner.dont_fragment { (0, 0x40) } else { (path.id, 0) };
        let next = next_header(wrapper, inner);
        let header = &mut self.bytes[..ipv4::MIN_HEADER];
        // The class with its ECN bits is copied (RFC 6040, section 4.1: normal mode).
        header[..2].copy_from_slice(&[0x45, inner.class]);
        put(header, 2, &total.to_be_bytes());
        put(header, 4, &id.to_be_bytes());
        put(header, 6, &[flags, 0, config.ttl, next]);
        put(header, 12, &from.octets());
        put(header, 16, &to.octets());
        let checksum = checksum::of(header);
        put(header, 10, &checksum.to_be_bytes());
    }

    fn write_v6(
        &mut self,
        config: &TunnelConfig,
        wrapper: Wrapper,
        inner: &Inner,
        path: &Path,
        (from, to): (Ipv6Addr, Ipv6Addr),
    ) {
        let payload = (self.len - ipv6::HEADER + inner.len) as u16;
        // The flow label tells flows apart as the source address does (RFC 6438).
        let label = path.entropy & 0xf_ffff;
        let next = next_header(wrapper, inner);
        let header = &mut self.bytes[..ipv6::HEADER];
        let first = 6 << 28 | u32::from(inner.class) << 20 | label;
        put(header, 0, &first.to_be_bytes());
        put(header, 4, &payload.to_be_bytes());
        put(header, 6, &[next, config.ttl]);
        put(header, 8, &from.octets());
        put(header, 24, &to.octets());
    }
}

fn put(header: &mut [u8], at: usize, bytes: &[u8]) {
    header[at..at + bytes.len()].copy_from_slice(bytes);
}

fn next_header(wrapper: Wrapper, inner: &Inner) -> u8 {
    match (wrapper, inner.is_v6) {
        (Wrapper::Gue(_), _) => protocol::UDP,
        (Wrapper::Ip, false) => IPIP,
        (Wrapper::Ip, true) => IPV6,
    }
}

/// The protocol numbers of IP in IP.
pub(super) const IPIP: u8 = 4;
pub(super) const IPV6: u8 = 41;

/// What tells a flow of this hash from others on its way.
#[inline]
pub(super) fn entropy_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A flow's address out of the prefix: never the first or the last of it, which are not a host's
/// (RFC 1122, section 3.2.1.3; RFC 4291, section 2.6.1), unless there are no others.
fn source_of(prefix: Prefix, entropy: u32) -> IpAddr {
    let bits = if prefix.address().is_ipv4() { 32 } else { 128 } - u32::from(prefix.length());
    let host = match bits {
        0 => 0,
        1 => entropy & 1,
        bits if bits < 32 => 1 + entropy % ((1 << bits) - 2),
        // Not the last one: there are more addresses than hashes.
        _ => entropy.max(1),
    };
    match prefix.address() {
        IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits() | host).into(),
        IpAddr::V6(base) => Ipv6Addr::from_bits(base.to_bits() | u128::from(host)).into(),
    }
}

/// The checksum's sum of a packet from its IP header to its end.
pub(super) fn sum_of(packet: &Mbuf, headers: &Headers) -> Sum {
    let mut sum = Sum::default();
    parts(packet, headers).for_each(|part| sum.add(part));
    sum
}

/// The bytes of a packet from its IP header to its end, segment by segment, without link padding.
pub(super) fn parts<'a>(packet: &'a Mbuf, headers: &Headers) -> impl Iterator<Item = &'a [u8]> {
    let (mut skip, mut left) = (usize::from(headers.l3), headers.end as usize);
    packet.segments().map(move |segment| {
        let segment = &segment[..segment.len().min(left)];
        left -= segment.len();
        let (before, rest) = segment.split_at(segment.len().min(skip));
        skip -= before.len();
        rest
    })
}

#[cfg(test)]
mod tests;
