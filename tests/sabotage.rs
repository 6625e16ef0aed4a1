//! Each checker of a run was seen to fail: a run is sabotaged in one way, and the account names it.
//! The same run without sabotage is sound.

use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_io::{FaultConfig, Pacing};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{FlowKey, LinkType};
use rheostat_run::invariant::check_monotone;
use rheostat_run::{Batch, HandoffPacket, Output, Service, ShardSet, Violation};
use rheostat_state::FlowHasher;
use rheostat_testkit::flows::Flows;
use rheostat_testkit::spliced::Spliced;
use rheostat_testkit::world::{FirewallService, FirewallShard, Outcome, Setup, World};
use rheostat_traffic::{Arrival, Source};

/// Datagrams of a number of flows in turn, a millisecond apart.
struct Datagrams {
    flows: u64,
    count: u64,
    sent: u64,
}

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.sent == self.count {
            return None;
        }
        let flow = (self.sent % self.flows) as u16;
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let udp = Transport::Udp { ports: (1_000 + flow, 53) };
        let (client, server) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let payload = self.sent.to_be_bytes();
        let packet = FrameBuilder::new(client, server, udp, Payload::Bytes(&payload));
        *frame = packet.with_ethernet(link).to_vec();
        let time = Time::from_millis(self.sent);
        self.sent += 1;
        let len = frame.len();
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

fn datagrams(flows: u64, count: u64) -> Box<dyn Source> {
    Box::new(Datagrams { flows, count, sent: 0 })
}

const COUNT: u64 = 500;

fn run(faults: FaultConfig) -> Outcome {
    let setup = Setup { faults: Some(faults), ..Setup::lossless(1) };
    World::open(&setup, datagrams(1, COUNT)).run()
}

/// A fault for every packet, but only once.
fn once() -> FaultConfig {
    FaultConfig { limit: Some(1), ..FaultConfig::default() }
}

#[test]
fn a_run_without_sabotage_is_sound() {
    let outcome = run(FaultConfig::default());
    assert_eq!(outcome.violations, []);
    assert_eq!((outcome.sum.received, outcome.sum.sent), (COUNT, COUNT));
}

#[test]
fn a_lost_packet_is_named() {
    let outcome = run(FaultConfig { drop: 1.0, ..once() });
    let lost = Violation::Received { delivered: COUNT, received: COUNT - 1 };
    assert_eq!(outcome.violations, [lost]);
}

#[test]
fn a_doubled_packet_is_named() {
    let outcome = run(FaultConfig { duplicate: 1.0, ..once() });
    let doubled = Violation::Received { delivered: COUNT, received: COUNT + 1 };
    assert_eq!(outcome.violations, [doubled]);
}

#[test]
fn a_leaked_buffer_is_named() {
    let outcome = run(FaultConfig { leak: 1.0, ..once() });
    let capacity = Setup::lossless(1).buffers as usize;
    let lost = Violation::Received { delivered: COUNT, received: COUNT - 1 };
    let leaked = Violation::BuffersLeaked { missing: 1, capacity };
    assert_eq!(outcome.violations, [lost, leaked]);
}

#[test]
fn two_packets_of_a_flow_that_change_places_are_named() {
    let outcome = run(FaultConfig { swap: 1.0, ..once() });
    assert_eq!(outcome.violations, [Violation::Reordered { packets: 1 }]);
    // What left says the same, without the lane's word.
    assert_eq!(Flows::overtaken(&outcome.packets, LinkType::Ethernet), 1);
}

#[test]
fn packets_that_come_late_are_named_only_while_they_are_missing() {
    let late = Duration::from_secs(1);
    let delayed = || {
        let faults = FaultConfig { delay: Some((1.0, late)), ..once() };
        let setup = Setup { faults: Some(faults), ..Setup::lossless(1) };
        let mut world = World::open(&setup, datagrams(1, COUNT));
        while world.round() {}
        world
    };
    let missing = Violation::Received { delivered: COUNT, received: 0 };
    assert_eq!(delayed().finish().violations[0], missing);

    let mut world = delayed();
    world.now += late;
    while world.round() {}
    let outcome = world.finish();
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.sum.sent, COUNT);
}

#[test]
fn packets_that_change_places_with_other_flows_are_none_of_our_business() {
    let setup = Setup { faults: Some(FaultConfig { swap: 1.0, ..once() }), ..Setup::lossless(1) };
    let outcome = World::open(&setup, datagrams(2, COUNT)).run();
    assert_eq!(outcome.violations, []);
}

/// The firewall, but for one misdeed.
struct Misdeed {
    firewall: FirewallService,
    /// Which packet it happens to, counted from one.
    at: u64,
    deed: Deed,
    seen: u64,
}

#[derive(Clone, Copy)]
enum Deed {
    /// A packet is freed, and not counted.
    Swallow,
    /// A packet is counted as consumed, and sent on as well.
    CountTwice,
    /// The packet's flow leaves its table, and is not counted as ended.
    ForgetFlow,
}

impl Service for Misdeed {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        let mut honest = Batch::default();
        for (packet, &info) in batch.drain() {
            self.seen += 1;
            match self.deed {
                Deed::Swallow if self.seen == self.at => {
                    out.pool().free(packet);
                    continue;
                }
                Deed::CountTwice if self.seen == self.at => out.counters().consumed.increment(),
                Deed::ForgetFlow if self.seen == self.at => {
                    let shard = shards.get_mut(info.shard).expect("the lane's own");
                    let flow = shard.table.find_now(info.hash, &info.key());
                    assert!(shard.table.remove(flow.expect("a flow seen before")));
                }
                _ => {}
            }
            honest.push(HandoffPacket { packet, info });
        }
        self.firewall.process(&mut honest, shards, out);
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.firewall.tick(shards, out, now);
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.firewall.finish(shards, out, now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.firewall.next_deadline()
    }
}

fn run_misdeed(deed: Deed) -> Outcome {
    let wrap = |_: LaneId, firewall| Misdeed { firewall, at: 77, deed, seen: 0 };
    World::with(&Setup::lossless(1), datagrams(3, COUNT), wrap, |shard| shard).run()
}

#[test]
fn a_packet_that_a_lane_swallows_is_named() {
    let swallowed = Violation::LaneUnbalanced { lane: 0, entered: COUNT, left: COUNT - 1 };
    assert_eq!(run_misdeed(Deed::Swallow).violations, [swallowed]);
}

#[test]
fn a_packet_that_a_lane_counts_twice_is_named() {
    let twice = Violation::LaneUnbalanced { lane: 0, entered: COUNT, left: COUNT + 1 };
    assert_eq!(run_misdeed(Deed::CountTwice).violations, [twice]);
}

#[test]
fn packets_left_between_lanes_are_named() {
    let setup = Setup {
        pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
        descriptors: 2_048,
        ..Setup::lossless(2)
    };
    let source = Spliced::new(Datagrams { flows: 64, count: COUNT, sent: 0 });
    let mut world = World::open(&setup, Box::new(source));
    world.now = Time::from_secs(1);
    world.deliver();
    // Lane 0 alone is polled: what it hands over stays on the ring.
    while world.poll(0) > 0 {}
    let outcome = world.account();
    let given = outcome.sum.handoff_out;
    assert!(given > 0);
    // Nor did lane 1 receive what waits in its own queue.
    let delivered = outcome.arrived - outcome.device_dropped;
    let received = outcome.sum.received;
    assert!(received < delivered);
    let expected =
        [Violation::Received { delivered, received }, Violation::Handoff { given, taken: 0 }];
    assert_eq!(outcome.violations, expected);
}

#[test]
fn a_shard_without_an_owner_and_one_with_two_are_named() {
    let mut world = World::open(&Setup::lossless(2), datagrams(1, 0));
    let removed = world.lanes.pop().expect("two lanes");
    let owned: Vec<ShardId> = removed.shards().owned().collect();
    drop(removed);
    let expected: Vec<_> =
        owned.iter().map(|&shard| Violation::Ownership { shard, owners: 0 }).collect();
    assert_eq!(expected.len(), 8);
    assert_eq!(world.account().violations, expected);

    // Lane 1 gets a shard that calls itself shard 0, which lane 0 has.
    let change = |mut shard: FirewallShard| {
        if shard.id == ShardId(1) {
            shard.id = ShardId(0);
        }
        shard
    };
    let world = World::with(&Setup::lossless(2), datagrams(1, 0), |_, service| service, change);
    let expected = [
        Violation::Ownership { shard: ShardId(0), owners: 2 },
        Violation::Ownership { shard: ShardId(1), owners: 0 },
    ];
    assert_eq!(world.account().violations, expected);
}

#[test]
fn a_flow_that_was_not_created_is_named() {
    let end = ([192, 0, 2, 7].into(), 7);
    let key = FlowKey::v4(([10, 0, 0, 7].into(), 7), end, 17, 0);
    let hash = FlowHasher::fixed().hash(&key);
    let change = |mut shard: FirewallShard| {
        if shard.id == ShardId(3) {
            shard.table.insert(hash, &key, Time::ZERO).expect("room");
        }
        shard
    };
    let world = World::with(&Setup::lossless(1), datagrams(2, COUNT), |_, service| service, change);
    let outcome = world.run();
    let (created, ended) = (outcome.sum.flows_created, outcome.sum.flows_ended);
    assert_eq!(created, 2);
    let live = created - ended + 1;
    assert_eq!(outcome.violations, [Violation::Flows { created, ended, live }]);
}

#[test]
fn a_flow_that_is_lost_from_its_table_is_named() {
    let outcome = run_misdeed(Deed::ForgetFlow);
    let (created, ended) = (outcome.sum.flows_created, outcome.sum.flows_ended);
    // Three, and the lost one again with its next packet.
    assert_eq!(created, 4);
    let live = created - ended - 1;
    assert_eq!(outcome.violations, [Violation::Flows { created, ended, live }]);
}

#[test]
fn a_counter_that_goes_back_is_named() {
    let mut world = World::open(&Setup::lossless(1), datagrams(1, COUNT));
    world.deliver();
    world.poll(0);
    let earlier = world.lanes[0].counters().sample();
    world.poll(0);
    let later = world.lanes[0].counters().sample();
    let (from, to) = (later.received, earlier.received);
    assert!(from > to);
    let (earlier, later) = (std::slice::from_ref(&earlier), std::slice::from_ref(&later));
    let found = check_monotone(later, earlier);
    let back = Violation::NotMonotone { lane: 0, counter: "received", from, to };
    assert!(found.contains(&back), "{found:?}");
    assert_eq!(check_monotone(earlier, later), []);
}
