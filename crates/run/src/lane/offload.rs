//! The lane's part when single flows leave it for an offloading lane, or come to it as one: see [`crate::offload`].

use rheostat_base::{DropReason, LaneId, ShardId};
use rheostat_capture::trace::Step;
use rheostat_packet::{BURST, FlowKey, Mbuf};
use rheostat_state::{DetachedFlow, FlowHash};
use rheostat_steer::policy::{Class, Load};

use super::deferred::Deferral;
use super::output::Departures;
use super::{Batch, HandoffPacket, Lane, LinkPacket, Output, Place};
use crate::classes::FlowName;
use crate::handoff::Control;
use crate::migrate::Hold;
use crate::offload::{FlowNumber, Home, HopMeter, OffloadedFlows, Picked, Picks};
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
    home: Home<HandoffPacket>,
    /// Packets of shards that wait for flows to come home.
    stalled: Hold,
    /// Flows that are to leave.
    candidates: Vec<(ShardId, FlowHash, FlowKey)>,
    /// Flows of other lanes.
    flows: OffloadedFlows,
    /// Packets of these flows.
    pub(super) batch: Batch,
    /// Flows that go home once what the lane had sent by then has left.
    recalled: Vec<(FlowNumber, Option<Departures>)>,
    /// Packets that have waited and were presented again in this poll.
    pub(super) resumed: usize,
    picking: Picking,
    hops: Option<Box<HopMeter>>,
    /// Which flows leave where a plan says how much of each shard is to.
    picks: Picks,
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

impl Lane {
    /// Lets flows of the lane leave for the lane `to`, so that they have up to `share` hundredths of the packets; for none, takes
    /// all home. Flows that are with another lane come home first. The flows are those of packets picked from each few bursts, so
    /// the more packets a flow has, the earlier it leaves; with a share of 100, of each burst.
    ///
    /// No flow leaves in a run without room for it ([`RuntimeConfig::offloading`](crate::RuntimeConfig::offloading)), and none
    /// whose service does not let it.
    pub fn offload_to(&mut self, to: Option<LaneId>, share: u8) {
        let can_leave = self.service.offloading().is_some() && to != Some(self.id);
        self.offload.wanted = to.filter(|_| can_leave);
        self.offload.share = share.min(100);
    }

    /// Lets this part of each shard's work leave for the lane `to`, and nothing of other shards: the heaviest flows, as the lane
    /// has measured them, adjusted every 100 ms. For no lane, takes all home. Flows leave only where classes are measured
    /// ([`LaneConfig::classes`](super::LaneConfig::classes)).
    pub fn offload_shares(
        &mut self,
        to: Option<LaneId>,
        shares: impl IntoIterator<Item = (ShardId, Load)>,
    ) {
        self.offload_to(to, 0);
        self.offload.picks.aim(shares);
    }

    /// Looks which flows are to be away, at the end of an epoch in which they had these parts of their shards' work.
    pub(super) fn pick_flows(&mut self, parts: &[(FlowName, Load)]) {
        let Picked { leave, recall } = self.offload.picks.end_epoch(parts);
        recall.into_iter().for_each(|number| self.offload.home.recall(number));
        if !self.offload.has_ended && self.offload.to.is_some() {
            let named = leave.into_iter().map(|FlowName { shard, hash, key }| (shard, hash, key));
            self.offload.candidates.extend(named);
        }
    }

    /// Lets one flow leave at the end of the next poll, whatever share of the packets is away, if there is such a flow and it may
    /// leave then.
    pub fn offload(&mut self, shard: ShardId, hash: FlowHash, key: &FlowKey) {
        self.offload.candidates.push((shard, hash, *key));
    }

    /// Takes the flows of one shard home. Others may leave again.
    pub fn recall(&mut self, shard: ShardId) {
        self.offload.recall_shard(shard);
    }

    /// Flows of the lane that are away, or on their way home.
    pub fn flows_away(&self) -> usize {
        self.offload.home.away()
    }

    /// Takes all flows home, and lets none leave any more.
    pub fn end_offloading(&mut self) {
        self.offload.has_ended = true;
        self.offload.candidates.clear();
        self.offload.picks.aim([]);
        self.offload.home.recall_all();
    }

    /// Whether flows of other lanes wait for what this one has sent to leave.
    pub(crate) fn has_leaving_guests(&self) -> bool {
        !self.offload.recalled.is_empty()
    }

    /// Processes the packets that came from the homes of flows that are here.
    pub(super) fn process_offloaded(&mut self) {
        let Lane {
            offload: OffloadState { batch, flows, hops, .. }, service, out, classes, ..
        } = self;
        if let Some(meter) = hops {
            meter.note(batch.found());
        }
        // Other lanes have told them apart already; the order in which they came decides which are refused.
        let mut meter = classes.as_mut().map(|classes| &mut classes.meter);
        let is_measured = meter.as_mut().is_some_and(|meter| meter.start(batch, false));
        match service.offloading() {
            Some(service) => service.process_offloaded(batch, flows, out),
            None => refuse_all(batch, flows, out),
        }
        debug_assert!(batch.is_empty(), "a service leaves no packet behind");
        if is_measured {
            self.stop_measuring();
        }
        self.dispatch_deferred();
        if is_measured {
            self.commit_measuring();
        }
    }

    /// Does with packets what their service could not.
    pub(super) fn dispatch_deferred(&mut self) {
        let mut deferred = std::mem::take(self.out.deferred());
        for number in deferred.recalls.drain(..) {
            self.offload.home.recall(number);
        }
        self.send_away(&mut deferred.away);
        for (deferral, placed) in deferred.packets.drain(..) {
            if let Some(classes) = &mut self.classes {
                classes.meter.forget(&placed.packet, &placed.info);
            }
            match deferral {
                Deferral::Stalled => self.hold_stalled(placed),
                Deferral::Refused => {
                    let number = placed.info.offloaded().expect("only guests are refused");
                    self.counters.refused.increment();
                    self.note_step(&placed.packet, Step::Refused(number.home()));
                    self.handoff.stage(number.home(), placed);
                }
            }
        }
        *self.out.deferred() = deferred;
        self.count_on_hold();
    }

    /// Lays packets of flows that are away aside for the offloading lane, but for those of flows that are on their way home.
    fn send_away(&mut self, away: &mut Vec<LinkPacket>) {
        if away.is_empty() {
            return;
        }
        let to = self.offload.to.expect("flows are away somewhere");
        self.note_away(away, to);
        let home = &mut self.offload.home;
        if home.has_returning() {
            let is_returning = |packet: &mut LinkPacket| {
                packet.offloaded().is_some_and(|number| !home.is_away(number))
            };
            let returning: Vec<_> = away.extract_if(.., is_returning).collect();
            returning.into_iter().for_each(|packet| self.hold_returning(packet.unpack()));
        }
        let count = away.len() as u64;
        self.offload.picking.offloaded += count;
        self.counters.offloaded.add(count);
        for packet in &*away {
            self.load.away.count(packet.shard(), packet.packet().len());
        }
        self.handoff.stage_all(to, away);
    }

    /// Notes what becomes of packets of flows that are away, and takes those flows home of which one is of the priority class.
    fn note_away(&mut self, away: &[LinkPacket], to: LaneId) {
        for packet in away {
            let Some(number) = packet.offloaded() else { continue };
            if let Some(classes) = &mut self.classes
                && classes.meter.forget(packet.packet(), &packet.info()) == Class::Priority
            {
                // Its class depends on more than its flow. It stays at home for a while.
                self.offload.home.recall(number);
            }
            let is_away = self.offload.home.is_away(number);
            let step = if is_away { Step::Offloaded(to) } else { Step::Waits };
            self.note_step(packet.packet(), step);
        }
    }

    /// Notes what becomes of a packet, if it is traced.
    fn note_step(&mut self, packet: &Mbuf, step: Step) {
        if packet.mark() != 0 {
            self.out.mirror().note(packet, step);
        }
    }

    fn hold_returning(&mut self, placed: HandoffPacket) {
        let number = placed.info.offloaded().expect("a flow that is away has a number");
        if let Err(placed) = self.offload.home.hold(number, placed) {
            self.out.drop(placed.packet, DropReason::HoldFull);
        }
    }

    fn hold_stalled(&mut self, placed: HandoffPacket) {
        let shard = placed.info.shard;
        self.note_step(&placed.packet, Step::Waits);
        if let Some(placed) = self.offload.stalled.push(shard, placed, self.polled) {
            self.out.drop(placed.packet, DropReason::HoldFull);
        }
    }

    /// A flow has come home.
    #[cold]
    pub(super) fn take_home(&mut self, number: FlowNumber, flow: DetachedFlow) {
        let id = self.offload.home.shard_of(number);
        let shard = self.shards.stalled_or_owned(id).expect("a shard stays while flows are away");
        shard.table.attach(flow);
        let was_stalled = self.shards.resume(id);
        self.offload.picks.note_home(number);
        for mut placed in self.offload.home.end(number) {
            placed.info.set_offloaded(None);
            self.run_again(placed);
        }
        self.process();
        if was_stalled {
            // Younger than those of the flow. Should the shard have to wait again, they do.
            let waiting = self.offload.stalled.take(id);
            waiting.into_iter().for_each(|(placed, _)| self.run_again(placed));
            self.process();
        }
        let is_away = self.flows_away() > 0;
        self.shards.set_offloaded(is_away);
        self.counters.flows_away.set(self.flows_away() as u64);
        self.count_on_hold();
    }

    /// Presents a packet again, which was counted when it came.
    fn run_again(&mut self, placed: HandoffPacket) {
        self.offload.resumed += 1;
        self.batch.push(placed);
        if self.batch.len() >= BURST {
            self.process();
        }
    }

    /// Picks a flow that may leave from a burst that is about to be processed.
    #[inline]
    pub(super) fn pick_flow(&mut self) {
        if self.offload.to.is_some() && self.offload.share > 0 {
            self.pick_flow_of_burst();
        }
    }

    #[cold]
    fn pick_flow_of_burst(&mut self) {
        let Lane { batch, offload, .. } = self;
        let OffloadState { picking, candidates, share, has_ended, .. } = offload;
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

    /// At the end of a poll, when all packets of it were published and flushed: lets flows leave, recalls flows, and lets guests go
    /// home.
    #[inline]
    pub(super) fn move_flows(&mut self) {
        let OffloadState { to, wanted, candidates, recalled, .. } = &self.offload;
        let is_idle = candidates.is_empty() && recalled.is_empty() && to == wanted;
        if !is_idle || self.offload.home.has_recalls() {
            self.move_all_flows();
        }
    }

    #[cold]
    fn move_all_flows(&mut self) {
        self.return_guests();
        if self.offload.to != self.offload.wanted {
            self.offload.home.recall_all();
            if self.flows_away() == 0 {
                self.offload.to = self.offload.wanted;
            }
        } else if !self.offload.candidates.is_empty() && self.unsent() == 0 {
            self.begin_flows();
        }
        while let Some(number) = self.offload.home.next_recall() {
            let to = self.offload.to.expect("flows are away somewhere");
            self.handoff.send_control(to, Control::Recall(number));
        }
    }

    /// Sends the flows home of which nothing is left here.
    fn return_guests(&mut self) {
        for (_, departures) in &mut self.offload.recalled {
            departures.get_or_insert_with(|| self.out.departures());
        }
        let out = &self.out;
        let Lane { offload: OffloadState { recalled, flows, .. }, handoff, .. } = self;
        let has_left = |(_, departures): &mut (FlowNumber, Option<Departures>)| {
            departures.as_ref().is_some_and(|departures| out.have_left(departures))
        };
        for (number, _) in recalled.extract_if(.., has_left) {
            let flow = flows.0.end(number);
            handoff.send_control(number.home(), Control::Return { number, flow });
        }
    }

    /// Lets flows leave. Nothing that the lane has sent is left in a device.
    fn begin_flows(&mut self) {
        let mut candidates = std::mem::take(&mut self.offload.candidates);
        for (id, hash, key) in candidates.drain(..) {
            let Some(to) = self.offload.to.filter(|_| !self.offload.has_ended) else { continue };
            let stays =
                self.ownership.place(id) == Place::Local && !self.ownership.is_releasing(id);
            let Some(shard) = self.shards.get_mut(id).filter(|_| stays) else { continue };
            let Some(number) = self.offload.home.begin(id) else { continue };
            let name = FlowName { shard: id, hash, key };
            let service = self.service.offloading();
            match service.and_then(|of| of.detach(shard, (hash, &key), number, self.latest)) {
                None => {
                    self.offload.home.cancel(number);
                    self.offload.picks.note_stays(name);
                }
                Some(flow) => {
                    self.offload.picks.note_left(name, number);
                    self.counters.flows_offloaded.increment();
                    self.handoff.send_control(to, Control::Offload { number, flow });
                }
            }
        }
        self.offload.candidates = candidates;
        let is_away = self.flows_away() > 0;
        self.shards.set_offloaded(is_away);
        self.counters.flows_away.set(self.flows_away() as u64);
    }

    /// Counts the packets that wait for shards or flows.
    pub(super) fn count_on_hold(&mut self) {
        let waiting = self.migration.hold.len() + self.offload.waiting();
        self.counters.on_hold.set(waiting as u64);
    }
}

#[cfg(all(test, shuttle))]
mod exploration;
