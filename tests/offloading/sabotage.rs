//! What makes offloading safe was seen to matter: left out, an account or a comparison names what comes of it.

use rheostat_base::LaneId;
use rheostat_packet::LinkType;
use rheostat_run::{HandoffPacket, OffloadingService, Service, Violation};
use rheostat_testkit::flows::{Difference, difference};
use rheostat_testkit::intercepted::Intercepted;
use rheostat_testkit::world::{FirewallService, Outcome, Setup, World};
use rheostat_traffic::{Mix, MixConfig, Source};

/// What an offloading lane does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sabotage {
    Nothing,
    /// Loses every hundredth packet.
    Loses,
    /// Swaps the first two packets.
    Swaps,
    /// Goes on with a flow of which it has refused a packet.
    GoesOn,
    /// Refuses packets in reverse.
    ReturnsReversed,
}

/// The firewall, on lanes of which the offloading ones are sabotaged.
fn sabotaged(inner: FirewallService, sabotage: Sabotage) -> impl Service {
    let mut seen = 0_u64;
    Intercepted::new(inner, move |inner, batch, flows, out| {
        let mut packets: Vec<_> =
            batch.drain().map(|(packet, info)| HandoffPacket { packet, info: *info }).collect();
        match sabotage {
            Sabotage::Nothing => {}
            Sabotage::Loses => packets.retain(|_| {
                seen += 1;
                !seen.is_multiple_of(100)
            }),
            Sabotage::Swaps => packets.reverse(),
            Sabotage::ReturnsReversed => {
                // All of them, as of flows that cannot be processed here.
                for placed in packets.drain(..).rev() {
                    placed.info.offloaded().into_iter().for_each(|number| flows.refuse(number));
                    out.refuse(placed);
                }
            }
            // Every fourth is refused, and the next one is not.
            Sabotage::GoesOn => {
                for placed in packets.drain(..) {
                    seen += 1;
                    if seen.is_multiple_of(4) {
                        out.refuse(placed);
                    } else {
                        batch.push(placed);
                        inner.process_offloaded(batch, flows, out);
                    }
                }
            }
        }
        packets.into_iter().for_each(|placed| batch.push(placed));
        inner.process_offloaded(batch, flows, out);
    })
}

const SETUP: fn() -> Setup = || Setup { offloading: 1, ..Setup::lossless(2) };

/// Few flows of many packets, most of which are of open connections.
fn dense() -> Box<dyn Source> {
    let mix = MixConfig { seed: 3, flows: 10, packets: Some(20_000), ..MixConfig::default() };
    Box::new(Mix::new(mix).expect("a mix"))
}

fn world(sabotage: Sabotage) -> World {
    let wrap = |_, inner| sabotaged(inner, sabotage);
    let mut world = World::with(&SETUP(), dense(), wrap, |shard| shard);
    world.lanes[0].offload_to(Some(LaneId(1)), 100);
    world
}

fn run(sabotage: Sabotage) -> Outcome {
    let mut world = world(sabotage);
    // A source without loss waits for packets that are lost.
    for _ in 0..20_000 {
        if !world.round() {
            break;
        }
    }
    world.finish()
}

#[test]
fn a_lane_that_does_as_it_should_is_not_named() {
    let (one, many) = (World::open(&Setup::lossless(1), dense()).run(), run(Sabotage::Nothing));
    assert_eq!((&*many.violations, difference(&one, &many, LinkType::Ethernet)), (&[][..], None));
    assert!(many.sum.offloaded > 2_000, "{:?}", many.sum);
}

#[test]
fn a_packet_that_an_offloading_lane_loses_is_named() {
    let found = run(Sabotage::Loses).violations;
    assert!(matches!(found[..], [Violation::LaneUnbalanced { lane: 1, .. }, ..]), "{found:?}");
}

#[test]
fn packets_that_an_offloading_lane_swaps_are_named() {
    let found = run(Sabotage::Swaps);
    let reordered = |found: &Violation| matches!(found, Violation::Reordered { .. });
    assert!(found.violations.iter().any(reordered), "{:?}", found.violations);
    let one = World::open(&Setup::lossless(1), dense()).run();
    let difference = difference(&one, &found, LinkType::Ethernet);
    assert!(matches!(
        difference,
        Some(Difference::Packet { .. } | Difference::Figure { .. } | Difference::Count { .. })
    ));
}

#[test]
fn a_lane_that_goes_on_behind_a_refused_packet_is_named() {
    let found = run(Sabotage::GoesOn).violations;
    assert!(matches!(found[..], [Violation::Reordered { .. }]), "{found:?}");
}

#[test]
fn refused_packets_that_come_back_in_reverse_are_named() {
    let found = run(Sabotage::ReturnsReversed).violations;
    assert!(matches!(found[..], [Violation::Reordered { .. }]), "{found:?}");
}

#[test]
fn flows_that_do_not_come_home_are_named() {
    let mut world = world(Sabotage::Nothing);
    while world.lanes[0].flows_away() < 3 {
        assert!(world.round(), "flows leave before the end");
    }
    let away = world.lanes[0].flows_away() as u64;
    // As if the worker of the offloading lane had panicked.
    drop(world.lanes.pop());
    let found = world.finish().violations;
    assert!(found.contains(&Violation::FlowsAway { lane: 0, flows: away }), "{found:?}");
}
