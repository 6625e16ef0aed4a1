//! All that lanes send each other: packets, shards that change lanes ([`crate::migrate`]), and flows that leave and come home
//! ([`crate::offload`]).

use rheostat_base::{DropReason, Histogram, LaneId, ShardId};
use rheostat_capture::trace::Step;
use rheostat_packet::{BURST, FlowKey, HashKind, Mbuf};
use rheostat_state::{DetachedFlow, FlowHash, Shard};
use rheostat_steer::Steering;
use rheostat_steer::policy::Load;

use super::offload::{OffloadParts, OffloadState};
use super::{HandoffPacket, Lane, PacketKind, pool_client};
use crate::handoff::Control;
use crate::handoff::link::Delivery;
use crate::migrate::{Command, Hold, LaneMailbox, Place, ReleaseStamps, Report, Watermark};
use crate::offload::FlowNumber;

/// Times that a lane takes, in nanoseconds, and the sizes of its bursts.
#[derive(Debug, Default)]
pub struct LaneTimes {
    /// Packets of each poll that found some.
    pub bursts: Histogram,
    /// How long each packet was on hold.
    pub held: Histogram,
    /// From a command that gives a parked lane a shard to the poll that applies it.
    pub woken: Histogram,
}

/// The lane's part in the moves of shards.
pub(super) struct MigrationState {
    /// Where the migrator's commands come from, if shards move in this run.
    pub(super) mailbox: Option<LaneMailbox>,
    /// Shards that have come, each with the shards that its former owner had redirected, and wait until they may be put
    /// in their place.
    pub(super) delivered: Vec<(Box<Shard>, u64)>,
    /// Drain acknowledgements still to send: shard, and its new owner.
    pub(super) unsent_acks: Vec<(ShardId, LaneId)>,
    /// Packets of shards that have yet to come.
    pub(super) hold: Hold,
    pub(super) release_stamps: ReleaseStamps,
}

impl MigrationState {
    /// Of a lane of a run of so many shards, which holds so many packets at most.
    pub(super) fn new(shards: usize, hold_capacity: usize) -> MigrationState {
        MigrationState {
            mailbox: None,
            delivered: Vec::new(),
            unsent_acks: Vec::new(),
            hold: Hold::new(shards, hold_capacity),
            release_stamps: ReleaseStamps::default(),
        }
    }
}

/// Deliveries to handle, in order, after all packets of locally owned shards.
enum Other {
    /// A packet of a shard that is not.
    Packet(HandoffPacket),
    /// A shard, from a lane that had redirected so many.
    Shard(Box<Shard>, u64),
    /// A flow of this lane, which comes home.
    Flow(FlowNumber, DetachedFlow),
    /// A flow of another lane that is to go home, now that all its packets are here.
    Recall(FlowNumber),
}

impl Lane {
    /// Connects the lane to a migrator.
    pub(crate) fn take_orders_from(&mut self, mailbox: LaneMailbox) {
        self.migration.mailbox = Some(mailbox);
    }

    /// The owner of each shard, as far as the lane knows.
    pub(crate) fn owners(&self) -> &[LaneId] {
        self.ownership.owners()
    }

    /// Whether the lane has nothing to do until it is given a shard.
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.ownership.is_parked() && !self.offload.has_guests()
    }

    /// Carries out what the migrator has commanded. At the start of a poll: everything of earlier polls
    /// is on its way, so what is told to other lanes comes behind it.
    #[inline]
    pub(super) fn apply_commands(&mut self) {
        while let Some(command) = self.migration.mailbox.as_mut().and_then(LaneMailbox::next) {
            self.apply(command);
        }
    }

    #[cold]
    fn apply(&mut self, command: Command) {
        match command {
            Command::Expect { shard, pending_acks, sent } => {
                if self.is_parked() {
                    self.load.times.woken.record(self.polled.since(sent).as_nanos() as u64);
                }
                self.ownership.expect(shard, pending_acks);
                self.report(Report::Ready(shard));
            }
            Command::Redirect { shard, from, to } => {
                self.ownership.redirect(shard, to);
                self.handoff.send_control(from, Control::Redirected(shard));
            }
            Command::Release { shard, to, redirects } => {
                let watermark =
                    Watermark::new(&self.reception.receivers, &self.reception.received_by);
                self.ownership.release(shard, to, redirects, watermark);
                // None leaves any more.
                self.offload.recall_shard(shard);
            }
            Command::Offload { to, share } => self.offload_to(to, share),
            Command::OffloadShares { to, shares } => self.offload_shares(to, shares),
            Command::Tick => self.needs_tick = true,
            Command::Count(request) => request.answer(self.id, &*self.service, &mut self.shards),
        }
    }

    /// Says to the new owners of shards that what the former ones had handed to this lane was taken.
    #[cold]
    pub(super) fn send_drain_acks(&mut self) {
        for (shard, to) in self.migration.unsent_acks.drain(..) {
            self.handoff.send_control(to, Control::Drained(shard));
        }
    }

    /// A shard has come.
    #[cold]
    pub(super) fn accept(&mut self, shard: Box<Shard>, ownership_epoch: u64) {
        let Lane { migration, reception, steering, .. } = self;
        for HandoffPacket { packet, .. } in migration.hold.waiting_for(shard.id) {
            // Received here by the shard's buckets: behind those that its former owner received by them until it gave
            // the shard away. What comes from now on is younger anyhow, or late. What other lanes handed over keeps
            // the order of the lanes that received it.
            if bucket_shard(steering, packet).is_none_or(|bucket| bucket == shard.id)
                && let Some(stamp) =
                    reception.receivers[packet.device().index()].order().stamping.draw()
            {
                packet.set_stamp(stamp);
            }
        }
        self.migration.delivered.push((shard, ownership_epoch));
    }

    /// Takes the shards that have come and may, and processes what was held for them.
    #[cold]
    pub(super) fn install_shards(&mut self) {
        let Lane { migration: MigrationState { delivered, .. }, ownership, .. } = self;
        let may_arrive = |(shard, ownership_epoch): &mut (Box<Shard>, u64)| {
            ownership.may_arrive(shard.id, *ownership_epoch)
        };
        let arrived: Vec<_> = delivered.extract_if(.., may_arrive).collect();
        arrived.into_iter().for_each(|(shard, _)| self.install(shard));
    }

    fn install(&mut self, mut shard: Box<Shard>) {
        let id = shard.id;
        self.service.shard_arrived(&mut shard);
        // Fragments that wait in the shard for the first of their datagram come along.
        self.counters.handoff_in.add(shard.fragments.held() as u64);
        self.counters.flows_in.add(shard.table.counts().live);
        self.counters.shards_in.increment();
        self.shards.install(shard);
        self.ownership.arrive(id);
        self.count_held();
        let mut held = self.migration.hold.take(id);
        for (placed, since) in held.drain(..) {
            self.load.times.held.record(self.polled.since(since).as_nanos() as u64);
            self.route_to_owner(placed);
            if self.batch.len() >= BURST {
                self.process();
            }
        }
        self.migration.hold.recycle(id, held);
        self.count_on_hold();
        self.process();
        self.report(Report::Arrived(id));
    }

    /// Gives away the shards of which nothing is under way to this lane any more. At the end of a poll:
    /// what the lane has sent of them has left.
    #[inline]
    pub(super) fn release_shards(&mut self) {
        loop {
            let Lane { ownership, reception, service, offload, .. } = self;
            let due = ownership.next_due(|shard, mark| {
                // What a pool does for the shard comes back to this lane, and nothing is added to it. So do flows that are away.
                mark.has_passed(&reception.receivers, &reception.received_by)
                    && offload.away_of(shard) == 0
                    && pool_client(&mut **service)
                        .is_none_or(|client| client.outstanding(shard) == 0)
            });
            let Some((id, to)) = due else { return };
            let shard = self.shards.remove(id).expect("its owner has it");
            self.migration.release_stamps.note(id, &self.reception.receivers);
            self.counters.flows_out.add(shard.table.counts().live);
            self.counters.shards_out.increment();
            // Before they are counted as handed over, so that they are not taken for processed.
            self.count_held();
            self.counters.handoff_out.add(shard.fragments.held() as u64);
            let ownership_epoch = self.ownership.ownership_epoch();
            self.handoff.send_control(to, Control::Shard { shard, ownership_epoch });
            for lane in (0..self.handoff.lanes()).map(|lane| LaneId(lane as u16)) {
                if ![self.id, to].contains(&lane) {
                    self.handoff.send_control(lane, Control::Released { shard: id, to });
                }
            }
        }
    }

    /// Brings a packet where its shard is, or will be.
    pub(super) fn route_to_owner(&mut self, placed: HandoffPacket) {
        let shard = placed.info.shard;
        match self.ownership.place(shard) {
            Place::Local => match self.home_elsewhere(&placed.info) {
                Some(home) => self.handoff.stage(home, placed),
                None => self.enqueue_local(placed),
            },
            Place::Incoming => self.hold(shard, placed),
            Place::Remote(owner) => self.handoff.stage(owner, placed),
        }
    }

    /// Lays a packet of a shard that is here aside for processing.
    pub(super) fn enqueue_local(&mut self, placed: HandoffPacket) {
        self.load.shards.count(placed.info.shard, placed.packet.len());
        match placed.info.kind() {
            PacketKind::Fragment => self.fragments.push(placed),
            _ => self.batch.push(placed),
        }
    }

    /// Lets a packet wait for a shard.
    #[cold]
    pub(super) fn hold(&mut self, shard: ShardId, placed: HandoffPacket) {
        if let Some(HandoffPacket { packet, .. }) =
            self.migration.hold.push(shard, placed, self.polled)
        {
            self.out.drop(packet, DropReason::HoldFull);
        }
        self.count_on_hold();
    }

    /// Whether a device placed a packet of `shard` by the bucket of another.
    #[inline(always)]
    pub(super) fn is_misdirected(&self, packet: &Mbuf, shard: ShardId) -> bool {
        bucket_shard(&self.steering, packet).is_some_and(|bucket| bucket != shard)
    }

    /// Disposes of a received packet whose shard is not here, or which is misdirected.
    #[inline(never)]
    pub(super) fn route_received(&mut self, mut placed: HandoffPacket) {
        let HandoffPacket { packet, info } = &mut placed;
        let is_flow = info.kind() == PacketKind::Flow;
        // Of a device that does not say where it saw a packet belong: where it belongs.
        let bucket = bucket_shard(&self.steering, packet);
        if let Some(by) = bucket.or(is_flow.then_some(info.shard))
            && self.ownership.is_expected(by)
        {
            // Older ones of its flow came by the same bucket to the former owner of that bucket's shard, and may wait
            // there still, also when the packet belongs to another shard.
            return self.hold(by, placed);
        }
        if let Some(by) = bucket.filter(|by| is_flow && self.ownership.was_released(*by)) {
            self.counters.late_handoff.increment();
            // It is older than all that came by the new entries.
            if let Some(stamp) = self.migration.release_stamps.stamp(by, packet.device()) {
                packet.set_stamp(stamp);
            }
        }
        self.route_to_owner(placed);
    }

    /// Takes what other lanes have sent, up to a burst from each; returns how many packets there were.
    pub(super) fn take_handed_off(&mut self) -> usize {
        let Lane {
            id,
            handoff,
            batch,
            fragments,
            latest,
            ownership,
            load,
            migration,
            offload,
            out,
            shards,
            ..
        } = self;
        let mut taken = 0;
        let mut others = Vec::new();
        handoff.take(BURST, |delivery| match delivery {
            Delivery::Packet(placed) => {
                taken += 1;
                *latest = (*latest).max(placed.info.now);
                if placed.packet.mark() != 0 {
                    out.mirror().note(&placed.packet, Step::Taken);
                }
                if let Some(number) = placed.info.offloaded() {
                    placed.packet.prefetch();
                    if number.home() != *id {
                        load.guests.count(placed.info.shard, placed.packet.len());
                    }
                    return offload.take(*id, number, placed);
                }
                if ownership.place(placed.info.shard) != Place::Local {
                    return others.push(Other::Packet(placed));
                }
                load.shards.count(placed.info.shard, placed.packet.len());
                match placed.info.kind() {
                    PacketKind::Fragment => fragments.push(placed),
                    _ => {
                        shards.prefetch(placed.info.shard, placed.info.hash);
                        batch.push(placed);
                    }
                }
            }
            Delivery::Control(Control::Redirected(shard)) => ownership.note_redirected(shard),
            Delivery::Control(Control::Shard { shard, ownership_epoch }) => {
                others.push(Other::Shard(shard, ownership_epoch));
            }
            Delivery::Control(Control::Released { shard, to }) => {
                migration.unsent_acks.push((shard, to))
            }
            Delivery::Control(Control::Drained(shard)) => ownership.note_drained(shard),
            Delivery::Control(Control::Offload { number, flow }) => offload.begin(number, flow),
            Delivery::Control(Control::Recall(number)) => others.push(Other::Recall(number)),
            Delivery::Control(Control::Return { number, flow }) => {
                others.push(Other::Flow(number, flow));
            }
        });
        if !self.migration.unsent_acks.is_empty() {
            self.send_drain_acks();
        }
        if self.offload.has_packets() {
            self.process_offloaded();
        }
        if taken > 0 {
            self.counters.handoff_in.add(taken as u64);
            self.process();
        }
        for other in others {
            match other {
                Other::Packet(placed) => self.route_to_owner(placed),
                Other::Shard(shard, ownership_epoch) => self.accept(shard, ownership_epoch),
                Other::Flow(number, flow) => self.take_home(number, flow),
                Other::Recall(number) => self.offload.note_recalled(number),
            }
        }
        // Behind the packets that came before the shard, and were held.
        if !self.migration.delivered.is_empty() {
            self.install_shards();
        }
        taken
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
        let (offload, mut lane) = self.offloading();
        lane.note_flows_away(offload.home.away());
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

    /// Lets flows of the lane leave for the lane `to`, so that they have up to `share` hundredths of the packets; for none, takes
    /// all home. Flows that are with another lane come home first. The flows are those of packets picked from each few bursts, so
    /// the more packets a flow has, the earlier it leaves; with a share of 100, of each burst.
    ///
    /// No flow leaves in a run without room for it ([`RuntimeConfig::offloading`](crate::RuntimeConfig::offloading)), and none
    /// whose service does not let it.
    pub fn offload_to(&mut self, to: Option<LaneId>, share: u8) {
        let can_leave = self.service.offloading().is_some() && to != Some(self.id);
        self.offload.aim(to.filter(|_| can_leave), share);
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

    /// Lets one flow leave at the end of the next poll, whatever share of the packets is away, if there is such a flow and it may
    /// leave then.
    pub fn offload(&mut self, shard: ShardId, hash: FlowHash, key: &FlowKey) {
        self.offload.add_candidate(shard, hash, *key);
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
        self.offload.end();
    }

    /// Whether flows of other lanes wait for what this one has sent to leave.
    pub(crate) fn has_leaving_guests(&self) -> bool {
        self.offload.has_leaving_guests()
    }

    /// The lane's part in offloading, and the parts of the lane that it works with.
    pub(super) fn offloading(&mut self) -> (&mut OffloadState, OffloadParts<'_>) {
        let Lane { offload, service, shards, ownership, handoff, out, classes, load, .. } = self;
        let (away, polled, latest) = (&load.away, self.polled, self.latest);
        let service = &mut **service;
        let parts = OffloadParts {
            service,
            shards,
            ownership,
            handoff,
            out,
            classes,
            away,
            polled,
            latest,
        };
        (offload, parts)
    }

    /// Does with packets what their service could not.
    pub(super) fn dispatch_deferred(&mut self) {
        let (offload, mut parts) = self.offloading();
        offload.dispatch(&mut parts);
        self.count_on_hold();
    }

    fn process_offloaded(&mut self) {
        let (offload, mut parts) = self.offloading();
        offload.process(&mut parts);
        self.count_on_hold();
    }

    /// Counts the packets that wait for shards or flows.
    pub(super) fn count_on_hold(&mut self) {
        let waiting = self.migration.hold.len() + self.offload.waiting();
        self.counters.on_hold.set(waiting as u64);
    }

    fn report(&mut self, report: Report) {
        let mailbox = self.migration.mailbox.as_mut().expect("only a migrator makes shards move");
        mailbox.report(report);
    }
}

/// The shard by whose bucket a device placed a packet, if it says so.
#[inline(always)]
fn bucket_shard(steering: &Steering, packet: &Mbuf) -> Option<ShardId> {
    let is_known = packet.hash_kind() != HashKind::None;
    is_known.then(|| steering.shard_of_hash(packet.hash()))
}

#[cfg(all(test, shuttle))]
mod exploration;
#[cfg(all(test, not(loom)))]
pub(super) mod fixture;
#[cfg(all(test, not(any(loom, shuttle))))]
mod pooled;
#[cfg(all(test, not(any(loom, shuttle))))]
mod sabotage;
