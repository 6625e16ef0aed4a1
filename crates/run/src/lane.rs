//! A lane: one receive queue of each device, the shards it owns, the rings to other lanes, and its
//! transmit queues. A lane is data; a call of [`Lane::poll`] runs it.
//!
//! # The way of most packets
//!
//! A poll takes a burst of up to 32 packets from each device in turn. Each stage is a loop over all packets of the burst, and
//! what it costs is mostly the memory that it touches:
//!
//! | stage | where | touches | for the next one |
//! |---|---|---|---|
//! | receive | the device's [`RxQueue`](rheostat_io::RxQueue) | the ring, heads of packets | asks for the first line of each packet |
//! | classify | `classify/plain.rs` | first line and head of each packet, its shard's owner and load | writes a line of [`PacketInfo`], asks for the flow table's first line and that of its index |
//! | probe | `classify/plain.rs`, ten packets behind; the rest in `probe.rs` when the service asks ([`Batch::probe`]) | a line of the index of each flow | asks for the lines of the entry |
//! | run | the service: `chain_service/fast_path.rs` | the entry of each flow, what functions change | collects packets by device |
//! | emit | [`Output::flush`] | the device's [`TxQueue`](rheostat_io::TxQueue), heads | buffers go home in bulk |
//!
//! A service without state needs neither keys nor flows: its packets are told apart by the shards that their hashes name, or,
//! where no shard can move, by nothing (`reception.rs`).
//!
//! What is not usual is put aside where it is noticed, and rejoins the others behind the stage that deals with it:
//!
//! - Packets with several tags, options or extension headers, of ICMP or of no IP, and those from devices that carry both
//!   directions: parsed behind the loop of classify (`classify.rs`), and sorted by owner (`reception.rs`).
//! - Packets of shards that other lanes own go to these over rings (`handoff`), and are run there at the start of a poll;
//!   those of a shard that is on its way here are held until it comes (`migration.rs`, with all that lanes send each other).
//! - Packets of flows that are with an offloading lane go there (`offload.rs`), when the service has found the flow's mark in the
//!   index; those of flows that come home wait.
//! - Fragments first visit the shard where their datagram meets, behind all other packets of the poll; hairpins and those that a
//!   pool is done with come behind those (`reception.rs`).
//! - Packets that a function's fast path does not decide about, first packets of flows among them, are run by the general
//!   handlers, in their turn (`chain_service/execution.rs`). For tests, [`Unusual`] sends any share of all packets there.
//!
//! Deferred to the end of a poll: what the operating system has to be told of rings, timers, and flows and shards that leave.

mod batch;
mod busy_time;
mod classes;
mod classify;
mod config;
mod deferred;
mod joint;
mod migration;
mod mirror;
mod offload;
mod output;
mod packet_info;
mod places;
mod probe;
mod receivers;
mod reception;
mod unusual;

pub use batch::Batch;
pub(crate) use batch::partition;
pub use config::{LaneConfig, Routes, TimeSource};
pub use migration::LaneTimes;
pub use output::{Output, Sender};
pub use packet_info::HandoffPacket;
pub(crate) use packet_info::LinkPacket;
pub use packet_info::{PacketInfo, PacketKind, Placement};
pub(crate) use places::Places;
pub use unusual::{Unusual, UnusualError};

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rheostat_base::{Clock, DropReason, Histogram, LaneId, Time};
use rheostat_capture::LaneMirror;
use rheostat_io::Rest;
use rheostat_packet::BURST;
use rheostat_state::FlowHasher;
use rheostat_steer::Steering;

use self::busy_time::BusyTime;
use self::classes::ClassState;
use self::joint::{AwaitedPoll, JointState, Visitor};
use self::migration::MigrationState;
use self::offload::OffloadState;
use self::receivers::{Reception, SortBy};
use self::reception::PolledPackets;
use crate::account::LaneCounters;
use crate::classes::ClassFigures;
use crate::crew::LaneNotifier;
use crate::handoff::Handoff;
use crate::load::{LoadReporting, ShardLoads};
use crate::metrics::Metrics;
use crate::migrate::{LaneMailbox, Ownership};
use crate::offload::HopMeter;
use crate::poll::PollOutcome;
use crate::pool::AnyPoolClient;
use crate::service::{MetricsPart, Service};
use crate::shard_set::{ShardSet, Visit};
use crate::stages::{BurstStage, StageTimes};

/// One lane.
pub struct Lane {
    id: LaneId,
    out: Output,
    reception: Reception,
    shards: ShardSet,
    ownership: Ownership,
    migration: MigrationState,
    offload: OffloadState,
    /// There where classes of traffic are measured.
    classes: Option<Box<ClassState>>,
    steering: Arc<Steering>,
    hasher: FlowHasher,
    handoff: Handoff,
    /// Those of `out`.
    counters: Arc<LaneCounters>,
    load: LaneLoad,
    service: Box<dyn Service>,
    /// Whether the lane does work that the service puts off.
    puts_off: bool,
    time: TimeSource,
    /// Whether the service has a tick at the end of the poll, whatever its deadline.
    needs_tick: bool,
    /// Packets to treat as unusual ones.
    unusual: Unusual,
    /// When the last poll began.
    polled: Time,
    /// The latest time of any packet, which is what timers go by when packets carry the time.
    latest: Time,
    batch: Batch,
    joint: JointState,
    fragments: Vec<HandoffPacket>,
}

/// What a lane reports of its work.
struct LaneLoad {
    /// What each shard costs.
    shards: ShardLoads,
    /// What of that was sent to the lanes with which the shards' flows are.
    away: ShardLoads,
    /// What each shard of other lanes costs, whose flows are here.
    guests: ShardLoads,
    times: Arc<LaneTimes>,
    busy_time: BusyTime,
}

impl Lane {
    /// Assembles a lane.
    pub fn new(mut config: LaneConfig) -> Lane {
        let (receivers, senders): (Vec<_>, Vec<_>) =
            config.queues.into_iter().map(|pair| (pair.rx, pair.tx)).unzip();
        let shards = config.owners.len();
        let mut out = Output::new(config.id, senders, config.pool);
        if let Some(switch) = config.stages {
            out.note_stages(switch);
        }
        if config.shards.is_joint() {
            out.have_joint_flows();
        }
        config.shards.outboxes().into_iter().for_each(|outbox| out.gather_in(outbox));
        let mut offload =
            OffloadState::new(config.id, shards, config.handoff.flows(), config.hold_capacity);
        if let Some(switch) = config.hops {
            offload.time_hops(switch);
        }
        let flows_leave = config.handoff.flows() > 0;
        let classes = config.classes.map(|classes| {
            let knows_arrivals =
                receivers.iter().map(|queue| queue.order().stamping.times_arrival());
            Box::new(ClassState::new(classes, knows_arrivals, shards, flows_leave))
        });
        let leaving = if flows_leave { config.reporting } else { LoadReporting::Nothing };
        Lane {
            id: config.id,
            classes,
            reception: Reception::new(
                receivers,
                SortBy::of(&*config.service, config.reporting),
                config.takes_turns,
            ),
            shards: config.shards,
            ownership: Ownership::new(config.id, config.owners).with_claimants(config.claimants),
            migration: MigrationState::new(shards, config.hold_capacity),
            offload,
            steering: config.steering,
            hasher: config.hasher,
            handoff: config.handoff,
            counters: out.shared_counters(),
            out,
            load: LaneLoad {
                shards: ShardLoads::new(shards, config.reporting),
                away: ShardLoads::new(shards, leaving),
                guests: ShardLoads::new(shards, leaving),
                times: Arc::default(),
                busy_time: BusyTime::default(),
            },
            puts_off: config.service.deferred().is_some_and(|work| work.pool_client().is_none()),
            service: config.service,
            time: config.time,
            needs_tick: false,
            unusual: Unusual::default(),
            polled: Time::ZERO,
            latest: Time::ZERO,
            batch: Batch::with_capacity(2 * BURST),
            joint: JointState::default(),
            fragments: Vec::new(),
        }
    }

    /// The lane's number.
    pub fn id(&self) -> LaneId {
        self.id
    }

    /// The lane's counters, to read while it runs.
    pub fn counters(&self) -> Arc<LaneCounters> {
        self.counters.clone()
    }

    /// What each shard has cost the lane, to read while it runs.
    pub fn loads(&self) -> ShardLoads {
        self.load.shards.clone()
    }

    /// What the lane measures by class, to read while it runs, if it does.
    pub fn class_figures(&self) -> Option<Arc<ClassFigures>> {
        self.classes.as_ref().map(|classes| classes.meter.figures())
    }

    /// Packets for which a pool works.
    pub(crate) fn at_pool(&self) -> u64 {
        self.counters.at_pool.get()
    }

    /// What of the shards' packets was sent to the lanes with which their flows are, to read while it runs. It is part of
    /// [`Lane::loads`], too.
    pub fn away_loads(&self) -> ShardLoads {
        self.load.away.clone()
    }

    /// What flows of other lanes' shards have cost the lane, to read while it runs.
    pub fn guest_loads(&self) -> ShardLoads {
        self.load.guests.clone()
    }

    /// How long things take in the lane, to read while it runs.
    pub fn times(&self) -> Arc<LaneTimes> {
        self.load.times.clone()
    }

    /// Treats these packets as if they were unusual, for tests. [`build_lanes`](crate::runtime::build_lanes) has it done with
    /// those that the environment names.
    pub fn treat_as_unusual(&mut self, unusual: Unusual) {
        self.unusual = unusual;
        self.out.treat_as_unusual(unusual);
    }

    /// Lets the service read this clock, by which the lane is polled, while it works.
    pub fn go_by(&mut self, clock: Clock) {
        if self.time == TimeSource::Poll {
            self.out.go_by(clock);
        }
    }

    /// Lets the lane wake workers for other lanes, and its pool for this one; `notifiers` has one per lane.
    pub(crate) fn wake_by(&mut self, notifiers: Vec<LaneNotifier>) {
        if let Some(client) = pool_client(&mut *self.service) {
            client.wake_by(notifiers[self.id.index()].clone());
        }
        self.reception.wake_by(&notifiers);
        self.handoff.wake_by(notifiers);
    }

    /// Shows what passes through the lane to the readers of this mirror.
    pub fn mirror_to(&mut self, mirror: LaneMirror) {
        self.out.mirror_to(mirror);
        if self.service.spec().comments {
            self.out.mirror().expect_comments();
        }
    }

    /// Whether neither packets nor commands wait for the lane, nor segments of lanes with which it shares shards, as far as can be
    /// determined without polling.
    pub(crate) fn is_quiet(&mut self) -> bool {
        pool_client(&mut *self.service).is_none_or(|client| !client.has_replies())
            && !self.out.do_others_gather()
            && self.handoff.waiting() == 0
            && self.migration.mailbox.as_ref().is_none_or(LaneMailbox::is_empty)
            && self.reception.receivers.iter().all(|queue| queue.backlog() == 0)
    }

    /// What the lane's worker may do as far as this lane is concerned, after a last look at its queues.
    pub(crate) fn rest(&mut self, now: Time) -> Rest {
        // Where packets carry the time, none has to come for a timer that is due.
        let due = self.time == TimeSource::Packet
            && self.next_deadline().is_some_and(|due| due <= self.latest);
        if due || !self.is_quiet() {
            return Rest::Awake;
        }
        let queues =
            self.reception.receivers.iter_mut().map(|queue| queue.rest(self.out.pool(), now));
        match queues.min().unwrap_or(Rest::Sleep) {
            // Packets that a device has taken and not sent wait for the next poll to ask it again.
            rest if self.unsent() > 0 => rest.min(Rest::Nap),
            // No table leads packets there, and a migrator that is about to change this wakes the worker.
            Rest::Nap | Rest::Until(_) if self.is_parked() => Rest::Sleep,
            rest => rest,
        }
    }

    /// Packets that devices have taken and not sent, as far as they know.
    pub(crate) fn unsent(&self) -> u64 {
        self.counters.transmitting.get()
    }

    /// When the worker has to wake for this lane though nothing arrives: where packets carry the time, never.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.next_deadline().filter(|_| self.time == TimeSource::Poll)
    }

    /// What polls readable when packets wait, for each of the lane's devices.
    pub(crate) fn wait_descriptors(&self) -> impl Iterator<Item = Option<BorrowedFd<'_>>> {
        self.reception.receivers.iter().map(|queue| queue.wait_fd())
    }

    /// When the lane next has work without a packet arriving.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.service.next_deadline()
    }

    /// Whether the service works with a pool whose replies have to find their shards here.
    pub(crate) fn needs_own_shards(&mut self) -> bool {
        let work = self.service.deferred();
        work.is_some_and(|work| work.pool_client().is_some() && !work.settles_by_shard())
    }

    /// Whether packets of a flow may overtake each other before they are processed: several lanes have them at once, and nothing
    /// keeps them in order.
    pub fn may_reorder(&self) -> bool {
        self.shards.is_joint() && !self.shards.has_tickets()
    }

    /// Whether the lane owns its shards together with other claimants of its receive queue.
    pub fn has_joint_shards(&self) -> bool {
        self.shards.is_joint()
    }

    /// The shards the lane owns.
    pub fn shards(&self) -> &ShardSet {
        &self.shards
    }

    /// How long each stage took, if the lane was asked to note it.
    pub fn stage_times(&self) -> Option<&StageTimes> {
        self.out.stage_times()
    }

    /// How long packets took to this lane from the homes of their flows, in nanoseconds, if the lane was asked to note it.
    pub fn hops(&self) -> Option<&Histogram> {
        self.offload.hop_meter().map(HopMeter::times)
    }

    /// Adds what the service has counted in the lane and its shards.
    pub fn add_metrics(&self, metrics: &mut Metrics) {
        self.service.metrics(MetricsPart::Lane, metrics);
        self.shards
            .iter()
            .for_each(|shard| self.service.metrics(MetricsPart::Shard(shard), metrics));
    }

    /// Adds what the services of all lanes have counted together.
    pub fn add_shared_metrics(&self, metrics: &mut Metrics) {
        self.service.metrics(MetricsPart::Shared, metrics);
    }

    /// The latest time the lane has seen.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// Packets, and other things that lanes send each other, on the way to this lane.
    pub fn handoff_waiting(&self) -> usize {
        self.handoff.waiting()
    }

    /// Takes up to a burst from every ring and every device, processes what this lane owns, hands the
    /// rest to its owners, goes on with what a pool has done, does what timers ask for, and sends.
    /// Nothing stays behind but fragments that wait for the first of their datagram, packets that wait
    /// for their shard, and those for which a pool works.
    pub fn poll(&mut self, now: Time) -> PollOutcome {
        if !self.reception.takes_turns {
            return self.poll_all(now);
        }
        let awaited = AwaitedPoll(self);
        let outcome = awaited.0.poll_all(now);
        awaited.0.send_for_others();
        outcome
    }

    /// Sends segments of lanes that are at long work.
    fn send_for_others(&mut self) {
        let Lane { shards, service, out, .. } = self;
        Visitor { shards, service: &mut **service, out }.send_for_blocking();
        out.send_for_late();
    }

    fn poll_all(&mut self, now: Time) -> PollOutcome {
        // Of two workers on two cores, one clock may be some nanoseconds behind the other.
        let now = now.max(self.polled);
        self.polled = now;
        self.out.start_poll(now);
        self.out.mirror().refresh();
        if self.time == TimeSource::Poll {
            self.latest = now;
        }
        self.apply_commands();
        // Other lanes' packets first: they have waited longer.
        let taken = self.take_handed_off();
        let PolledPackets { received, bursts, completed } = self.receive_and_complete(now);
        let is_due = self.service.next_deadline().is_some_and(|due| due <= self.latest);
        if is_due || self.needs_tick {
            self.needs_tick = false;
            let mut shards = Visit(&mut self.shards);
            self.service.tick(&mut shards, &mut self.out, self.latest);
            drop(shards);
            if self.puts_off {
                let Lane { shards, service, out, reception, .. } = self;
                Visitor { shards, service: &mut **service, out }.do_work(reception);
            }
            if self.out.has_deferred() {
                self.dispatch_deferred();
            }
            self.expire_fragments();
            self.run_reinjected();
        }
        self.publish();
        self.note_joint_flows();
        self.ring_desk();
        self.out.end_stage(BurstStage::Rest);
        self.out.flush();
        if self.out.mirror().is_armed() {
            self.out.mirror().end_poll();
        }
        if self.offload.has_moves() {
            let (offload, mut parts) = self.offloading();
            offload.move_flows(&mut parts);
        }
        self.release_shards();
        let packets = taken + received + completed + std::mem::take(&mut self.offload.resumed);
        // Of full bursts alone, which are what is compared.
        if received > 0 && received == packets && received == bursts * BURST {
            self.out.end_poll(received);
        }
        match packets {
            0 => self.counters.idle_polls.increment(),
            _ => self.load.times.bursts.record(packets as u64),
        }
        PollOutcome { packets, next_deadline: self.next_deadline() }
    }

    /// Notes that a poll, which found work or not, took from `from` to `to`.
    #[inline]
    pub(crate) fn note_time(&mut self, from: Time, to: Time, worked: bool) {
        self.load.busy_time.note(&self.counters, (from, to), worked);
    }

    /// Ends the lane's times, if any were noted.
    pub(crate) fn close_time(&mut self, now: Time) {
        self.load.busy_time.close(&self.counters, now);
    }

    /// Ends the run: drops the fragments whose first never came, lets everything due at `now` expire,
    /// and returns the lane's buffers to the pool. All rings must be empty, and all tasks done.
    pub fn finish(&mut self, now: Time) {
        for tracker in self.shards.trackers_mut() {
            for packet in tracker.drain() {
                let reason = DropReason::FragmentIncomplete;
                self.out.drop(packet, reason);
            }
        }
        self.counters.held.set(0);
        self.note_joint_flows();
        self.shards.inherit();
        self.service.finish(&mut self.shards, &mut self.out, now);
        self.out.finish();
    }

    /// Notes how many flows were in the joint shards at once, if this lane does so for all claimants.
    #[inline]
    fn note_joint_flows(&self) {
        if let Some(peak) = self.shards.flows_peak() {
            self.counters.flows_peak.set(peak);
        }
    }

    fn publish(&mut self) {
        let Lane { handoff, counters, out, offload, .. } = self;
        if let Some(meter) = offload.hop_meter() {
            handoff.note_published(meter.now());
        }
        let sent = handoff.publish(|placed| {
            out.drop(placed.packet, DropReason::HandoffFull);
        });
        counters.handoff_out.add(sent as u64);
    }
}

/// The client of a pool that works for a service.
#[inline]
fn pool_client(service: &mut dyn Service) -> Option<&mut dyn AnyPoolClient> {
    service.deferred()?.pool_client()
}
