//! A mix with fragments and ICMP errors about packets of its flows: these make lanes hand packets to each other.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

/// Puts fragments and ICMP errors between the frames of another source.
pub struct Spliced<S> {
    inner: S,
    frames: u64,
    last: Time,
    waiting: VecDeque<Vec<u8>>,
}

const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };

impl<S: Source> Spliced<S> {
    /// Splices into `inner`.
    pub fn new(inner: S) -> Spliced<S> {
        Spliced { inner, frames: 0, last: Time::ZERO, waiting: VecDeque::new() }
    }

    /// An ICMP error from the destination of an IPv4 or IPv6 packet that came from inside.
    fn error_about(frame: &[u8]) -> Option<Vec<u8>> {
        let ip = frame.get(14..)?;
        let (from, to, kind): (IpAddr, IpAddr, u8) = match ip[0] >> 4 {
            4 => {
                let at =
                    |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).expect("4"));
                (at(12).into(), at(16).into(), 3)
            }
            6 => {
                let at =
                    |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).expect("16"));
                (at(8).into(), at(24).into(), 1)
            }
            _ => return None,
        };
        let inside = match from {
            IpAddr::V4(address) => address.octets()[0] == 10,
            IpAddr::V6(address) => address.octets()[0] == 0xfd,
        };
        let quoted = &ip[..ip.len().min(64)];
        let transport = Transport::Icmp { kind, code: 1, rest: 0 };
        inside.then(|| {
            FrameBuilder::new(to, from, transport, Payload::Bytes(quoted))
                .with_ethernet(LINK)
                .to_vec()
        })
    }

    /// A UDP datagram from inside in three fragments, in an order that `number` decides.
    fn fragments(number: u64) -> Vec<Vec<u8>> {
        let client = Ipv4Addr::new(10, 9, (number >> 8) as u8, number as u8);
        let server = Ipv4Addr::new(192, 0, 2, 53);
        let udp = Transport::Udp { ports: (5_000 + (number % 7) as u16, 53) };
        let whole = FrameBuilder::new(client.into(), server.into(), udp, Payload::Pattern(1_000));
        let datagram = &whole.to_vec()[20..];
        let piece = |(offset, len, more): (usize, usize, bool)| FrameBuilder {
            id: number as u32,
            fragment: Some((offset as u16, more)),
            dont_fragment: false,
            ..FrameBuilder::new(
                client.into(),
                server.into(),
                Transport::Protocol(17),
                Payload::Bytes(&datagram[offset..offset + len]),
            )
        };
        let last = datagram.len() - 800;
        let mut pieces = vec![(0, 400, true), (400, 400, true), (800, last, false)];
        pieces.rotate_left((number % 3) as usize);
        pieces.into_iter().map(|part| piece(part).with_ethernet(LINK).to_vec()).collect()
    }
}

impl<S: Source> Source for Spliced<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if let Some(waiting) = self.waiting.pop_front() {
            frame.clone_from(&waiting);
            let len = frame.len();
            let link = LinkType::Ethernet;
            return Some(Arrival { time: self.last, len, wire_len: len as u32, link });
        }
        let arrival = self.inner.next(frame)?;
        self.last = arrival.time;
        self.frames += 1;
        if self.frames.is_multiple_of(17) {
            self.waiting.extend(Self::error_about(frame));
        }
        if self.frames.is_multiple_of(23) {
            self.waiting.extend(Self::fragments(self.frames));
        }
        Some(arrival)
    }
}
