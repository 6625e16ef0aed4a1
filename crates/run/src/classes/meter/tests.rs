use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_base::ShardId;
use rheostat_base::clock::VirtualClock;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{FlowKey, Headers, Mempool, MempoolConfig, PoolCache};
use rheostat_steer::policy::Objectives;
use rheostat_steer::{ClassRule, ClassRules, Side};

use super::*;
use crate::lane::{HandoffPacket, PacketKind, Placement};

struct Fixture {
    meter: ClassMeter,
    clock: VirtualClock,
    cache: PoolCache,
}

impl Fixture {
    /// Packets to port 53 are of the priority class, and those of code point 46.
    fn new() -> Fixture {
        let pool = MempoolConfig { buffers: 256, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).expect("memory for packets");
        let clock = VirtualClock::new();
        let ports = ClassRule { ports: vec![53..=53], ..ClassRule::any("names", Class::Priority) };
        let dscps = ClassRule { dscps: vec![46], ..ClassRule::any("expedited", Class::Priority) };
        let classes = Classes {
            rules: ClassRules::new(vec![ports, dscps]),
            objectives: Objectives::NONE,
            clock: Arc::new(clock.clone()),
        };
        let mut timing = Timing::default();
        timing.set(DeviceId(0), true);
        let meter = ClassMeter::new(Arc::new(classes), timing);
        Fixture { meter, clock, cache: PoolCache::new(pool) }
    }

    /// A packet of flow `flow`, to this port, with this code point, which arrived at `at` nanoseconds.
    fn packet(&mut self, (flow, port, dscp): (u16, u16, u8), at: u64) -> HandoffPacket {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
        let key = FlowKey::v4((from, flow), (to, port), 17, 0);
        self.packet_of(key, dscp, at)
    }

    /// A packet of the flow with this key, with this code point, which arrived at `at` nanoseconds.
    fn packet_of(&mut self, key: FlowKey, dscp: u8, at: u64) -> HandoffPacket {
        let ports = (key.first_port(), key.second_port());
        let udp = Transport::Udp { ports };
        let mut frame =
            FrameBuilder::new(key.first(), key.second(), udp, Payload::Pattern(8)).to_vec();
        match key.family() {
            Family::V4 => frame[1] = dscp << 2,
            Family::V6 => {
                frame[0] |= dscp >> 2;
                frame[1] |= dscp << 6;
            }
        }
        let mut packet = self.cache.alloc_from(&frame).expect("a buffer");
        packet.set_link(rheostat_packet::LinkType::Raw);
        packet.set_timestamp(Time::from_nanos(at));
        packet.set_device(DeviceId(0));
        let headers = Headers::parse(&packet).expect("a packet");
        let placement = Placement {
            key,
            hash: FlowHash(ports.0.into()),
            shard: ShardId(0),
            side: Side::Inside,
            forward: true,
            kind: PacketKind::Flow,
            is_usual: true,
        };
        let info = PacketInfo::of(headers, Time::ZERO, &placement);
        HandoffPacket { packet, info }
    }

    /// The flows of a batch as it is processed.
    fn order(&mut self, packets: &[(u16, u16, u8)]) -> Vec<u16> {
        let mut batch = Batch::default();
        for packet in packets {
            batch.push(self.packet(*packet, 0));
        }
        self.meter.start(&mut batch, true);
        let flows = batch.iter().map(|info| info.key().first_port()).collect();
        for ((packet, info), flow) in batch.drain().zip(&flows) {
            let flow: &u16 = flow;
            assert_eq!(info.key().first_port(), *flow, "handles and what is known of them");
            self.cache.free(packet);
        }
        flows
    }
}

#[test]
fn priority_packets_go_first_and_both_parts_keep_their_order() {
    let mut fixture = Fixture::new();
    let packets = [(1, 80, 0), (2, 53, 0), (3, 80, 0), (4, 80, 46), (5, 80, 0), (6, 53, 0)];
    assert_eq!(fixture.order(&packets), [2, 4, 6, 1, 3, 5]);
    assert_eq!(fixture.order(&[(1, 80, 0), (3, 80, 0)]), [1, 3]);
    assert_eq!(fixture.order(&[(2, 53, 0), (3, 80, 0)]), [2, 3]);
}

#[test]
fn no_packet_passes_an_older_one_of_its_flow() {
    let mut fixture = Fixture::new();
    let packets = [(1, 80, 0), (2, 80, 0), (1, 80, 46), (3, 80, 46), (2, 80, 46)];
    assert_eq!(fixture.order(&packets), [3, 1, 2, 1, 2]);
}

#[test]
fn a_batch_is_told_apart_as_its_packets_are_one_by_one() {
    let mut fixture = Fixture::new();
    let mut state = 5_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % bound
    };
    let (mut by_rule, mut moved) = ([0; 3], 0);
    for round in 0..200 {
        // Of IPv4, of IPv6 and of both; few of the priority class or many.
        let (families, share) = (round % 3, 1 + round % 5);
        let mut batch = Batch::default();
        let mut numbers = Vec::new();
        for number in 0..1 + below(80) as u16 {
            let ports = (below(50) as u16, if below(8) < share { 53 } else { 80 });
            let dscp = if below(16) < share { 46 } else { 8 };
            let is_v6 = families == 1 || families == 2 && below(2) == 0;
            let key = if is_v6 {
                let (from, to) = (Ipv6Addr::from_bits(1), Ipv6Addr::from_bits(2));
                FlowKey::v6((from, ports.0), (to, ports.1), 17, 0)
            } else {
                let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
                FlowKey::v4((from, ports.0), (to, ports.1), 17, 0)
            };
            let mut packet = fixture.packet_of(key, dscp, 0);
            packet.info.now = Time::from_nanos(number.into());
            let rule = fixture.meter.rule_of(&packet.packet, &packet.info);
            let expected = if ports.1 == 53 { 0 } else { 2 - u8::from(dscp == 46) };
            assert_eq!(rule, expected);
            by_rule[usize::from(rule)] += 1;
            numbers.push((number, rule < 2, packet.info.hash));
            batch.push(packet);
        }
        for burst in numbers.chunks_mut(BURST) {
            for place in 1..burst.len() {
                let stays =
                    |&(_, first, hash): &(u16, bool, FlowHash)| !first && hash == burst[place].2;
                if burst[..place].iter().any(stays) {
                    burst[place].1 = false;
                }
            }
            moved += usize::from(!burst.is_sorted_by_key(|(_, first, _)| !first));
            burst.sort_by_key(|(_, first, _)| !first);
        }
        fixture.meter.start(&mut batch, true);
        let found: Vec<_> = batch.iter().map(|info| info.now.as_nanos() as u16).collect();
        let expected: Vec<_> = numbers.iter().map(|(number, ..)| *number).collect();
        assert_eq!(found, expected, "round {round}");
        for (packet, info) in batch.drain() {
            let headers = Headers::parse(&packet).expect("a packet");
            assert_eq!(headers, info.headers, "handles and what is known of them");
            fixture.cache.free(packet);
        }
    }
    assert!(moved > 100, "{moved}");
    let counted: Vec<u64> = fixture.meter.figures.rules().map(|rule| rule.packets).collect();
    assert_eq!(counted, by_rule);
    let counted = |class: Class| fixture.meter.figures.classes[class.index()].packets.get();
    assert_eq!(counted(Class::Priority), by_rule[0] + by_rule[1]);
    assert_eq!(counted(Class::Regular), by_rule[2]);
}

#[test]
fn a_packet_is_passed_by_fewer_than_a_burst() {
    let mut fixture = Fixture::new();
    let mut packets = vec![(1, 80, 0)];
    packets.extend((0..100).map(|flow| (1_000 + flow, 53, 0)));
    let order = fixture.order(&packets);
    assert_eq!(order.iter().position(|flow| *flow == 1), Some(BURST - 1));
}

#[test]
fn waits_are_from_arrival_to_the_turn_of_a_packet() {
    let mut fixture = Fixture::new();
    let mut batches = 0;
    loop {
        let mut batch = Batch::default();
        for (flow, port) in [(1, 80), (2, 80), (3, 53), (4, 80)] {
            let at = 1_000_000 * batches + 50 * u64::from(flow);
            batch.push(fixture.packet((flow, port, 0), at));
        }
        let start = Time::from_nanos(1_000_000 * batches + 1_000);
        fixture.clock.advance_to(start);
        let is_measured = fixture.meter.start(&mut batch, true);
        batches += 1;
        let last = batch.iter().next_back().copied().expect("four packets");
        let deferred = batch.drain().map(|(packet, _)| packet).last().expect("four packets");
        if !is_measured {
            continue;
        }
        fixture.clock.advance_to(start + std::time::Duration::from_nanos(400));
        fixture.meter.stop();
        assert_eq!(fixture.meter.forget(&deferred, &last), Class::Regular);
        fixture.meter.commit();
        break;
    }
    let figures = fixture.meter.figures();
    let rules: Vec<_> = figures.rules().collect();
    let waits = |rule: usize| rules[rule].latency.bins().collect::<Vec<_>>();
    let near = |waits: Vec<(u64, u64)>, expected: &[u64]| {
        assert_eq!(waits.len(), expected.len(), "{waits:?}");
        for ((value, count), expected) in waits.into_iter().zip(expected) {
            assert!(count == 1 && value.abs_diff(*expected) <= expected / 30, "{value}");
        }
    };
    // The third goes first: it arrived 850 ns before. Then the others, which arrived 950 and 900 ns before.
    near(waits(0), &[850]);
    near(waits(2), &[1_050, 1_100]);
    assert_eq!(rules[2].latency.count(), 2, "the last was not processed");
    assert_eq!(rules[0].packets, batches);
    assert_eq!(rules[2].packets, 3 * batches - 1, "it is counted when it is");
    assert_eq!(u64::from(SAMPLE), batches);
    // The first gap of each class is to a packet of the batch before, which was not measured.
    let gaps = |class: Class| figures.classes[class.index()].gaps.sample();
    assert_eq!((gaps(Class::Priority).count, gaps(Class::Priority).sum), (1.0, 1_000_000.0));
    assert_eq!((gaps(Class::Regular).count, gaps(Class::Regular).sum), (3.0, 1_000_000.0));
}
