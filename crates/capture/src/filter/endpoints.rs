//! Ports of TCP at addresses that the kernel has, too.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, icmpv4, icmpv6, ipv6, protocol};
use rheostat_packet::{Headers, tuple};

/// Every combination of an address and a port is an endpoint of TCP that is rheostat's, while all else at the addresses is the
/// kernel's. Taken are segments to an endpoint, and ICMP errors that quote a segment from one; redirects are the kernel's, which
/// has the routes. Fragments show no ports, and are the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// The addresses, at most [`Endpoints::MOST`].
    pub addresses: Vec<IpAddr>,
    /// The ports, in ranges that may overlap.
    pub ports: Vec<RangeInclusive<u16>>,
}

impl Endpoints {
    /// Addresses at most.
    pub const MOST: usize = 16;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() || self.ports.is_empty()
    }

    /// Whether this is one of them.
    pub fn contain(&self, address: IpAddr, port: u16) -> bool {
        self.addresses.contains(&address) && self.ports.iter().any(|range| range.contains(&port))
    }

    /// Whether the packet goes to one of them, or is an ICMP error about what one has sent.
    pub(super) fn concern(&self, frame: &[u8], headers: &Headers) -> bool {
        if self.is_empty() || headers.fragment.is_some() {
            return false;
        }
        let end = match headers.protocol {
            protocol::TCP => destination(frame, headers),
            protocol::ICMPV4 | protocol::ICMPV6 => quoted_source(frame, headers),
            _ => None,
        };
        end.is_some_and(|(address, port)| self.contain(address, port))
    }
}

fn destination(frame: &[u8], headers: &Headers) -> Option<(IpAddr, u16)> {
    let address = tuple::addresses(frame, headers)?.second();
    let transport = frame.get(usize::from(headers.l4)..)?;
    Some((address, port_at(transport, 2)?))
}

/// Where the segment of TCP that an ICMP error quotes came from.
fn quoted_source(frame: &[u8], headers: &Headers) -> Option<(IpAddr, u16)> {
    let end = frame.len().min(headers.end as usize);
    let message = frame.get(usize::from(headers.l4)..end)?;
    let is_v4 = tuple::addresses(frame, headers)?.first().is_ipv4();
    match (is_v4, headers.protocol) {
        (true, protocol::ICMPV4) if message.first() != Some(&icmpv4::REDIRECT) => {
            let quoted = icmpv4::embedded(message)?;
            let ip = Ipv4Packet::new(quoted).ok()?;
            let is_segment = ip.protocol() == protocol::TCP && ip.fragment_offset() == 0;
            let transport = quoted.get(ip.header_len()..).filter(|_| is_segment)?;
            Some((ip.source().into(), port_at(transport, 0)?))
        }
        (false, protocol::ICMPV6) => {
            let quoted = icmpv6::embedded(message)?;
            let ip = Ipv6Packet::new(quoted).ok()?;
            let is_segment = ip.next_header() == protocol::TCP;
            let transport = quoted.get(ipv6::HEADER..).filter(|_| is_segment)?;
            Some((ip.source().into(), port_at(transport, 0)?))
        }
        _ => None,
    }
}

/// A port of a transport header, both of whose ports are there.
fn port_at(transport: &[u8], at: usize) -> Option<u16> {
    let ports: &[u8; 4] = transport.first_chunk()?;
    Some(u16::from_be_bytes([ports[at], ports[at + 1]]))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::net::SocketAddr;

    use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};

    use super::*;
    use crate::filter::{Filter, Match};

    const WEB: &str = "192.0.2.1:80";

    fn filter() -> Filter {
        let addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let endpoints = Endpoints { addresses, ports: vec![80..=80, 2_000..=3_000] };
        Filter { endpoints, ..Filter::default() }
    }

    fn frame(from: IpAddr, to: IpAddr, transport: Transport, payload: &[u8]) -> Vec<u8> {
        let packet = FrameBuilder::new(from, to, transport, Payload::Bytes(payload));
        packet.with_ethernet(Ethernet { destination: [2; 6], source: [4; 6], vlan: None }).to_vec()
    }

    fn segment(from: &str, to: &str) -> Vec<u8> {
        let [from, to] = [from, to].map(|end| end.parse::<SocketAddr>().unwrap());
        let ports = (from.port(), to.port());
        let tcp = TcpHeader { ports, ..TcpHeader::default() };
        frame(from.ip(), to.ip(), Transport::Tcp(tcp), b"data")
    }

    fn error(from: &str, to: &str, (kind, code): (u8, u8), about: &[u8]) -> Vec<u8> {
        let [from, to] = [from, to].map(|end| end.parse().unwrap());
        frame(from, to, Transport::Icmp { kind, code, rest: 0 }, about)
    }

    #[test]
    fn segments_to_an_endpoint_are_taken_and_those_of_the_kernels_connections_are_not() {
        let filter = filter();
        for port in [80, 2_000, 3_000] {
            assert!(filter.takes(&segment("198.51.100.7:5000", &format!("192.0.2.1:{port}"))));
            assert!(filter.takes(&segment("[2001:db8::7]:5000", &format!("[2001:db8::1]:{port}"))));
        }
        for (from, to) in [
            ("198.51.100.7:5000", "192.0.2.1:22"),
            ("198.51.100.7:5000", "192.0.2.2:80"),
            // The kernel is the client of another host's port 80.
            ("198.51.100.7:80", "192.0.2.1:5000"),
            ("192.0.2.1:80", "198.51.100.7:5000"),
        ] {
            assert!(!filter.takes(&segment(from, to)), "{from} {to}");
        }
        let (from, to) = ("198.51.100.7".parse().unwrap(), "192.0.2.1".parse().unwrap());
        assert!(!filter.takes(&frame(from, to, Transport::Udp { ports: (5_000, 80) }, b"")));
    }

    #[test]
    fn errors_about_what_an_endpoint_has_sent_are_taken() {
        let (filter, ours) = (filter(), segment(WEB, "198.51.100.7:5000"));
        let theirs = segment("192.0.2.1:22", "198.51.100.7:5000");
        let too_big = |about: &[u8]| error("203.0.113.1", "192.0.2.1", (3, 4), about);
        assert!(filter.takes(&too_big(&ours[14..])));
        assert!(!filter.takes(&too_big(&theirs[14..])));
        assert!(!filter.takes(&too_big(&ours[14..36])), "the ports are cut off");
        let redirect = error("203.0.113.1", "192.0.2.1", (5, 1), &ours[14..]);
        assert!(!filter.takes(&redirect));
        let v6 = segment("[2001:db8::1]:80", "[2001:db8:1::7]:5000");
        let too_big = error("2001:db8::ff", "2001:db8::1", (2, 0), &v6[14..]);
        assert!(filter.takes(&too_big));
    }

    #[test]
    fn other_lists_count_beside_endpoints() {
        let to_web = segment("198.51.100.7:5000", WEB);
        let client = "198.51.100.0/24".parse().unwrap();
        let leave = vec![Match { address: Some(client), ..Match::default() }];
        assert!(!Filter { leave, ..filter() }.takes(&to_web));
        let take = vec![Match { port: Some(22), ..Match::default() }];
        let both = Filter { take, ..filter() };
        assert!(both.takes(&to_web) && both.takes(&segment("198.51.100.7:5000", "192.0.2.9:22")));
        let addresses = vec![IpAddr::from([192, 0, 2, 1]); 17];
        let endpoints = Endpoints { addresses, ports: vec![80..=80] };
        let error = Filter { endpoints, ..Filter::default() }.check().unwrap_err();
        assert!(error.to_string().starts_with("17 addresses are too many"), "{error}");
    }
}
