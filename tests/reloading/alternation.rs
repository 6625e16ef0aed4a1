//! Random sequences of rule sets under random packets, and a model of a few lines that says which packets pass: those of known flows,
//! and first ones that the rules in force admit.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::Time;
use rheostat_functions::firewall::{Action, FirewallConfig, PortList, PortRange, Rule};
use rheostat_functions::{Firewall, shipped};
use rheostat_io::Pacing;
use rheostat_nf::link;
use rheostat_nf::registry::next_chain_of;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_run::TimeSource;
use rheostat_testkit::world::{Setup, World};
use rheostat_traffic::{Arrival, Source};

/// A packet: the number of its flow's client, and the port of its server.
type Sent = (u16, u16);

/// One stretch of time: the ports that are denied to new flows, and the packets that arrive.
#[derive(Clone, Debug)]
struct Stretch {
    denied: Vec<u16>,
    packets: Vec<Sent>,
}

const PORTS: u16 = 6;
const LENGTH: Duration = Duration::from_millis(10);

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let denied = prop::collection::hash_set(0..PORTS, 0..4);
    let packets = prop::collection::vec((0..40_u16, 0..PORTS), 0..60);
    let stretch = (denied, packets)
        .prop_map(|(denied, packets)| Stretch { denied: denied.into_iter().collect(), packets });
    prop::collection::vec(stretch, 1..12)
}

fn frame((client, port): Sent) -> Vec<u8> {
    let (from, to) = if client % 2 == 0 {
        ([10, 0, 0, 1].into(), [192, 0, 2, 1].into())
    } else {
        ("fd00::1".parse().expect("an address"), "2001:db8::1".parse().expect("an address"))
    };
    let udp = Transport::Udp { ports: (1_000 + client, 10_000 + port) };
    FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec()
}

/// The packets of all stretches, those of each at its beginning.
struct Script(std::vec::IntoIter<(Time, Vec<u8>)>);

impl Source for Script {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (time, bytes) = self.0.next()?;
        *frame = bytes;
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Raw })
    }
}

fn config(denied: &[u16]) -> FirewallConfig {
    let ports = denied.iter().map(|port| PortRange { low: 10_000 + port, high: 10_000 + port });
    let rule = Rule {
        action: Some(Action::Deny),
        destination_ports: PortList(ports.collect()),
        ..Rule::default()
    };
    let mut config = FirewallConfig::default();
    config.rules.rules.extend((!denied.is_empty()).then_some(rule));
    config
}

/// What passes, by the model.
fn expected(stretches: &[Stretch]) -> Vec<Sent> {
    let mut known = HashSet::new();
    let all = stretches.iter().flat_map(|stretch| {
        stretch.packets.iter().map(move |packet| (packet, !stretch.denied.contains(&packet.1)))
    });
    let mut passed = Vec::new();
    for (packet, is_admitted) in all {
        if known.contains(packet) || is_admitted {
            known.insert(*packet);
            passed.push(*packet);
        }
    }
    passed
}

fn run(setup: &Setup, stretches: &[Stretch]) -> Vec<Vec<u8>> {
    let start = |number: usize| Time::ZERO + LENGTH * number as u32;
    let packets = stretches.iter().enumerate().flat_map(|(number, stretch)| {
        stretch.packets.iter().map(move |packet| (start(number), frame(*packet)))
    });
    let script = Script(packets.collect::<Vec<_>>().into_iter());
    let chain = shipped::chain(vec![link(Firewall::new(config(&[])))]).expect("a chain");
    let mut world = World::of_chain(setup, Box::new(script), chain);
    for (number, stretch) in stretches.iter().enumerate() {
        let links = vec![link(Firewall::new(config(&stretch.denied)))];
        let next = next_chain_of(&world.chain, links, shipped::CHAINS).expect("a chain");
        world.chain.replace_by(&next).expect("the same function");
        world.now = start(number);
        while world.deliver() + (0..setup.lanes).map(|lane| world.poll(lane)).sum::<usize>() > 0 {}
    }
    let outcome = world.finish();
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.device_dropped, 0);
    let mut sent: Vec<_> = outcome.packets.into_iter().map(|packet| packet.bytes).collect();
    sent.sort();
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_passes_is_decided_by_the_rules_in_force_when_its_flow_began(
        stretches in stretches(),
        lanes in 1..4_usize,
        is_joint: bool,
    ) {
        let setup = Setup {
            claimants: if is_joint { lanes } else { 1 },
            pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
            time: TimeSource::Poll,
            ..Setup::lossless(lanes)
        };
        let mut expected: Vec<_> = expected(&stretches).into_iter().map(frame).collect();
        expected.sort();
        prop_assert_eq!(run(&setup, &stretches), expected);
    }
}
