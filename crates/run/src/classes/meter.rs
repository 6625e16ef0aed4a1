//! Tells the packets of a batch apart, lets those of the priority class go first, and measures some batches.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{BURST, Family, Mbuf, Network};
use rheostat_state::FlowHash;
use rheostat_steer::policy::{Class, Latency};
use rheostat_steer::{ClassBurst, ClassSubject, RulePlaces};

use super::figures::MomentSample;
use super::{ClassFigures, Classes, SAMPLE};
use crate::lane::{Batch, PacketInfo, Places, partition};

/// The devices that know when their packets arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    devices: [u64; 4],
    /// Whether any device knows.
    knows_any: bool,
}

impl Timing {
    /// Notes whether a device knows.
    pub(crate) fn set(&mut self, device: DeviceId, knows: bool) {
        self.devices[device.index() / 64] |= u64::from(knows) << (device.index() % 64);
        self.knows_any |= knows;
    }

    /// When a packet arrived, if that is known. One that goes through the lane again did so long ago.
    #[inline]
    fn arrival(&self, packet: &Mbuf) -> Option<Time> {
        if !self.knows_any {
            return None;
        }
        let device = packet.device().index();
        let knows = self.devices[device / 64 % 4] >> (device % 64) & 1 != 0;
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
    /// Of the burst at hand, what rules look at.
    burst: ClassBurst,
    /// Of the burst at hand, the packets of each rule.
    found: RulePlaces,
    /// Of the batch at hand, the rule of each packet, if it is measured.
    rules: Vec<u8>,
    /// The same packets.
    measured: Vec<Measured>,
    /// From when to when they were processed.
    span: (Time, Time),
    scratch: Vec<u8>,
}

/// Fewer packets than this are told apart one by one.
const FEW: usize = 4;

const _: () = assert!(BURST <= ClassBurst::MOST);

impl ClassMeter {
    pub(crate) fn new(classes: Arc<Classes>, timing: Timing) -> ClassMeter {
        let figures = Arc::new(ClassFigures::new(classes.rules.rules().len()));
        ClassMeter {
            classes,
            figures,
            timing,
            batches: 0,
            last: [None; 2],
            burst: ClassBurst::default(),
            found: RulePlaces::default(),
            rules: Vec::new(),
            measured: Vec::new(),
            span: (Time::ZERO, Time::ZERO),
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
        self.rules.clear();
        for start in (0..batch.len()).step_by(BURST) {
            let end = batch.len().min(start + BURST);
            let (packets, infos, _) = batch.parts();
            let (packets, infos) = (&packets[start..end], &infos[start..end]);
            self.find(packets, infos);
            let priority = self.count(packets.len());
            if is_measured {
                self.note_rules(start..end);
            } else if self.timing.knows_any {
                self.note_last_arrivals(packets, priority);
            }
            if may_reorder && !priority.is_empty() {
                self.promote(batch, start..end, priority, is_measured);
            }
        }
        if is_measured {
            self.note_arrivals(batch);
            self.span = (self.classes.clock.now(), Time::ZERO);
        }
        is_measured
    }

    /// Finds the rules of these packets, a burst at most.
    #[inline(never)]
    fn find(&mut self, packets: &[Mbuf], infos: &[PacketInfo]) {
        let all = Places::first(infos.len());
        if self.classes.rules.rules().is_empty() {
            self.found[0] = all.bits();
            return;
        }
        if infos.len() < FEW {
            self.found = RulePlaces::default();
            return self.find_each(packets, infos, all);
        }
        let ClassMeter { classes: rules, burst, found, .. } = self;
        let rules = &rules.rules;
        let mut v6 = 0;
        burst.set_keys(infos, 0, |info| {
            v6 |= info.v6_bit();
            info.first_words()
        });
        if v6 != 0 {
            set_keys_of_v6(burst, infos);
        }
        if rules.may_split_flows() {
            let origin =
                |(packet, info): (&Mbuf, &PacketInfo)| (packet.device(), dscp_of(packet, info));
            burst.set_origins(packets.iter().zip(infos).map(origin));
        }
        rules.find_all(burst, all.bits(), |place| infos[place].key(), found);
    }

    /// Counts packets by rule and class, `count` in all. Returns those of the priority class.
    #[inline]
    fn count(&mut self, count: usize) -> Places {
        let ClassMeter { classes, figures, found, .. } = self;
        for (figures, &places) in figures.rules.iter().zip(&*found) {
            if places != 0 {
                figures.packets.add(places.count_ones().into());
            }
        }
        let priority = Places::from_bits(classes.rules.priority_of(found));
        let mut of_regular = count as u64;
        if !priority.is_empty() {
            let of_priority = priority.count() as u64;
            figures.classes[Class::Priority.index()].packets.add(of_priority);
            of_regular -= of_priority;
        }
        figures.classes[Class::Regular.index()].packets.add(of_regular);
        priority
    }

    /// Notes the rule of each of the packets at these places of the batch.
    #[cold]
    fn note_rules(&mut self, places: Range<usize>) {
        let ClassMeter { rules, found, .. } = self;
        rules.resize(places.end, 0);
        for (rule, &places_of) in (0..).zip(&*found) {
            Places::from_bits(places_of).for_each(|place| rules[places.start + place] = rule);
        }
    }

    /// Finds the rules of these packets one by one.
    #[inline(never)]
    fn find_each(&mut self, packets: &[Mbuf], infos: &[PacketInfo], places: Places) {
        for place in places {
            let rule = self.rule_of(&packets[place], &infos[place]);
            self.found[usize::from(rule)] |= 1 << place;
        }
    }

    /// Lets packets pass others, within these places, a burst at most: so a packet is passed by fewer than [`BURST`].
    /// None passes an older one of its flow.
    #[inline(never)]
    fn promote(
        &mut self,
        batch: &mut Batch,
        places: Range<usize>,
        mut first: Places,
        is_measured: bool,
    ) {
        if self.classes.rules.may_split_flows() {
            first = keep_flows_in_order(first, &batch.found()[places.clone()]);
        }
        if first.lead() {
            return;
        }
        batch.bring_first(places.clone(), first);
        if is_measured {
            partition(&mut self.rules[places], first, &mut self.scratch);
        }
    }

    /// Notes when the last packet of each class arrived, of a burst that is not measured.
    #[inline]
    fn note_last_arrivals(&mut self, packets: &[Mbuf], priority: Places) {
        let regular = Places::first(packets.len()).without(priority);
        for (class, mut left) in [(Class::Priority, priority), (Class::Regular, regular)] {
            // Most often the last is all that is looked at.
            while let Some(place) = left.last() {
                if let Some(at) = self.timing.arrival(&packets[place]) {
                    self.last[class.index()] = Some(at);
                    break;
                }
                left.remove(place);
            }
        }
    }

    /// Notes when packets of a batch that is measured arrived, and which there are.
    fn note_arrivals(&mut self, batch: &mut Batch) {
        let ClassMeter { classes, timing, last, rules, measured, .. } = self;
        let mut gaps = [MomentSample::default(); Class::ALL.len()];
        let (packets, infos, _) = batch.parts();
        let packets = packets.iter().zip(infos.iter()).zip(&*rules);
        measured.clear();
        measured.extend(packets.map(|((packet, info), &rule)| {
            let arrival = timing.arrival(packet);
            if let Some(at) = arrival {
                let class = classes.rules.class_of(rule.into()).index();
                if let Some(before) = last[class].replace(at) {
                    gaps[class].add(at.as_nanos().abs_diff(before.as_nanos()) as f64);
                }
            }
            Measured { rule, is_done: true, arrival, hash: info.hash }
        }));
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
        let ClassMeter { classes, figures, measured, span: (start, end), .. } = self;
        let (took, count) = (end.since(*start).as_nanos() as u64, measured.len() as u64);
        let is_total = classes.objectives.latency == Latency::Total;
        let (mut found, mut knows_arrivals) = (0_u32, false);
        for (place, packet) in (0..).zip(&*measured) {
            found |= 1 << packet.rule;
            let Some(arrival) = packet.arrival.filter(|_| packet.is_done) else { continue };
            knows_arrivals = true;
            let class = classes.rules.class_of(packet.rule.into());
            let waited = start.since(arrival).as_nanos() as u64 + took * place / count;
            figures.classes[class.index()].waits.record(waited);
            let latency = if is_total { end.since(arrival).as_nanos() as u64 } else { waited };
            figures.rules[usize::from(packet.rule)].latency.record(latency);
        }
        if knows_arrivals {
            figures.knows_arrivals.store(true, Ordering::Relaxed);
        }
        let rules = Places::from_bits(found).map(|rule| classes.rules.class_of(rule).index());
        let mut counted = [false; Class::ALL.len()];
        rules.for_each(|class| counted[class] = true);
        for (class, _) in figures.classes.iter().zip(counted).filter(|(_, counted)| *counted) {
            class.services.add(count as f64, took as f64 / count as f64);
        }
        measured.clear();
    }
}

/// Takes the keys of packets of which some are of IPv6. Apart, so that others are not looked at for what they do not have.
#[inline(never)]
fn set_keys_of_v6(burst: &mut ClassBurst, infos: &[PacketInfo]) {
    let mut v6 = Places::default();
    for (place, _) in infos.iter().enumerate().filter(|(_, info)| info.family() == Family::V6) {
        v6.add(place);
    }
    burst.set_keys(infos, v6.bits(), |info| match info.family() {
        Family::V4 => info.first_words(),
        Family::V6 => [0, info.last_word()],
    });
}

/// Lets no packet pass an older one of its flow that stays: those that remain go first.
fn keep_flows_in_order(mut first: Places, infos: &[PacketInfo]) -> Places {
    for place in first {
        let mut older = Places::first(place).without(first);
        if older.any(|older| infos[older].hash == infos[place].hash) {
            first.remove(place);
        }
    }
    first
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
mod tests;
