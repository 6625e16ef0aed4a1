//! The ICMP errors of routers and hosts (RFC 792, RFC 1812, RFC 4443).

use std::net::IpAddr;

use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::wire::{icmpv4, icmpv6, ipv6};
use rheostat_packet::{FlowKey, Headers, LinkType, Network, tuple};

use crate::reset::is_host;

/// Bytes of an ICMPv4 error with its IP header (RFC 1812, section 4.3.2.3), and of an ICMPv6 error
/// (RFC 4443, section 2.4 (c)), at most.
const MOST: [usize; 2] = [576, 1_280];
/// The type of service of an ICMPv4 error: internetwork control (RFC 1812, section 4.3.2.5).
const CONTROL: u8 = 0xc0;
/// Where the next header is named in the header of IPv6.
const NEXT_HEADER: u32 = 6;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing leads to the destination.
    NoRoute,
    /// The last router before the destination does not find it on the link.
    NoHost,
    /// The destination does not speak the protocol.
    NoProtocol,
    /// The port has no listener.
    NoPort,
    /// The source address means nothing beyond its link (IPv6).
    Scope,
    /// The packet is longer than the next link carries: so many bytes.
    TooBig(u16),
    /// The packet has passed as many routers as it may.
    TimeExceeded,
    /// Fragments of the packet are missing, and have been waited for.
    FragmentsMissing,
}

/// Whether there may be an error about a packet, and between which addresses the packet went. There is
/// none about an ICMP error, about a fragment that is not the first, and about what was sent by or to many
/// (RFC 1122, section 3.2.2; RFC 4443, section 2.4 (e)).
pub(crate) fn answerable(data: &[u8], headers: &Headers) -> Option<FlowKey> {
    if headers.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return None;
    }
    let key = tuple::addresses(data, headers)?;
    if !is_host(key.first()) || !is_host(key.second()) {
        return None;
    }
    let message = data.get(usize::from(headers.l4)..).unwrap_or_default();
    let is_error = match (headers.network, headers.protocol) {
        (Network::Ipv4, 1) => message.first().is_none_or(|kind| icmpv4::is_error(*kind)),
        (Network::Ipv6, 58) => message.first().is_none_or(|kind| icmpv6::is_error(*kind)),
        _ => false,
    };
    (!is_error).then_some(key)
}

/// As much of a packet as an error may quote whose header, IP's and its own, is so long.
pub(crate) fn quotable(packet: &[u8], v4: bool) -> &[u8] {
    let room = if v4 { MOST[0] - 28 } else { MOST[1] - 48 };
    &packet[..packet.len().min(room)]
}

/// The error, from `from`, about the packet that starts with `packet`, at its IP header, and has
/// `wire_len` bytes; `None` when there must be none.
pub fn icmp_error(
    problem: Problem,
    from: IpAddr,
    packet: &[u8],
    wire_len: usize,
) -> Option<Vec<u8>> {
    let headers = Headers::parse_bytes(packet, wire_len, LinkType::Raw).ok()?;
    let key = answerable(packet, &headers)?;
    if from.is_ipv4() != key.first().is_ipv4() {
        return None;
    }
    let v4 = from.is_ipv4();
    let (kind, code, rest) = match (problem, v4) {
        (Problem::NoRoute, true) => (icmpv4::UNREACHABLE, 0, 0),
        (Problem::NoHost, true) => (icmpv4::UNREACHABLE, 1, 0),
        (Problem::NoProtocol, true) => (icmpv4::UNREACHABLE, 2, 0),
        (Problem::NoPort, true) => (icmpv4::UNREACHABLE, 3, 0),
        // RFC 1191, section 4: the MTU is in the low half of the word.
        (Problem::TooBig(mtu), true) => (icmpv4::UNREACHABLE, 4, u32::from(mtu)),
        (Problem::TimeExceeded, true) => (icmpv4::TIME_EXCEEDED, 0, 0),
        (Problem::FragmentsMissing, true) => (icmpv4::TIME_EXCEEDED, 1, 0),
        (Problem::Scope, true) => return None,
        (Problem::NoRoute, false) => (icmpv6::UNREACHABLE, 0, 0),
        (Problem::Scope, false) => (icmpv6::UNREACHABLE, 2, 0),
        (Problem::NoHost, false) => (icmpv6::UNREACHABLE, 3, 0),
        (Problem::NoPort, false) => (icmpv6::UNREACHABLE, 4, 0),
        (Problem::TooBig(mtu), false) => (icmpv6::PACKET_TOO_BIG, 0, u32::from(mtu)),
        (Problem::TimeExceeded, false) => (icmpv6::TIME_EXCEEDED, 0, 0),
        (Problem::FragmentsMissing, false) => (icmpv6::TIME_EXCEEDED, 1, 0),
        // RFC 4443, section 3.4: it points to the header that names the protocol. Behind extension
        // headers, nothing is said.
        (Problem::NoProtocol, false) if usize::from(headers.l4) == ipv6::HEADER => {
            (icmpv6::PARAMETER_PROBLEM, 1, NEXT_HEADER)
        }
        (Problem::NoProtocol, false) => return None,
    };
    let end = (headers.end as usize).min(packet.len());
    let transport = Transport::Icmp { kind, code, rest };
    let quoted = Payload::Bytes(quotable(&packet[..end], v4));
    let error = FrameBuilder::new(from, key.first(), transport, quoted);
    Some(FrameBuilder { tos: if v4 { CONTROL } else { 0 }, ..error }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_packet::Tuple;

    fn udp(v6: bool, payload: usize) -> Vec<u8> {
        let (source, destination) =
            if v6 { ("fd00::5", "2001:db8::1") } else { ("10.0.0.5", "198.51.100.1") };
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let udp = Transport::Udp { ports: (40, 50) };
        FrameBuilder::new(source, destination, udp, Payload::Pattern(payload)).to_vec()
    }

    #[test]
    fn every_problem_has_its_type_and_code() {
        let told = |problem, v6: bool| {
            let from: IpAddr = if v6 { "fd00::1" } else { "10.0.0.1" }.parse().unwrap();
            let packet = udp(v6, 20);
            let error = icmp_error(problem, from, &packet, packet.len())?;
            let headers = Headers::parse_bytes(&error, error.len(), LinkType::Raw).unwrap();
            let Tuple::IcmpError(key) = Tuple::of_bytes(&error, &headers) else {
                panic!("an error")
            };
            // The key is that of the packet, seen from its receiver.
            assert_eq!((key.second_port(), key.first_port()), (40, 50));
            let message = &error[usize::from(headers.l4)..];
            let rest = u32::from_be_bytes(message[4..8].try_into().unwrap());
            assert_eq!(&message[8..], packet);
            Some((message[0], message[1], rest))
        };
        for (problem, v4, v6) in [
            (Problem::NoRoute, Some((3, 0, 0)), Some((1, 0, 0))),
            (Problem::NoHost, Some((3, 1, 0)), Some((1, 3, 0))),
            (Problem::NoProtocol, Some((3, 2, 0)), Some((4, 1, 6))),
            (Problem::NoPort, Some((3, 3, 0)), Some((1, 4, 0))),
            (Problem::Scope, None, Some((1, 2, 0))),
            (Problem::TooBig(1_400), Some((3, 4, 1_400)), Some((2, 0, 1_400))),
            (Problem::TimeExceeded, Some((11, 0, 0)), Some((3, 0, 0))),
            (Problem::FragmentsMissing, Some((11, 1, 0)), Some((3, 1, 0))),
        ] {
            assert_eq!((told(problem, false), told(problem, true)), (v4, v6), "{problem:?}");
        }
    }

    #[test]
    fn long_packets_are_quoted_in_part() {
        for (v6, from, len) in [(false, "10.0.0.1", 576), (true, "fd00::1", 1_280)] {
            let packet = udp(v6, 1_400);
            let from = from.parse().unwrap();
            let error = icmp_error(Problem::TimeExceeded, from, &packet, packet.len()).unwrap();
            assert_eq!(error.len(), len);
        }
    }

    #[test]
    fn no_error_about_an_error_nor_from_the_other_family() {
        let packet = udp(false, 20);
        let from = "10.0.0.1".parse().unwrap();
        let error = icmp_error(Problem::NoRoute, from, &packet, packet.len()).unwrap();
        assert_eq!(icmp_error(Problem::NoRoute, from, &error, error.len()), None);
        let other = "fd00::1".parse().unwrap();
        assert_eq!(icmp_error(Problem::NoRoute, other, &packet, packet.len()), None);
    }
}
