//! The lane's part when single flows leave it for an offloading lane, or come to it as one: see [`crate::offload`].

use rheostat_base::{DropReason, LaneId, ShardId, Time};
use rheostat_capture::trace::Step;
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_state::{DetachedFlow, FlowHash};
use rheostat_steer::policy::{Class, Load};

use super::classes::ClassState;
use super::deferred::Deferral;
use super::output::Departures;
use super::{Batch, HandoffPacket, LinkPacket, Output};
use crate::classes::FlowName;
use crate::handoff::{Control, Handoff};
use crate::load::ShardLoads;
use crate::migrate::{Hold, Ownership, Place};
use crate::offload::{FlowNumber, Home, HopMeter, OffloadedFlows, Picked, Picks};
use crate::service::Service;
use crate::shard_set::ShardSet;
use crate::stages::StageSwitch;

/// Flows that leave in one poll at most.
const BEGINS: usize = 8;
/// Bursts from one that a flow is picked from to the next, unless all packets may be of flows away.
const BURSTS: u32 = 4;
/// Packets after which the shares of flows away and at home are aged.
const AGEING: u64 = 1 << 16;

/// The lane's part in offloading.
pub(super) struct OffloadState {
    /// The lane to which flows go. `None` where none leave.
    to: Option<LaneId>,
    /// The lane to which flows shall go, once all flows that are away are home.
    wanted: Option<LaneId>,
    /// Hundredths of the packets that may be of flows that are away.
    share: u8,
    /// Whether no more flows leave.
    has_ended: bool,
    pub(super) home: Home<HandoffPacket>,
    /// Packets of shards that wait for flows to come home.
    pub(super) stalled: Hold,
    /// Flows that are to leave.
    candidates: Vec<(ShardId, FlowHash, FlowKey)>,
    /// Flows of other lanes.
    flows: OffloadedFlows,
    /// Packets of these flows.
    batch: Batch,
    /// Flows that go home once what the lane had sent by then has left.
    recalled: Vec<(FlowNumber, Option<Departures>)>,
    /// Packets that have waited and were presented again in this poll.
    pub(super) resumed: usize,
    picking: Picking,
    hops: Option<Box<HopMeter>>,
    /// Which flows leave where a plan says how much of each shard is to.
    pub(super) picks: Picks,
}

/// Which flows leave when nobody names them: a packet of each few bursts is picked, so the more packets a flow has, the earlier it
/// leaves.
#[derive(Debug, Default)]
struct Picking {
    bursts: u32,
    /// Packets since about [`AGEING`] ago, and those of them that were of flows away.
    packets: u64,
    offloaded: u64,
}

impl OffloadState {
    /// Of lane `lane` of a run of so many shards, of which so many flows may be away, and which holds so many packets of each of
    /// them, and of each shard, at most.
    pub(super) fn new(lane: LaneId, shards: usize, flows: usize, capacity: usize) -> OffloadState {
        OffloadState {
            to: None,
            wanted: None,
            share: 0,
            has_ended: false,
            home: Home::new(lane, shards, flows, capacity),
            stalled: Hold::new(shards, capacity),
            candidates: Vec::new(),
            flows: OffloadedFlows::default(),
            batch: Batch::default(),
            recalled: Vec::new(),
            resumed: 0,
            picking: Picking::default(),
            hops: None,
            picks: Picks::default(),
        }
    }

    /// Times packets that come from the homes of their flows.
    pub(super) fn time_hops(&mut self, switch: StageSwitch) {
        self.hops = Some(Box::new(HopMeter::new(switch)));
    }

    #[inline]
    pub(super) fn hop_meter(&self) -> Option<&HopMeter> {
        self.hops.as_deref()
    }

    /// Packets that wait for flows to come home.
    pub(super) fn waiting(&self) -> usize {
        self.home.waiting() + self.stalled.len()
    }

    /// Flows of a shard that are away.
    pub(super) fn away_of(&self, shard: ShardId) -> usize {
        self.home.away_of(shard)
    }

    /// Takes the flows of a shard home, before it moves.
    pub(super) fn recall_shard(&mut self, shard: ShardId) {
        self.picks.give_up(shard);
        self.home.recall_shard(shard);
    }

    /// The name of a flow that is away, if a plan had it leave.
    pub(super) fn name_of(&self, number: u32) -> Option<FlowName> {
        self.picks.name_of(FlowNumber::from_bits(number))
    }

    /// Sets the lane to which flows shall go, and the hundredths of the packets that may be of flows away.
    pub(super) fn aim(&mut self, to: Option<LaneId>, share: u8) {
        self.wanted = to;
        self.share = share.min(100);
    }

    /// A flow is to leave at the end of the next poll.
    pub(super) fn add_candidate(&mut self, shard: ShardId, hash: FlowHash, key: FlowKey) {
        self.candidates.push((shard, hash, key));
    }

    /// Takes all flows home, and lets none leave any more.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.candidates.clear();
        self.picks.aim([]);
        self.home.recall_all();
    }

    /// Whether packets of flows that are here wait to be processed.
    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Whether flows of other lanes wait for what this one has sent to leave.
    pub(super) fn has_leaving_guests(&self) -> bool {
        !self.recalled.is_empty()
    }

    /// Whether flows of other lanes are here.
    #[inline]
    pub(super) fn has_guests(&self) -> bool {
        self.flows.0.len() > 0
    }

    /// Takes a packet of a flow that is here, or of one that is this lane's and that another could not process.
    pub(super) fn take(&mut self, me: LaneId, number: FlowNumber, mut placed: HandoffPacket) {
        if number.home() == me {
            placed.info.set_offloaded(None);
            self.home.take_refused(number, placed);
        } else {
            self.batch.push(placed);
        }
    }

    /// A flow has come.
    pub(super) fn begin(&mut self, number: FlowNumber, flow: DetachedFlow) {
        self.flows.0.begin(number, flow);
    }

    /// A flow is to go home, now that all its packets were processed or refused.
    pub(super) fn note_recalled(&mut self, number: FlowNumber) {
        self.recalled.push((number, None));
    }
}

/// Refuses packets of flows that are here though the service does not let any leave.
#[cold]
fn refuse_all(batch: &mut Batch, flows: &mut OffloadedFlows, out: &mut Output) {
    for (packet, &info) in batch.drain() {
        info.offloaded().into_iter().for_each(|number| flows.refuse(number));
        out.refuse(HandoffPacket { packet, info });
    }
}

/// The parts of a lane that offloading works with.
pub(super) struct OffloadParts<'a> {
    pub(super) service: &'a mut dyn Service,
    pub(super) shards: &'a mut ShardSet,
    pub(super) ownership: &'a Ownership,
    pub(super) handoff: &'a mut Handoff,
    pub(super) out: &'a mut Output,
    pub(super) classes: &'a mut Option<Box<ClassState>>,
    /// The part of the work on shards that goes to other lanes.
    pub(super) away: &'a ShardLoads,
    /// When the poll began.
    pub(super) polled: Time,
    /// The latest time of any packet.
    pub(super) latest: Time,
}

impl OffloadParts<'_> {
    /// Notes how many flows of the lane are away.
    pub(super) fn note_flows_away(&mut self, flows: usize) {
        self.shards.set_offloaded(flows > 0);
        self.out.counters().flows_away.set(flows as u64);
    }

    /// Notes what becomes of a packet, if it is traced.
    fn note_step(&mut self, packet: &Mbuf, step: Step) {
        if packet.mark() != 0 {
            self.out.mirror().note(packet, step);
        }
    }
}

impl OffloadState {
    /// Looks which flows are to be away, at the end of an epoch in which they had these parts of their shards' work.
    pub(super) fn pick_flows(&mut self, parts: &[(FlowName, Load)]) {
        let Picked { leave, recall } = self.picks.end_epoch(parts);
        recall.into_iter().for_each(|number| self.home.recall(number));
        if !self.has_ended && self.to.is_some() {
            let named = leave.into_iter().map(|FlowName { shard, hash, key }| (shard, hash, key));
            self.candidates.extend(named);
        }
    }

    /// Processes the packets that came from the homes of flows that are here.
    pub(super) fn process(&mut self, lane: &mut OffloadParts<'_>) {
        let OffloadState { batch, flows, hops, .. } = self;
        if let Some(meter) = hops {
            meter.note(batch.found());
        }
        // Other lanes have told them apart already; the order in which they came decides which are refused.
        let mut meter = lane.classes.as_mut().map(|classes| &mut classes.meter);
        let is_measured = meter.as_mut().is_some_and(|meter| meter.start(batch, false));
        match lane.service.offloading() {
            Some(service) => service.process_offloaded(batch, flows, lane.out),
            None => refuse_all(batch, flows, lane.out),
        }
        debug_assert!(batch.is_empty(), "a service leaves no packet behind");
        if let Some(classes) = lane.classes.as_mut().filter(|_| is_measured) {
            classes.meter.stop();
        }
        self.dispatch(lane);
        if let Some(classes) = lane.classes.as_mut().filter(|_| is_measured) {
            classes.meter.commit();
        }
    }

    /// Does with packets what their service could not.
    pub(super) fn dispatch(&mut self, lane: &mut OffloadParts<'_>) {
        let mut deferred = std::mem::take(lane.out.deferred());
        for number in deferred.recalls.drain(..) {
            self.home.recall(number);
        }
        self.send_away(&mut deferred.away, lane);
        for (deferral, placed) in deferred.packets.drain(..) {
            if let Some(classes) = lane.classes {
                classes.meter.forget(&placed.packet, &placed.info);
            }
            match deferral {
                Deferral::Stalled => self.hold_stalled(placed, lane),
                Deferral::Refused => {
                    let number = placed.info.offloaded().expect("only guests are refused");
                    lane.out.counters().refused.increment();
                    lane.note_step(&placed.packet, Step::Refused(number.home()));
                    lane.handoff.stage(number.home(), placed);
                }
            }
        }
        *lane.out.deferred() = deferred;
    }

    /// Lays packets of flows that are away aside for the offloading lane, but for those of flows that are on their way home.
    fn send_away(&mut self, away: &mut Vec<LinkPacket>, lane: &mut OffloadParts<'_>) {
        if away.is_empty() {
            return;
        }
        let to = self.to.expect("flows are away somewhere");
        self.note_away(away, to, lane);
        if self.home.has_returning() {
            let home = &self.home;
            let is_returning = |packet: &mut LinkPacket| {
                packet.offloaded().is_some_and(|number| !home.is_away(number))
            };
            let returning: Vec<_> = away.extract_if(.., is_returning).collect();
            returning.into_iter().for_each(|packet| self.hold_returning(packet.unpack(), lane.out));
        }
        let count = away.len() as u64;
        self.picking.offloaded += count;
        lane.out.counters().offloaded.add(count);
        for packet in &*away {
            lane.away.count(packet.shard(), packet.packet().len());
        }
        lane.handoff.stage_all(to, away);
    }

    /// Notes what becomes of packets of flows that are away, and takes those flows home of which one is of the priority class.
    fn note_away(&mut self, away: &[LinkPacket], to: LaneId, lane: &mut OffloadParts<'_>) {
        for packet in away {
            let Some(number) = packet.offloaded() else { continue };
            if let Some(classes) = lane.classes
                && classes.meter.forget(packet.packet(), &packet.info()) == Class::Priority
            {
                // Its class depends on more than its flow. It stays at home for a while.
                self.home.recall(number);
            }
            let is_away = self.home.is_away(number);
            let step = if is_away { Step::Offloaded(to) } else { Step::Waits };
            lane.note_step(packet.packet(), step);
        }
    }

    fn hold_returning(&mut self, placed: HandoffPacket, out: &mut Output) {
        let number = placed.info.offloaded().expect("a flow that is away has a number");
        if let Err(placed) = self.home.hold(number, placed) {
            out.drop(placed.packet, DropReason::HoldFull);
        }
    }

    fn hold_stalled(&mut self, placed: HandoffPacket, lane: &mut OffloadParts<'_>) {
        let shard = placed.info.shard;
        lane.note_step(&placed.packet, Step::Waits);
        if let Some(placed) = self.stalled.push(shard, placed, lane.polled) {
            lane.out.drop(placed.packet, DropReason::HoldFull);
        }
    }

    /// Picks a flow that may leave from a burst that is about to be processed.
    #[inline]
    pub(super) fn pick_flow(&mut self, batch: &Batch) {
        if self.to.is_some() && self.share > 0 {
            self.pick_flow_of_burst(batch);
        }
    }

    #[cold]
    fn pick_flow_of_burst(&mut self, batch: &Batch) {
        let OffloadState { picking, candidates, share, has_ended, .. } = self;
        let found = batch.found();
        picking.packets += found.len() as u64;
        picking.bursts = picking.bursts.wrapping_add(1);
        if picking.packets >= AGEING {
            picking.packets /= 2;
            picking.offloaded /= 2;
        }
        let has_room = picking.offloaded * 100 < u64::from(*share) * picking.packets;
        let spacing = if *share == 100 { 1 } else { BURSTS };
        if *has_ended || found.is_empty() || !has_room || !picking.bursts.is_multiple_of(spacing) {
            return;
        }
        let info = &found[(picking.bursts / spacing) as usize % found.len()];
        if info.has_key() && candidates.len() < BEGINS {
            candidates.push((info.shard, info.hash, info.key()));
        }
    }

    /// Whether flows are to leave or to come home.
    #[inline]
    pub(super) fn has_moves(&self) -> bool {
        let OffloadState { to, wanted, candidates, recalled, .. } = self;
        let is_idle = candidates.is_empty() && recalled.is_empty() && to == wanted;
        !is_idle || self.home.has_recalls()
    }

    /// At the end of a poll, when all packets of it were published and flushed: lets flows leave, recalls flows, and lets guests go
    /// home.
    #[cold]
    pub(super) fn move_flows(&mut self, lane: &mut OffloadParts<'_>) {
        self.return_guests(lane);
        if self.to != self.wanted {
            self.home.recall_all();
            if self.home.away() == 0 {
                self.to = self.wanted;
            }
        } else if !self.candidates.is_empty() && lane.out.counters().transmitting.get() == 0 {
            self.begin_flows(lane);
        }
        while let Some(number) = self.home.next_recall() {
            let to = self.to.expect("flows are away somewhere");
            lane.handoff.send_control(to, Control::Recall(number));
        }
    }

    /// Sends the flows home of which nothing is left here.
    fn return_guests(&mut self, lane: &mut OffloadParts<'_>) {
        let OffloadState { recalled, flows, .. } = self;
        for (_, departures) in &mut *recalled {
            departures.get_or_insert_with(|| lane.out.departures());
        }
        let has_left = |(_, departures): &mut (FlowNumber, Option<Departures>)| {
            departures.as_ref().is_some_and(|departures| lane.out.have_left(departures))
        };
        for (number, _) in recalled.extract_if(.., has_left) {
            let flow = flows.0.end(number);
            lane.handoff.send_control(number.home(), Control::Return { number, flow });
        }
    }

    /// Lets flows leave. Nothing that the lane has sent is left in a device.
    fn begin_flows(&mut self, lane: &mut OffloadParts<'_>) {
        let mut candidates = std::mem::take(&mut self.candidates);
        for (id, hash, key) in candidates.drain(..) {
            let Some(to) = self.to.filter(|_| !self.has_ended) else { continue };
            let stays =
                lane.ownership.place(id) == Place::Local && !lane.ownership.is_releasing(id);
            let Some(shard) = lane.shards.get_mut(id).filter(|_| stays) else { continue };
            let Some(number) = self.home.begin(id) else { continue };
            let name = FlowName { shard: id, hash, key };
            let service = lane.service.offloading();
            match service.and_then(|of| of.detach(shard, (hash, &key), number, lane.latest)) {
                None => {
                    self.home.cancel(number);
                    self.picks.note_stays(name);
                }
                Some(flow) => {
                    self.picks.note_left(name, number);
                    lane.out.counters().flows_offloaded.increment();
                    lane.handoff.send_control(to, Control::Offload { number, flow });
                }
            }
        }
        self.candidates = candidates;
        lane.note_flows_away(self.home.away());
    }
}

#[cfg(all(test, shuttle))]
mod exploration;
