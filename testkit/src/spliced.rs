//! A mix with fragments, ICMP errors about packets of its flows, packets of no flow, and hours of silence: the packets make
//! lanes hand packets to each other, and the silence ends flows.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, MIN_FRAME, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

/// Puts fragments, ICMP errors and packets of no flow between the frames of another source, and silence.
pub struct Spliced<S> {
    inner: S,
    frames: u64,
    last: Time,
    /// The silence so far.
    silence: Duration,
    /// Whether packets of no flow come, and silence.
    has_others: bool,
    waiting: VecDeque<Vec<u8>>,
}

/// How long nothing arrives now and then: longer than functions keep idle flows.
const GAP: Duration = Duration::from_secs(3 * 3_600);

const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };

impl<S: Source> Spliced<S> {
    /// Splices into `inner`.
    pub fn new(inner: S) -> Spliced<S> {
        let (silence, waiting) = (Duration::ZERO, VecDeque::new());
        Spliced { inner, frames: 0, last: Time::ZERO, silence, has_others: true, waiting }
    }

    /// Splices fragments and ICMP errors alone into `inner`, which keeps its times.
    pub fn of_flows(inner: S) -> Spliced<S> {
        Spliced { has_others: false, ..Spliced::new(inner) }
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

    /// A packet that belongs to no flow, of a kind and from a host that `number` decides: a router solicitation, ICMP of an
    /// unknown type, ARP, or a frame of an unknown EtherType.
    fn without_flow(number: u64) -> Vec<u8> {
        let host = number as u8;
        let icmp = |from: IpAddr, to: IpAddr, kind| {
            let transport = Transport::Icmp { kind, code: 0, rest: 0 };
            FrameBuilder::new(from, to, transport, Payload::Pattern(8)).with_ethernet(LINK).to_vec()
        };
        let ethernet = |ethertype: [u8; 2]| {
            let mut frame = [&LINK.destination[..], &LINK.source, &ethertype].concat();
            frame.resize(MIN_FRAME, host);
            frame
        };
        match number % 4 {
            0 => {
                let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into());
                icmp(from.into(), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2).into(), 133)
            }
            1 => {
                let from = Ipv4Addr::new(10, 7, 0, host);
                icmp(from.into(), Ipv4Addr::new(192, 0, 2, host).into(), 200)
            }
            2 => ethernet([0x08, 0x06]),
            _ => ethernet([0x88, 0xb5]),
        }
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
        self.frames += 1;
        if self.has_others && self.frames.is_multiple_of(7_001) {
            self.silence += GAP;
        }
        self.last = arrival.time + self.silence;
        if self.frames.is_multiple_of(17) {
            self.waiting.extend(Self::error_about(frame));
        }
        if self.frames.is_multiple_of(23) {
            self.waiting.extend(Self::fragments(self.frames));
        }
        if self.has_others && self.frames.is_multiple_of(97) {
            self.waiting.push_back(Self::without_flow(self.frames / 97));
        }
        Some(Arrival { time: self.last, ..arrival })
    }
}
