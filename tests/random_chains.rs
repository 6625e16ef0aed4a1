//! Chains of functions drawn at random, over traffic drawn at random: one outcome from 1, 2 and 8 lanes, on the fast path and beside
//! it, and that of the chain which is compiled as a whole where there is one.

use std::time::Duration;

use proptest::prelude::*;
use rheostat::{
    Admission, Cx, DropReason, Mix, MixConfig, NetworkFunction, Objects, Outcome, Packet, Stage,
    StateLayout, Verdict,
};
use rheostat_base::{Counter, Nanos, Time};
use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::monitor::MonitorConfig;
use rheostat_functions::nat::Mapping;
use rheostat_functions::policer::PolicerInShards;
use rheostat_functions::portscan::PortscanConfig;
use rheostat_functions::{AntiDdos, Monitor, Portscan};
use rheostat_nf::{Link, Steady, link, shared_link};
use rheostat_packet::LinkType;
use rheostat_steer::Whose;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::Source;

use crate::dynamic_chains::{Digest, ONE, Way, dynamic, firewall, firewall_and_nat, nat, run};
use crate::policing;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Monitor,
    Policer,
    Firewall,
    Nat(Mapping),
    AntiDdos,
    Portscan,
}

const ALL: [Function; 7] = [
    Function::Monitor,
    Function::Policer,
    Function::Firewall,
    Function::Nat(Mapping::EndpointIndependent),
    Function::Nat(Mapping::AddressAndPortDependent),
    Function::AntiDdos,
    Function::Portscan,
];

impl Function {
    fn link(self, objects: &Objects) -> Box<dyn Link> {
        // What the detectors count depends on which of several flows is over first, where these are of different shards.
        let ever = Duration::from_secs(100 * 365 * 86_400);
        match self {
            Function::Monitor => link(Monitor::new(MonitorConfig::default(), None)),
            Function::Policer => {
                let config = policing::config(Whose::Inner, policing::meters()[1]);
                link(PolicerInShards::new(config))
            }
            Function::Firewall => link(firewall()),
            Function::Nat(mapping) => link(nat(mapping)),
            Function::AntiDdos => {
                let config =
                    AntiDdosConfig { one_packet: ever, idle: ever, ..AntiDdosConfig::default() };
                shared_link(AntiDdos::new(config, objects), objects)
            }
            Function::Portscan => {
                let config = PortscanConfig { timeout: ever, ..PortscanConfig::default() };
                shared_link(Portscan::new(config, objects), objects)
            }
        }
    }
}

/// Two to five functions in some order, each once, of which one translates at most.
fn functions() -> impl Strategy<Value = Vec<Function>> {
    let chosen = prop::sample::subsequence(ALL.to_vec(), 1..=ALL.len()).prop_shuffle();
    chosen.prop_map(|mut functions| {
        let mut translates = false;
        functions.retain(|function| {
            !matches!(function, Function::Nat(_)) || !std::mem::replace(&mut translates, true)
        });
        // Behind NAT, a policer of inner addresses would see others, and `rheo check` refuses it.
        let nat = functions.iter().position(|function| matches!(function, Function::Nat(_)));
        let policer = functions.iter().position(|function| *function == Function::Policer);
        if let (Some(nat), Some(policer)) = (nat, policer)
            && nat < policer
        {
            functions.swap(nat, policer);
        }
        functions.truncate(5);
        functions
    })
}

fn source(seed: u64) -> impl Source {
    let config = MixConfig {
        seed,
        flows: 60,
        packets: Some(1_500),
        packets_per_second: 50,
        ..MixConfig::default()
    };
    Spliced::new(Mix::new(config).expect("a mix"))
}

fn outcome(functions: &[Function], way: Way, seed: u64) -> Digest {
    let objects = Objects::new(way.0);
    let links = functions.iter().map(|function| function.link(&objects)).collect();
    run(way, dynamic(links), source(seed), LinkType::Ethernet)
}

/// That of the chain which is compiled as a whole, if there is one of these functions.
fn compiled(functions: &[Function], seed: u64) -> Option<Digest> {
    let mut layout = StateLayout::new();
    let source = source(seed);
    match functions {
        [Function::Firewall] => {
            let stage = Stage::new(firewall(), &mut layout).expect("room for one state");
            Some(run(ONE, (stage, layout), source, LinkType::Ethernet))
        }
        [Function::Nat(mapping)] => {
            let stage = Stage::new(nat(*mapping), &mut layout).expect("room for one state");
            Some(run(ONE, (stage, layout), source, LinkType::Ethernet))
        }
        [Function::Firewall, Function::Nat(mapping)] => {
            Some(run(ONE, firewall_and_nat(*mapping), source, LinkType::Ethernet))
        }
        _ => None,
    }
}

/// The difference of two outcomes. What the detector of scans counts depends on the order of contacts of different shards.
fn differs(one: &Digest, other: &Digest) -> Option<String> {
    let counted = |digest: &Digest| {
        let metrics = digest.metrics.iter();
        metrics.filter(|(name, _)| !name.starts_with("portscan")).copied().collect::<Vec<_>>()
    };
    if one.counters != other.counters {
        return Some(format!("{:?}\n{:?}", one.counters, other.counters));
    }
    if counted(one) != counted(other) {
        return Some(format!("{:?}\n{:?}", counted(one), counted(other)));
    }
    one.flows.differs_from(&other.flows).map(|difference| difference.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_functions_come_to_the_same_from_any_number_of_lanes(
        functions in functions(),
        seed in 0..1_000_u64,
    ) {
        let one = outcome(&functions, ONE, seed);
        prop_assert!(one.counters[0].1 >= 1_500, "{:?}", one.counters);
        for way in [(1, 1, 0, 100), (2, 1, 0, 20), (2, 2, 0, 20), (8, 1, 0, 0)] {
            let difference = differs(&one, &outcome(&functions, way, seed));
            prop_assert_eq!(difference, None, "{:?}, {:?}", &functions, way);
        }
        if let Some(compiled) = compiled(&functions, seed) {
            prop_assert_eq!(differs(&compiled, &one), None, "{:?}", &functions);
        }
    }
}

/// Each chain of which there is a compiled one, at least once.
#[test]
fn chains_of_one_and_two_functions_come_to_the_same_as_compiled_ones() {
    for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
        let nat = Function::Nat(mapping);
        for functions in [&[Function::Firewall][..], &[nat], &[Function::Firewall, nat]] {
            let compiled = compiled(functions, 7).expect("there is one");
            let difference = differs(&compiled, &outcome(functions, ONE, 7));
            assert_eq!(difference, None, "{functions:?}");
        }
    }
}

/// The comparison notices a packet less, and a function at another place.
#[test]
fn chains_that_differ_are_noticed() {
    let right = [Function::Policer, Function::Firewall];
    let one = outcome(&right, ONE, 3);
    assert_eq!(differs(&one, &outcome(&right, ONE, 3)), None);
    assert!(differs(&one, &outcome(&[Function::Firewall, Function::Policer], ONE, 3)).is_some());
    let mut less = outcome(&right, ONE, 3);
    less.counters[1].1 -= 1;
    assert!(differs(&one, &less).is_some());
}

/// Drops every fifth packet of a flow, and forgets that on its fast path.
struct Careless;

impl NetworkFunction for Careless {
    type Flow = u32;
    type Shard = ();

    fn first(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Admission<u32>> {
        Ok(Admission::Admit(1, Verdict::Forward))
    }

    fn packet(
        &self,
        _: &mut Cx<'_, ()>,
        _: &mut Packet<'_>,
        packets: &mut u32,
    ) -> Outcome<Verdict> {
        *packets += 1;
        let drops = packets.is_multiple_of(5);
        Ok(if drops { Verdict::Drop(DropReason::Denied) } else { Verdict::Forward })
    }

    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<u32> {
        Forgetful
    }
}

struct Forgetful;

impl Steady<u32> for Forgetful {
    type Step = ();

    fn shortest(&self) -> Nanos {
        Duration::MAX.into()
    }

    fn may_leave(&self, _: &u32) -> bool {
        true
    }

    fn decide(&self, _: &Packet<'_>, _: &u32) -> Option<()> {
        Some(())
    }

    fn commit(&self, (): (), _: Time, _: &mut Packet<'_>, packets: &mut u32) -> Option<Time> {
        *packets += 1;
        None
    }
}

/// A planted fault: the ways of running that are compared distinguish the two paths.
#[test]
fn a_function_whose_fast_path_is_not_its_handler_is_noticed() {
    let run = |way| {
        let links = vec![Function::Policer.link(&Objects::new(1)), link(Careless)];
        run(way, dynamic(links), source(3), LinkType::Ethernet)
    };
    let (fast, general) = (run(ONE), run((1, 1, 0, 100)));
    let difference = differs(&fast, &general).expect("packets that only the handler drops");
    assert!(difference.contains("denied"), "{difference}");
}
