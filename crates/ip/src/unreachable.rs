//! The ICMP errors that report to a sender that its packets do not reach their destination.

use std::net::IpAddr;

use rheostat_packet::Headers;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::wire::{icmpv4, icmpv6};

use crate::icmp_error;
use crate::link::{self, Received};

/// Why a packet does not get where it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// It is not let through (ICMPv4 code 13, RFC 1812; ICMPv6 code 1, RFC 4443).
    Prohibited,
    /// It has no listener (ICMPv4 code 3, RFC 792; ICMPv6 code 4, RFC 4443).
    NoPort,
}

/// Writes "destination unreachable" (ICMPv4 type 3; ICMPv6 type 1) in answer to a packet to `out` and
/// returns its length. It comes from the address the packet was for. `None` when there must be no
/// answer: to an ICMP error, to a fragment that is not the first, or to what was sent by or to many
/// (RFC 1122, section 3.2.2; RFC 4443, section 2.4 (e)).
pub fn unreachable(
    packet: Received<'_>,
    headers: &Headers,
    why: Unreachable,
    out: &mut [u8],
) -> Option<usize> {
    let data = packet.data;
    let key = icmp_error::answerable(data, headers)?;
    let codes = match why {
        Unreachable::Prohibited => [13, 1],
        Unreachable::NoPort => [3, 4],
    };
    let (kind, code) = match key.first() {
        IpAddr::V4(_) => (icmpv4::UNREACHABLE, codes[0]),
        IpAddr::V6(_) => (icmpv6::UNREACHABLE, codes[1]),
    };
    let l3 = link::write_reversed(packet, headers, out)?;
    let end = (headers.end as usize).min(data.len());
    let quoted = data.get(usize::from(headers.l3)..end)?;
    let quoted = icmp_error::quotable(quoted, key.first().is_ipv4());
    let transport = Transport::Icmp { kind, code, rest: 0 };
    let answer = FrameBuilder::new(key.second(), key.first(), transport, Payload::Bytes(quoted));
    let body = out.get_mut(l3..).filter(|body| body.len() >= answer.len())?;
    let len = l3 + answer.write(body);
    Some(link::padded(packet, out, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_packet::{LinkType, Tuple};

    fn answer(source: &str, destination: &str, transport: Transport<'_>) -> Option<Vec<u8>> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        let frame = FrameBuilder::new(source, destination, transport, Payload::Pattern(1_400));
        let data = &frame.to_vec();
        let headers = Headers::parse_bytes(data, data.len(), LinkType::Raw).unwrap();
        let mut out = [0; crate::LONGEST_ANSWER];
        let packet = Received { data, link: LinkType::Raw };
        unreachable(packet, &headers, Unreachable::Prohibited, &mut out)
            .map(|len| out[..len].to_vec())
    }

    #[test]
    fn the_answer_quotes_the_packet_and_names_its_flow() {
        for (source, destination, len) in
            [("198.51.100.1", "10.0.0.5", 576), ("2001:db8::1", "fd00::5", 1_280)]
        {
            let frame = answer(source, destination, Transport::Udp { ports: (53, 99) }).unwrap();
            assert_eq!(frame.len(), len);
            let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
            let Tuple::IcmpError(key) = Tuple::of_bytes(&frame, &headers) else {
                panic!("an error")
            };
            assert_eq!((key.first(), key.first_port()), (destination.parse().unwrap(), 99));
            assert_eq!((key.second(), key.second_port()), (source.parse().unwrap(), 53));
        }
    }

    #[test]
    fn errors_and_multicast_are_not_answered() {
        let error = Transport::Icmp { kind: 3, code: 0, rest: 0 };
        assert_eq!(answer("198.51.100.1", "10.0.0.5", error), None);
        let udp = Transport::Udp { ports: (1, 2) };
        assert_eq!(answer("198.51.100.1", "224.0.0.1", udp), None);
        assert_eq!(answer("0.0.0.0", "10.0.0.5", udp), None);
        assert_eq!(answer("2001:db8::1", "ff02::1", udp), None);
    }
}
