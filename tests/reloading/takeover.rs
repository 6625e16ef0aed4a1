//! Functions that take the place of others with the same settings go on with all that these had: packets leave, flows end and logs
//! are written as if nothing had happened.

use std::path::PathBuf;
use std::sync::Arc;

use rheostat_functions::firewall::FirewallConfig;
use rheostat_functions::monitor::MonitorFunction;
use rheostat_functions::nat::{Mapping, NatConfig, NatFunction, Sharing};
use rheostat_functions::policer::PolicerInChain;
use rheostat_functions::shipped;
use rheostat_ip::RunLimit;
use rheostat_nf::AnyChain;
use rheostat_nf::registry::{
    BuildCx, Built, FunctionSettings, Handed, Lines, chain_of, next_chain_of,
};
use rheostat_state::txn::Objects;
use rheostat_steer::Whose;
use rheostat_testkit::world::{Outcome, Setup, World};

use super::mix;
use crate::migration::equivalence::moving_while;
use crate::policing;

/// The settings of a chain's functions.
type Settings = Vec<Arc<dyn FunctionSettings>>;

/// A chain that is built again and again, as a program builds it.
struct Builder {
    settings: Settings,
    objects: Objects,
    errors: RunLimit,
    /// What each function handed over that was built last.
    handed: Vec<Option<Handed>>,
    logs: Vec<Box<dyn Lines>>,
}

impl Builder {
    fn new(settings: Settings, lanes: usize) -> Builder {
        let handed = settings.iter().map(|_| None).collect();
        let (objects, errors) = (Objects::seeded(lanes, 7), RunLimit::of_replay(1_000, 100));
        Builder { settings, objects, errors, handed, logs: Vec::new() }
    }

    fn links(&mut self) -> Vec<Box<dyn rheostat_nf::Link>> {
        let Builder { settings, objects, errors, handed, logs } = self;
        let links = settings.iter().zip(handed).map(|(settings, handed)| {
            let predecessor = handed.as_ref();
            let cx = BuildCx { objects, errors, seed: Some(7), runs: true, predecessor };
            let Built { link, log, handed: next, .. } = settings.build(&cx).expect("a function");
            logs.extend(log.map(|(_, lines)| lines));
            *handed = next;
            link.expect("a function that packets pass")
        });
        links.collect()
    }

    /// Puts functions with the same settings in the place of those that run.
    fn replace(&mut self, running: &AnyChain) {
        let next = next_chain_of(running, self.links(), shipped::CHAINS).expect("the same chain");
        running.replace_by(&next).expect("the same functions");
    }

    fn written(&mut self) -> String {
        let mut text = Vec::new();
        for lines in &mut self.logs {
            lines.write_new(&mut text).expect("memory");
            lines.write_last(&mut text).expect("memory");
        }
        String::from_utf8(text).expect("text")
    }
}

/// Runs a chain while shards move, with as many replacements as there are rounds or with none. Returns how many there were, and what
/// was logged, beside the outcome.
fn run(settings: Settings, lanes: usize, replaces: bool) -> (Outcome, u64, String) {
    let mut builder = Builder::new(settings, lanes);
    let chain = chain_of(builder.links(), shipped::CHAINS).expect("a chain");
    let setup = Setup { descriptors: 64, ..Setup::lossless(lanes) };
    let world = World::of_chain(&setup, mix(11, 6_000), chain);
    let mut replaced = 0;
    let (outcome, _) = moving_while(world, 11, |world| {
        if replaces {
            builder.replace(&world.chain);
            replaced += 1;
        }
    });
    (outcome, replaced, builder.written())
}

fn compare(settings: impl Fn() -> Settings) {
    let lanes = 3;
    let name = format!("{:?}", settings());
    let (without, _, log) = run(settings(), lanes, false);
    let (with, replaced, log_with) = run(settings(), lanes, true);
    assert_eq!((&*without.violations, &*with.violations), (&[][..], &[][..]), "{name}");
    assert!(replaced > 50, "{replaced} replacements: {name}");
    let bytes = |outcome: &Outcome| -> Vec<_> {
        outcome.packets.iter().map(|packet| (packet.stamp, packet.bytes.clone())).collect()
    };
    assert!(bytes(&without) == bytes(&with), "other packets leave: {name}");
    assert_eq!(without.sum.dropped, with.sum.dropped, "{name}");
    assert_eq!(without.sum.flows_created, with.sum.flows_created, "{name}");
    assert_eq!(without.sum.flows_ended, with.sum.flows_ended, "{name}");
    assert_eq!(log, log_with, "{name}");
    assert!(without.sum.sent > 1_000, "nothing was shown: {name}");
}

fn firewall() -> Arc<dyn FunctionSettings> {
    Arc::new(FirewallConfig::default())
}

fn nat(mapping: Mapping, sharing: Option<Sharing>) -> Arc<dyn FunctionSettings> {
    let mut nat = NatConfig::new(vec![[203, 0, 113, 1].into(), [203, 0, 113, 2].into()]);
    nat.mapping = mapping;
    nat.inside = vec!["10.0.0.0/8".parse().expect("a prefix")].into_iter().collect();
    nat.quota = Some(50);
    let log = sharing.is_none().then(|| PathBuf::from("nat.jsonl"));
    Arc::new(NatFunction { nat, log, sharing })
}

fn monitor() -> Arc<dyn FunctionSettings> {
    let log = Some(PathBuf::from("flows.jsonl"));
    Arc::new(MonitorFunction { log, ..MonitorFunction::default() })
}

fn policer() -> rheostat_functions::policer::PolicerConfig {
    policing::config(Whose::Inner, policing::meters()[1])
}

#[test]
fn a_firewall_and_a_nat_go_on_with_connections_mappings_and_logs() {
    for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
        compare(|| vec![nat(mapping, None)]);
        compare(|| vec![firewall(), nat(mapping, None)]);
    }
}

#[test]
fn functions_with_flows_of_their_own_go_on_with_them() {
    compare(|| vec![Arc::new(policer())]);
    compare(|| vec![monitor()]);
    compare(|| {
        vec![
            Arc::new(PolicerInChain { policer: policer(), is_shared: false }),
            monitor(),
            firewall(),
        ]
    });
}
