//! Short connections through one external address, in virtual time: far more of them than the address has
//! ports, to one server. Nothing is refused, and no SYN meets a connection at the server that the SYN does
//! not prove to be over.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use rheostat::{Chain2, DropReason, Harness, Stage, StateLayout, Time};
use rheostat_functions::firewall::FirewallConfig;
use rheostat_functions::nat::{Mapping, NatConfig};
use rheostat_functions::{Firewall, Nat};
use rheostat_io::Collector;
use rheostat_nf::Chain;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::tcp::TcpSegment;
use rheostat_packet::wire::tcp_option::TcpOption;
use rheostat_packet::{Headers, LinkType, Tuple};
use rheostat_traffic::{Arrival, Source};

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(198, 51, 100, 1), 80);
const HOSTS: u32 = 5;
/// Connections that run side by side.
const AT_ONCE: u32 = 100;
/// How long the server remembers a connection (Linux: 60 s).
const TIME_WAIT: u64 = 60_000;

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A segment between an endpoint and the server, with or without a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    flags: u8,
    seq: u32,
    ack: u32,
    stamp: Option<u32>,
}

impl Segment {
    fn write(&self) -> Vec<u8> {
        let mut options = [0; 12];
        options[..4].copy_from_slice(&[1, 1, 8, 10]);
        options[4..8].copy_from_slice(&self.stamp.unwrap_or(0).to_be_bytes());
        let tcp = Transport::Tcp(TcpHeader {
            ports: (self.from.1, self.to.1),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: 65_535,
            urgent: 0,
            options: if self.stamp.is_some() { &options } else { &[] },
        });
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        FrameBuilder::new(self.from.0.into(), self.to.0.into(), tcp, Payload::Pattern(0))
            .with_ethernet(link)
            .to_vec()
    }

    /// `None` for what is no segment: a refusal.
    fn read(bytes: &[u8]) -> Option<Segment> {
        let headers = Headers::parse_bytes(bytes, bytes.len(), LinkType::Ethernet).expect("IP");
        let Tuple::Flow(key) = Tuple::of_bytes(bytes, &headers) else { return None };
        let end = |address, port| match address {
            IpAddr::V4(address) => (address, port),
            IpAddr::V6(_) => unreachable!("all packets here are of IPv4"),
        };
        let tcp = TcpSegment::new(&bytes[usize::from(headers.l4)..]).expect("TCP");
        Some(Segment {
            from: end(key.first(), key.first_port()),
            to: end(key.second(), key.second_port()),
            flags: tcp.flags().0,
            seq: tcp.seq(),
            ack: tcp.ack(),
            stamp: tcp.options().find_map(|option| match option {
                TcpOption::Timestamps(stamp, _) => Some(stamp),
                _ => None,
            }),
        })
    }
}

/// What the server remembers of a connection that it has closed.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    until: u64,
    end: u32,
    stamp: Option<u32>,
}

/// The hosts and the server. They talk in rounds: all that has left is answered at once, in an order that
/// does not depend on lanes.
struct World {
    collector: Collector,
    /// Connections that are still to begin.
    left: u32,
    number: u32,
    /// Of the packets of this round: those still to be sent, and how many have come out.
    out: Vec<Segment>,
    seen: Vec<Segment>,
    sent: usize,
    waited: u32,
    millis: u64,
    waiting: HashMap<(Ipv4Addr, u16), Waiting>,
    results: Results,
}

#[derive(Clone, Debug, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Numbers>>);

type Results = Shared;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers {
    /// Connections that both ends have closed.
    done: u32,
    /// SYNs for a connection that the server remembers and that nothing proves to be over.
    unproven: u32,
    /// SYNs for a connection that the server remembers.
    reused: u32,
}

/// A number that looks random, and is the same for the same connection.
fn scatter(number: u32) -> u32 {
    let mut bits = number.wrapping_mul(0x9e37_79b9);
    bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
    bits ^ bits >> 13
}

fn later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl World {
    fn new(connections: u32, collector: Collector, results: Results) -> World {
        World {
            collector,
            left: connections,
            number: 0,
            out: Vec::new(),
            seen: Vec::new(),
            sent: 0,
            waited: 0,
            millis: 0,
            waiting: HashMap::new(),
            results,
        }
    }

    /// Host `number % HOSTS` begins a connection from the next of its 28,232 ephemeral ports.
    fn begin(&mut self) {
        let (host, nth) = (self.number % HOSTS, self.number / HOSTS);
        let from = (Ipv4Addr::new(10, 0, 0, 1 + host as u8), 32_768 + (nth % 28_232) as u16);
        let seq = scatter(self.number);
        // Every other host sends time stamps, each with a clock of its own.
        let stamp = (host % 2 == 0).then(|| self.millis as u32 + scatter(host) / 2);
        self.out.push(Segment { from, to: SERVER, flags: SYN, seq, ack: 0, stamp });
        self.number += 1;
        self.left -= 1;
    }

    /// What the other end makes of a segment that came out.
    fn answer(&mut self, got: Segment) {
        let reply = |flags, seq, ack| Segment {
            from: got.to,
            to: got.from,
            flags,
            seq,
            ack,
            stamp: got.stamp,
        };
        let mut numbers = self.results.0.lock().expect("no thread panicked with it");
        let to_server = got.to == SERVER;
        match (to_server, got.flags) {
            (true, SYN) => {
                if let Some(old) = self.waiting.get(&got.from).filter(|w| w.until > self.millis) {
                    numbers.reused += 1;
                    let proven = match (old.stamp, got.stamp) {
                        (Some(old_stamp), Some(stamp)) => {
                            later(stamp, old_stamp) || stamp == old_stamp && later(got.seq, old.end)
                        }
                        _ => later(got.seq, old.end),
                    };
                    numbers.unproven += u32::from(!proven);
                }
                self.out.push(reply(SYN | ACK, 7_000, got.seq.wrapping_add(1)));
            }
            (false, flags) if flags == SYN | ACK => {
                self.out.push(reply(ACK, got.ack, got.seq.wrapping_add(1)));
            }
            // The server closes first, as one of HTTP/1.0 does.
            (true, ACK) => self.out.push(reply(FIN | ACK, got.ack, got.seq)),
            (false, flags) if flags == FIN | ACK => {
                self.out.push(reply(FIN | ACK, got.ack, got.seq.wrapping_add(1)));
            }
            (true, flags) if flags == FIN | ACK => {
                let until = self.millis + TIME_WAIT;
                let end = got.seq.wrapping_add(1);
                self.waiting.insert(got.from, Waiting { until, end, stamp: got.stamp });
                self.out.push(reply(ACK, got.ack, end));
            }
            (false, _) => numbers.done += 1,
            (true, flags) => panic!("flags {flags:#x}"),
        }
    }
}

impl Source for World {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.out.is_empty() {
            let before = self.seen.len();
            let collected = self.collector.drain().into_iter();
            self.seen.extend(collected.filter_map(|packet| Segment::read(&packet.bytes)));
            // What has not come by the second look at the same was dropped.
            self.waited = if self.seen.len() > before { 0 } else { self.waited + 1 };
            if self.seen.len() < self.sent && self.waited < 2 {
                return None;
            }
            let mut seen = std::mem::take(&mut self.seen);
            seen.retain(|segment| segment.from.0 != EXTERNAL || segment.to == SERVER);
            seen.sort_unstable();
            (self.sent, self.waited) = (0, 0);
            self.millis += 15;
            let finished = seen.is_empty();
            seen.into_iter().for_each(|segment| self.answer(segment));
            if finished || self.out.is_empty() {
                let count = self.left.min(AT_ONCE);
                (0..count).for_each(|_| self.begin());
            }
            self.out.reverse();
        }
        let segment = self.out.pop()?;
        self.sent += 1;
        *frame = segment.write();
        let (time, len) = (Time::from_nanos(self.millis * 1_000_000), frame.len());
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }

    fn is_fed(&self) -> bool {
        true
    }
}

fn run<C: Chain>(
    lanes: usize,
    (chain, layout): (C, StateLayout),
    connections: u32,
) -> (Numbers, u64) {
    let (collector, results) = (Collector::new(), Shared::default());
    let world = World::new(connections, collector.clone(), results.clone());
    let harness = Harness { lanes, flows: 1 << 20, ..Harness::new(chain, layout) };
    let report = harness.run_into(collector, world, |_, _| {}).expect("a trial");
    assert_eq!(report.violations, []);
    let numbers = results.0.lock().expect("no thread panicked with it").clone();
    (numbers, report.counters.dropped[DropReason::PortsExhausted as usize])
}

fn nat(mapping: Mapping, last_port: u16) -> Nat {
    let ports = 1_024..=last_port;
    let config = NatConfig { mapping, ports, ..NatConfig::new(vec![EXTERNAL]) };
    Nat::new(config, None).expect("no blocks to divide")
}

fn alone(mapping: Mapping) -> (Stage<Nat>, StateLayout) {
    let mut layout = StateLayout::new();
    (Stage::new(nat(mapping, 17_407), &mut layout).expect("room for one state"), layout)
}

fn behind_firewall(mapping: Mapping) -> (Chain2<Stage<Firewall>, Stage<Nat>>, StateLayout) {
    let mut layout = StateLayout::new();
    let firewall = Firewall::new(FirewallConfig::default());
    let firewall = Stage::new(firewall, &mut layout).expect("room for one state");
    (
        Chain2(
            firewall,
            Stage::new(nat(mapping, u16::MAX), &mut layout).expect("room for another"),
        ),
        layout,
    )
}

/// 200,000 connections in five minutes to one server, where 64,512 ports would serve 54,000 if each
/// rested until the server has forgotten it, and a fifth of that if it was held for four minutes and two.
#[test]
fn short_connections_are_never_refused() {
    let (numbers, refused) = run(1, behind_firewall(Mapping::EndpointIndependent), 200_000);
    println!("{numbers:?}, {refused} refused");
    assert_eq!((numbers.done, refused), (200_000, 0));
    assert_eq!(numbers.unproven, 0, "SYNs that the server takes for old ones");
}

#[test]
fn short_connections_have_the_same_fate_on_any_number_of_lanes() {
    for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
        let one = run(1, alone(mapping), 24_000);
        println!("{mapping:?}: {one:?}");
        assert_eq!((one.0.done, one.1, one.0.unproven), (24_000, 0, 0), "{mapping:?}");
        assert!(one.0.reused > 1_000, "{mapping:?}: no port was taken over");
        assert_eq!(run(8, alone(mapping), 24_000), one, "{mapping:?}");
    }
}
