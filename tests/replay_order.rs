//! Replays of captures whose packets belong to no flow and follow long silence: in whichever order lanes are polled, the outcome
//! is that of one lane.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, MIN_FRAME, Payload, TcpHeader, Transport};
use rheostat_testkit::flows::difference;
use rheostat_testkit::world::{Outcome, Setup, World};
use rheostat_traffic::{Arrival, Source};

const CONNECTIONS: u64 = 600;
/// Segments of a connection: SYN, SYN-ACK, ACK, and data.
const SEGMENTS: u64 = 6;
/// Packets without a flow, of each kind.
const LATE: u64 = 40;
const KINDS: u64 = 4;
/// Longer than a firewall keeps an idle connection.
const SILENCE: Time = Time::from_secs(3 * 3_600);
const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };

/// Connections that open and stay open, of IPv4 and IPv6 in turn, and three hours later packets of no flow: router
/// solicitations first, then ICMP of an unknown type, ARP, and frames of an unknown EtherType.
struct OpenConnections {
    sent: u64,
}

impl OpenConnections {
    fn segment(number: u64) -> Vec<u8> {
        let (step, connection) = (number / CONNECTIONS, number % CONNECTIONS);
        let [high, low] = [(connection >> 8) as u8, connection as u8];
        let (client, server): (IpAddr, IpAddr) = match connection % 2 {
            0 => (Ipv4Addr::new(10, 0, high, low).into(), Ipv4Addr::new(192, 0, 2, 1).into()),
            _ => {
                let client = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, connection as u16);
                (client.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
            }
        };
        let (flags, seq, ack, data) = match step {
            0 => (2, 1_000, 0, 0),
            1 => (0x12, 7_000, 1_001, 0),
            2 => (0x10, 1_001, 7_001, 0),
            data => (0x18, 1_001 + 10 * (data as u32 - 3), 7_001, 10),
        };
        let returns = step == 1;
        let (from, to) = if returns { (server, client) } else { (client, server) };
        let ports = if returns { (80, 40_000) } else { (40_000, 80) };
        let (window, header) = (8_000, TcpHeader::default());
        let tcp = Transport::Tcp(TcpHeader { ports, seq, ack, flags, window, ..header });
        FrameBuilder::new(from, to, tcp, Payload::Pattern(data)).with_ethernet(LINK).to_vec()
    }

    fn without_flow(number: u64) -> Vec<u8> {
        let (kind, host) = (number / LATE, (number % LATE) as u8);
        let icmp = |from, to, kind| {
            let transport = Transport::Icmp { kind, code: 0, rest: 0 };
            FrameBuilder::new(from, to, transport, Payload::Pattern(8)).with_ethernet(LINK).to_vec()
        };
        let ethernet = |ethertype: [u8; 2]| {
            let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, host], &ethertype].concat();
            frame.resize(MIN_FRAME, host);
            frame
        };
        match kind {
            0 => {
                let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host.into());
                let routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
                icmp(from.into(), routers.into(), 133)
            }
            1 => {
                let from = Ipv4Addr::new(10, 7, 0, host);
                icmp(from.into(), Ipv4Addr::new(192, 0, 2, host).into(), 200)
            }
            2 => ethernet([0x08, 0x06]),
            _ => ethernet([0x88, 0xb5]),
        }
    }
}

impl Source for OpenConnections {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (number, segments) = (self.sent, CONNECTIONS * SEGMENTS);
        let millis = Time::from_millis(number);
        let time = match number.checked_sub(segments) {
            None => {
                *frame = OpenConnections::segment(number);
                millis
            }
            Some(late) if late < LATE * KINDS => {
                *frame = OpenConnections::without_flow(late);
                millis + SILENCE.since(Time::ZERO)
            }
            Some(_) => return None,
        };
        self.sent += 1;
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

fn open(lanes: usize) -> World {
    let setup = Setup { pickup: false, half_open: 600, ..Setup::lossless(lanes) };
    World::open(&setup, Box::new(OpenConnections { sent: 0 }))
}

/// Runs a world with deliveries and polls in an order that `seed` decides, as where lanes have threads of their own.
fn run_shuffled(mut world: World, seed: u64) -> Outcome {
    let mut rng = StdRng::seed_from_u64(seed);
    let lanes = world.lanes.len();
    while world.round() {
        for _ in 0..4 * lanes {
            match rng.random_range(0..=lanes) {
                lane if lane < lanes => world.poll(lane),
                _ => world.deliver(),
            };
        }
    }
    world.finish()
}

#[test]
fn packets_of_no_flow_after_silence_end_no_connection_early_in_any_order_of_polls() {
    let one = open(1).run();
    assert_eq!(one.violations, []);
    let established = CONNECTIONS * SEGMENTS;
    assert!(one.sum.sent >= established, "every segment passes: {:?}", one.sum);
    assert_eq!(one.sum.flows_created, CONNECTIONS);
    for lanes in [2, 3, 4, 8] {
        for seed in 0..100 {
            let many = run_shuffled(open(lanes), seed);
            assert_eq!(many.violations, [], "{lanes} lanes, seed {seed}");
            if let Some(difference) = difference(&one, &many, LinkType::Ethernet) {
                panic!("{lanes} lanes, seed {seed}: {difference}");
            }
        }
    }
}
