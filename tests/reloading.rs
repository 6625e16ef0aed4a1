//! Chains that take each other's place while lanes run: nothing that both admit is lost, flows live on in their order, and what one
//! alone admits passes as long as that one is in force.

mod alternation;
mod takeover;

use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_functions::firewall::{Action, PortList, PortRange, Rule};
use rheostat_functions::{Firewall, shipped};
use rheostat_nf::registry::next_chain_of;
use rheostat_nf::{AnyChain, Generation, Unlike, link};
use rheostat_packet::LinkType;
use rheostat_run::{TimeSource, Unusual};
use rheostat_testkit::flows::{Flows, difference};
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{Setup, World};
use rheostat_traffic::{Mix, MixConfig, Source};

use crate::migration::equivalence::moving_while;
use crate::migration::schedule::poll_all;

/// A mix with fragments and ICMP errors, which take other ways than the rest of their flows, and hours of silence.
pub(crate) fn mix(seed: u64, packets: u64) -> Box<dyn Source> {
    let mix = MixConfig { seed, flows: 300, packets: Some(packets), ..MixConfig::default() };
    Box::new(Spliced::new(Mix::new(mix).expect("a mix")))
}

/// A firewall that is as good as that of `setup` for the mix: it has more rules the higher `number` is, which no packet matches.
fn firewall(setup: &Setup, number: u64) -> Firewall {
    let mut config = setup.config();
    let port = PortList(vec![PortRange { low: 1, high: 1 }]);
    let source = vec!["198.51.100.0/24".parse().expect("a prefix")].into_iter().collect();
    let rule =
        Rule { action: Some(Action::Deny), source, destination_ports: port, ..Rule::default() };
    config.rules.rules = vec![rule; (number % 3) as usize];
    config.rejects_per_second += (number % 5) as u32;
    Firewall::new(config)
}

/// Puts the firewall with this number in force.
fn replace(chain: &AnyChain, setup: &Setup, number: u64) -> Generation {
    let links = vec![link(firewall(setup, number))];
    let next = next_chain_of(chain, links, shipped::CHAINS).expect("a chain of the same function");
    chain.replace_by(&next).expect("the same function")
}

#[test]
fn a_thousand_replacements_under_moving_shards_change_nothing_that_all_admit() {
    let one = World::open(&Setup::lossless(1), mix(3, 20_000)).run();
    assert_eq!(one.violations, []);
    let mut replaced = 0;
    for lanes in [2, 5] {
        let unusual = Unusual::percent(if lanes > 2 { 30 } else { 0 }, 1);
        let setup = Setup { unusual, descriptors: 16, ..Setup::lossless(lanes) };
        let mut generation = Generation::default();
        let (many, moved) = moving_while(World::open(&setup, mix(3, 20_000)), 3, |world| {
            generation = replace(&world.chain, &setup, replaced);
            replaced += 1;
        });
        assert_eq!(many.violations, [], "{lanes} lanes");
        assert!(moved > 100 && many.sum.flows_in > 100, "{moved} moved: nothing was shown");
        assert_eq!(difference(&one, &many, LinkType::Ethernet), None, "{lanes} lanes");
        assert_eq!(Flows::overtaken(&many.packets, LinkType::Ethernet), 0);
    }
    assert!(replaced > 1_000, "{replaced} replacements");
}

#[test]
fn claimants_of_a_queue_adapt_the_shards_that_they_share() {
    let one = World::open(&Setup::lossless(1), mix(4, 10_000)).run();
    let setup = Setup { claimants: 2, descriptors: 16, ..Setup::lossless(4) };
    let mut world = World::open(&setup, mix(4, 10_000));
    let mut replaced = 0;
    while world.round() {
        replace(&world.chain, &setup, replaced);
        replaced += 1;
    }
    let many = world.finish();
    assert_eq!(many.violations, []);
    assert_eq!(difference(&one, &many, LinkType::Ethernet), None);
    assert!(replaced > 100 && many.sum.shard_visits > 1_000, "{replaced} replacements");
}

#[test]
fn a_lane_without_packets_or_shards_uses_the_next_chain_within_a_second() {
    let setup = Setup { time: TimeSource::Poll, ..Setup::lossless(4) };
    let mut world = World::open(&setup, mix(5, 10));
    // The last lane has no shards.
    let table = world.table();
    let mut migrator = rheostat_run::Migrator::new(&mut world.lanes, vec![table]);
    let owners = migrator.owners().iter().zip(0..).filter(|(owner, _)| **owner == LaneId(3));
    let moves: Vec<_> = owners
        .map(|(&from, shard)| rheostat_run::Move {
            shard: rheostat_base::ShardId(shard),
            from,
            to: LaneId(0),
        })
        .collect();
    migrator.start(&moves, world.now).expect("a plan with the owners");
    while !migrator.is_idle() {
        world.deliver();
        migrator.step(world.now);
        poll_all(&mut world.lanes, world.now);
    }
    assert_eq!(world.lanes[3].shards().owned().count(), 0);
    poll_all(&mut world.lanes, world.now);
    let generation = replace(&world.chain, &setup, 1);
    assert_eq!(world.chain.pending(generation), [0, 1, 2, 3].map(LaneId));
    for _ in 0..4 {
        world.now += Duration::from_millis(250);
        poll_all(&mut world.lanes, world.now);
    }
    assert_eq!(world.chain.pending(generation), []);
    let outcome = world.finish();
    assert_eq!(outcome.violations, []);
}

#[test]
fn chains_of_other_functions_or_properties_are_refused() {
    let setup = Setup::lossless(1);
    let of = |links| shipped::chain(links).expect("a chain");
    let running = of(vec![link(firewall(&setup, 0))]);
    let unrelated = of(vec![link(firewall(&setup, 1))]);
    assert_eq!(running.replace_by(&unrelated), Err(Unlike::Layout), "not built as the next");
    let dynamic = running.next(vec![link(firewall(&setup, 1))]).expect("the same states");
    assert_eq!(running.replace_by(&dynamic), Err(Unlike::Functions), "a chain made at run time");
    let monitor = || link(rheostat_functions::Monitor::new(Default::default(), None));
    let error = next_chain_of(&running, vec![monitor()], shipped::CHAINS).unwrap_err().to_string();
    assert!(error.starts_with("the entries of the chain that runs have no place for"), "{error}");
    assert!(
        running
            .next(Vec::new())
            .is_ok_and(|next| { running.replace_by(&next) == Err(Unlike::Functions) })
    );
    // In other orders, functions of a chain made at run time have other places.
    let two = || vec![link(firewall(&setup, 0)), monitor()];
    let running = of(two());
    assert!(running.next(two()).is_ok_and(|next| running.replace_by(&next) == Ok(Generation(1))));
    let mut turned = two();
    turned.reverse();
    let refused = running.next(turned).map(|next| running.replace_by(&next));
    assert!(!matches!(refused, Ok(Ok(_))), "{refused:?}");
}
