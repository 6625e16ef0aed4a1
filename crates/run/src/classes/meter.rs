//! Tells the packets of a batch apart, lets those of the priority class go first, and measures some batches.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{BURST, Mbuf, Network};
use rheostat_state::FlowHash;
use rheostat_steer::policy::{Class, Latency};
use rheostat_steer::{ClassSubject, MAX_CLASSES};

use super::figures::MomentSample;
use super::{ClassFigures, Classes, SAMPLE};
use crate::lane::{Batch, PacketInfo};

/// The devices that know when their packets arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing(pub(crate) [u64; 4]);

impl Timing {
    /// Notes whether a device knows.
    pub(crate) fn set(&mut self, device: DeviceId, knows: bool) {
        self.0[device.index() / 64] |= u64::from(knows) << (device.index() % 64);
    }

    /// Whether any device knows.
    fn knows_any(self) -> bool {
        self.0 != [0; 4]
    }

    /// When a packet arrived, if that is known. One that goes through the lane again did so long ago.
    #[inline]
    fn arrival(self, packet: &Mbuf) -> Option<Time> {
        let device = packet.device().index();
        let knows = self.0[device / 64 % 4] >> (device % 64) & 1 != 0;
        (knows && !packet.is_reinjected()).then(|| packet.timestamp())
    }
}

/// A packet of a batch that is measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    rule: u8,
    /// Whether it was processed after all: not if its flow or shard is elsewhere.
    is_done: bool,
    arrival: Option<Time>,
    hash: FlowHash,
}

/// Tells packets of one lane apart, and measures them.
#[derive(Debug)]
pub(crate) struct ClassMeter {
    classes: Arc<Classes>,
    figures: Arc<ClassFigures>,
    timing: Timing,
    batches: u32,
    /// By class, when the packet before arrived.
    last: [Option<Time>; Class::ALL.len()],
    /// Of the batch at hand, the rule of each packet.
    rules: Vec<u8>,
    /// Of the batch at hand, packets by class.
    counts: [u64; Class::ALL.len()],
    /// The same packets, if they are measured.
    measured: Vec<Measured>,
    /// From when to when they were processed.
    span: (Time, Time),
    first: Vec<bool>,
    scratch: Vec<u8>,
}

impl ClassMeter {
    pub(crate) fn new(classes: Arc<Classes>, timing: Timing) -> ClassMeter {
        let figures = Arc::new(ClassFigures::new(classes.rules.rules().len()));
        ClassMeter {
            classes,
            figures,
            timing,
            batches: 0,
            last: [None; 2],
            rules: Vec::new(),
            counts: [0; 2],
            measured: Vec::new(),
            span: (Time::ZERO, Time::ZERO),
            first: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// What was measured, to read while the lane runs.
    pub(crate) fn figures(&self) -> Arc<ClassFigures> {
        self.figures.clone()
    }

    /// The class of a packet.
    pub(crate) fn class_of(&self, packet: &Mbuf, info: &PacketInfo) -> Class {
        self.classes.rules.class_of(usize::from(self.rule_of(packet, info)))
    }

    /// The class of a flow, as far as it does not depend on its packets.
    pub(crate) fn class_of_flow(&self, key: &rheostat_packet::FlowKey) -> Class {
        let rules = &self.classes.rules;
        rules.class_of(rules.find(ClassSubject { device: DeviceId::NONE, key, dscp: 0 }))
    }

    #[inline]
    fn rule_of(&self, packet: &Mbuf, info: &PacketInfo) -> u8 {
        let rules = &self.classes.rules;
        let dscp = if rules.reads_dscp() { dscp_of(packet, info) } else { 0 };
        let key = info.key();
        rules.find(ClassSubject { device: packet.device(), key: &key, dscp }) as u8
    }

    /// Looks at a batch that is about to be processed, and lets its priority packets go first if they may. Returns whether it is
    /// measured: then [`ClassMeter::stop`] and [`ClassMeter::commit`] follow.
    #[inline]
    pub(crate) fn start(&mut self, batch: &mut Batch, may_reorder: bool) -> bool {
        self.batches = self.batches.wrapping_add(1);
        let is_measured = self.batches.is_multiple_of(SAMPLE);
        if self.classes.rules.rules().is_empty() && !is_measured {
            let count = batch.len() as u64;
            self.figures.rules[0].packets.add(count);
            self.figures.classes[Class::Regular.index()].packets.add(count);
            if let Some(at) = batch.parts().0.last().and_then(|last| self.timing.arrival(last)) {
                self.last[Class::Regular.index()] = Some(at);
            }
            return false;
        }
        self.classify(batch);
        if may_reorder && self.counts[Class::Priority.index()] > 0 {
            self.promote(batch);
        }
        if is_measured {
            self.note_arrivals(batch);
            self.span = (self.classes.clock.now(), Time::ZERO);
        } else {
            self.note_last_arrivals(batch);
        }
        is_measured
    }

    /// Finds the rule of each packet, and counts.
    fn classify(&mut self, batch: &mut Batch) {
        let mut rules = std::mem::take(&mut self.rules);
        rules.clear();
        let (packets, infos, _) = batch.parts();
        rules.extend(packets.iter().zip(infos).map(|(packet, info)| self.rule_of(packet, info)));
        let mut by_rule = [0_u32; MAX_CLASSES + 1];
        rules.iter().for_each(|rule| by_rule[usize::from(*rule)] += 1);
        self.counts = [0; Class::ALL.len()];
        for (rule, (figures, packets)) in self.figures.rules.iter().zip(by_rule).enumerate() {
            figures.packets.add(packets.into());
            self.counts[self.classes.rules.class_of(rule).index()] += u64::from(packets);
        }
        for (class, packets) in self.figures.classes.iter().zip(self.counts) {
            class.packets.add(packets);
        }
        self.rules = rules;
    }

    /// Lets priority packets pass others, within pieces of a burst: so a packet is passed by fewer than [`BURST`]. None passes an
    /// older one of its flow.
    fn promote(&mut self, batch: &mut Batch) {
        let ClassMeter { classes, rules, first, scratch, .. } = self;
        let is_priority = |rule: &u8| classes.rules.class_of((*rule).into()) == Class::Priority;
        if !rules.iter().any(is_priority) {
            return;
        }
        first.clear();
        first.extend(rules.iter().map(is_priority));
        let may_split = classes.rules.may_split_flows();
        for start in (0..rules.len()).step_by(BURST) {
            let end = rules.len().min(start + BURST);
            if may_split {
                keep_flows_in_order(&mut first[start..end], &batch.found()[start..end]);
            }
            if first[start..end].is_sorted_by(|a, b| a >= b) {
                continue;
            }
            batch.bring_first(start, &first[start..end]);
            partition(&mut rules[start..end], &first[start..end], scratch);
        }
    }

    /// Notes when the last packet of each class arrived, of a batch that is not measured.
    fn note_last_arrivals(&mut self, batch: &mut Batch) {
        let (packets, _, _) = batch.parts();
        let mut wanted = self.counts.map(|count| count > 0);
        // Most often the last packet or the last two are all that is looked at.
        for (packet, &rule) in packets.iter().zip(&self.rules).rev() {
            let class = self.classes.rules.class_of(rule.into()).index();
            if !wanted[class] {
                continue;
            }
            if let Some(at) = self.timing.arrival(packet) {
                self.last[class] = Some(at);
                wanted[class] = false;
                if wanted == [false; Class::ALL.len()] {
                    return;
                }
            } else if !self.timing.knows_any() {
                return;
            }
        }
    }

    /// Notes when packets of a batch that is measured arrived, and which there are.
    fn note_arrivals(&mut self, batch: &mut Batch) {
        self.measured.clear();
        let mut gaps = [MomentSample::default(); Class::ALL.len()];
        let (packets, infos, _) = batch.parts();
        for ((packet, info), &rule) in packets.iter().zip(infos.iter()).zip(&self.rules) {
            let class = self.classes.rules.class_of(rule.into()).index();
            let arrival = self.timing.arrival(packet);
            if let Some(at) = arrival
                && let Some(before) = self.last[class].replace(at)
            {
                gaps[class].add(at.as_nanos().abs_diff(before.as_nanos()) as f64);
            }
            self.measured.push(Measured { rule, is_done: true, arrival, hash: info.hash });
        }
        for (class, gaps) in self.figures.classes.iter().zip(gaps) {
            class.gaps.add_all(gaps);
        }
    }

    /// The batch was processed, but for packets that will be forgotten.
    pub(crate) fn stop(&mut self) {
        self.span.1 = self.classes.clock.now();
    }

    /// A packet of the batch was not processed, and will be presented again, here or elsewhere. Returns its class.
    pub(crate) fn forget(&mut self, packet: &Mbuf, info: &PacketInfo) -> Class {
        let mut measured = self.measured.iter_mut();
        if let Some(known) = measured.find(|known| known.is_done && known.hash == info.hash) {
            known.is_done = false;
        }
        let rule = self.rule_of(packet, info);
        self.figures.rules[usize::from(rule)].deferred.increment();
        self.classes.rules.class_of(rule.into())
    }

    /// Takes in what was measured of the batch.
    pub(crate) fn commit(&mut self) {
        let (start, end) = self.span;
        let (took, count) = (end.since(start).as_nanos() as u64, self.measured.len() as u64);
        let mut found = [false; Class::ALL.len()];
        for (place, packet) in (0..).zip(&self.measured) {
            let class = self.classes.rules.class_of(packet.rule.into()).index();
            found[class] = true;
            let Some(arrival) = packet.arrival.filter(|_| packet.is_done) else { continue };
            self.figures.knows_arrivals.store(true, Ordering::Relaxed);
            let waited = start.since(arrival).as_nanos() as u64 + took * place / count;
            self.figures.classes[class].waits.record(waited);
            let latency = match self.classes.objectives.latency {
                Latency::Waiting => waited,
                Latency::Total => end.since(arrival).as_nanos() as u64,
            };
            self.figures.rules[usize::from(packet.rule)].latency.record(latency);
        }
        for (class, _) in self.figures.classes.iter().zip(found).filter(|(_, found)| *found) {
            class.services.add(count as f64, took as f64 / count as f64);
        }
        self.measured.clear();
    }
}

/// Lets no packet pass an older one of its flow that stays.
fn keep_flows_in_order(first: &mut [bool], infos: &[PacketInfo]) {
    for place in 1..first.len() {
        let stays = |older: usize| !first[older] && infos[older].hash == infos[place].hash;
        if first[place] && (0..place).any(stays) {
            first[place] = false;
        }
    }
}

/// Brings those items first of which `first` says so; both parts keep their order.
pub(crate) fn partition<T: Copy>(items: &mut [T], first: &[bool], scratch: &mut Vec<T>) {
    scratch.clear();
    let mut front = 0;
    for place in 0..items.len() {
        if first[place] {
            items[front] = items[place];
            front += 1;
        } else {
            scratch.push(items[place]);
        }
    }
    items[front..].copy_from_slice(scratch);
}

/// The code point of a packet's differentiated service; 0 without IP.
fn dscp_of(packet: &Mbuf, info: &PacketInfo) -> u8 {
    let l3 = packet.data().get(usize::from(info.headers.l3)..).unwrap_or_default();
    match (info.headers.network, l3) {
        (Network::Ipv4, [_, service, ..]) => service >> 2,
        (Network::Ipv6, [high, low, ..]) => (high << 4 | low >> 4) >> 2,
        _ => 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::net::Ipv4Addr;

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
            let ports =
                ClassRule { ports: vec![53..=53], ..ClassRule::any("names", Class::Priority) };
            let dscps =
                ClassRule { dscps: vec![46], ..ClassRule::any("expedited", Class::Priority) };
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
            let udp = Transport::Udp { ports: (flow, port) };
            let mut frame =
                FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(8)).to_vec();
            frame[1] = dscp << 2;
            let mut packet = self.cache.alloc_from(&frame).expect("a buffer");
            packet.set_link(rheostat_packet::LinkType::Raw);
            packet.set_timestamp(Time::from_nanos(at));
            packet.set_device(DeviceId(0));
            let headers = Headers::parse(&packet).expect("a packet");
            let placement = Placement {
                key: FlowKey::v4((from, flow), (to, port), 17, 0),
                hash: FlowHash(flow.into()),
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
}
