//! Lanes that process packets, in virtual time.

use std::collections::VecDeque;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_control::{Balancer, HeavyShare, Observation, ShardMigrator};
use rheostat_packet::BURST;
use rheostat_steer::dispatch::{Arrival, Choice, Dispatch};

use super::lane::{Job, Message, SimLane};
use super::ledger::Ledger;
use super::offloading::OffloadedFlows;
use super::packet::SimPacket;
use super::pauses::Pauses;
use super::phase_meter::PhaseMeter;
use super::shard_moves::ShardMoves;
use super::work::{Overhead, SimWork};
use crate::event_queue::EventQueue;

/// How large a machine is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) lanes: u16,
    pub(super) shards: usize,
    /// Packets that a receive queue holds.
    pub(super) queue: usize,
    /// Packets that a ring between lanes holds, and those that may wait for one shard.
    pub(super) ring: usize,
    /// Packets that a poll takes from a queue.
    pub(super) burst: usize,
}

impl Size {
    /// Packets that a ring between lanes holds, as on real lanes: [`crate::real`].
    pub(super) const RING: usize = 1 << 12;

    /// Lanes that take bursts as those of a run do.
    pub(super) fn of(lanes: u16, shards: usize, queue: usize) -> Size {
        Size { lanes, shards, queue, ring: Size::RING, burst: BURST }
    }
}

/// What decides which lane gets a packet.
pub(super) enum CorePlacement {
    /// The indirection table, by the packet's shard.
    Table,
    /// A dispatcher.
    Dispatch(Box<dyn Dispatch>),
}

/// Lanes, their queues, and the packets in them.
///
/// Lanes that have nothing to do take no part until something comes for them. What a poll does to others is done
/// when it ends, and polls end in the order of time, so effects never come before their causes.
pub(super) struct SimMachine<W> {
    size: Size,
    work: W,
    overhead: Overhead,
    placement: CorePlacement,
    /// The lanes, and behind them the core that dispatches, if there is one.
    pub(super) lanes: Vec<SimLane>,
    /// The number of that core.
    dispatcher: Option<LaneId>,
    /// A queue of all lanes.
    shared: VecDeque<Job>,
    /// By lane, packets in its queue.
    backlogs: Vec<u32>,
    /// By lane, its working set.
    flows: Vec<usize>,
    /// When polls end, and of which lanes.
    ends: EventQueue,
    pub(super) migrator: ShardMoves,
    pub(super) ledger: Ledger,
    /// What tells classes apart, if anything does.
    classes: Option<SimClasses>,
}

/// Classes of a simulation's packets.
pub(super) struct SimClasses {
    /// Whether a packet is of the priority class; the same for all packets of a flow.
    pub(super) is_priority: Box<dyn Fn(&SimPacket) -> bool + Send>,
    /// The share of packets whose waits lanes report.
    pub(super) percentile: f64,
    /// Latencies by phase.
    pub(super) phases: PhaseMeter,
}

impl<W: SimWork> SimMachine<W> {
    /// A machine whose shard `n` belongs to lane `n` modulo the number of lanes.
    pub(super) fn new(
        size: Size,
        work: W,
        placement: CorePlacement,
        mut pauses: impl FnMut(LaneId) -> Pauses,
        ledger: Ledger,
    ) -> SimMachine<W> {
        let owner = |shard: usize| LaneId((shard % usize::from(size.lanes)) as u16);
        let owners: Vec<LaneId> = (0..size.shards).map(owner).collect();
        let dispatcher = match &placement {
            CorePlacement::Dispatch(dispatch) if !dispatch.in_hardware() => {
                Some(LaneId(size.lanes))
            }
            _ => None,
        };
        let all = size.lanes + u16::from(dispatcher.is_some());
        let lane = |id: LaneId| SimLane::new(id, size.lanes, &owners, pauses(id));
        let overhead = work.overhead();
        let mut machine = SimMachine {
            size,
            work,
            overhead,
            placement,
            lanes: (0..all).map(LaneId).map(lane).collect(),
            dispatcher,
            shared: VecDeque::new(),
            backlogs: vec![0; size.lanes.into()],
            flows: vec![0; all.into()],
            ends: EventQueue::new(all.into()),
            migrator: ShardMoves::new(size.lanes, owners, overhead.fence),
            ledger,
            classes: None,
        };
        (0..size.lanes).map(LaneId).for_each(|lane| machine.note_flows(lane));
        machine
    }

    /// Tells classes apart, and lets flows leave lanes.
    pub(super) fn tell_classes(&mut self, classes: SimClasses) {
        self.classes = Some(classes);
        let shards = self.size.shards;
        for lane in &mut self.lanes {
            lane.flows = Some(Box::new(OffloadedFlows::new(shards)));
            lane.meter = Some(Box::default());
        }
    }

    /// Latencies by phase, if classes are told apart.
    pub(super) fn phases(&self) -> Option<&PhaseMeter> {
        self.classes.as_ref().map(|classes| &classes.phases)
    }

    /// Lets the controller look, and passes its commands to lanes. Returns when it wants to look again.
    pub(super) fn control(&mut self, balancer: &mut Balancer, now: u64) -> u64 {
        let SimMachine { lanes, migrator, size, classes, .. } = self;
        let percentile = classes.as_ref().map(|classes| classes.percentile);
        let rewrite = migrator.rewrite;
        let observe = || {
            let seen = observe(&mut lanes[..size.lanes.into()], percentile);
            Observation { rewrite, ..seen }
        };
        let next = balancer.step(Time::from_nanos(now), migrator, observe);
        self.tell(now);
        next.as_nanos()
    }

    /// By lane, whether packets are led to it.
    pub(super) fn active(&self) -> Vec<bool> {
        let all = matches!(self.placement, CorePlacement::Dispatch(_));
        let mut active = vec![all; self.size.lanes.into()];
        for shard in 0..self.size.shards as u16 {
            active[self.migrator.lane_of(ShardId(shard)).index()] = true;
        }
        active
    }

    /// The lanes that process packets.
    pub(super) fn workers(&self) -> std::slice::Iter<'_, SimLane> {
        self.lanes[..self.size.lanes.into()].iter()
    }

    /// A packet arrives at `now`, which is not before anything that has happened.
    pub(super) fn arrive(&mut self, packet: &SimPacket, now: u64) {
        let number = self.ledger.arrive(now);
        let shard = ShardId((packet.hash as usize & (self.size.shards - 1)) as u16);
        let (flow, luck) = (packet.flow, packet.luck);
        let priority = self.classes.as_ref().is_some_and(|of| (of.is_priority)(packet));
        let (hash, bytes) = (packet.hash, packet.bytes);
        let mut job = Job { at: now, number, flow, luck, shard, hash, bytes, priority, lane: None };
        match &mut self.placement {
            CorePlacement::Table => self.enqueue(self.migrator.lane_of(shard), job, now),
            CorePlacement::Dispatch(dispatch) => {
                let SimPacket { hash, checksum, connection, .. } = *packet;
                let arrival = Arrival { now: Time::from_nanos(now), hash, checksum, connection };
                match (self.dispatcher, dispatch.dispatch(&arrival, &self.backlogs)) {
                    (None, choice) => self.follow(choice, job, now),
                    // The core that chooses has yet to get to it. It looks at the queues as they are when the
                    // packet comes to it, which is a little earlier.
                    (Some(core), Choice::Shared) => self.enqueue(core, job, now),
                    (Some(core), Choice::Lane(lane) | Choice::Via { lane, .. }) => {
                        job.lane = Some(lane);
                        self.enqueue(core, job, now);
                    }
                }
            }
        }
    }

    fn follow(&mut self, choice: Choice, mut job: Job, now: u64) {
        match choice {
            Choice::Lane(lane) => {
                job.lane = Some(lane);
                self.enqueue(lane, job, now);
            }
            Choice::Via { queue, lane } => {
                job.lane = Some(lane);
                self.enqueue(queue, job, now);
            }
            Choice::Shared => self.share(job, now),
        }
    }

    /// Into the receive queue of a lane.
    fn enqueue(&mut self, id: LaneId, job: Job, now: u64) {
        let lane = &mut self.lanes[id.index()];
        if lane.queue.len() >= self.size.queue {
            self.ledger.drop(&job);
            return;
        }
        lane.queue.push_back(job);
        if let Some(backlog) = self.backlogs.get_mut(id.index()) {
            *backlog += 1;
        }
        self.rouse(id, now);
    }

    /// Into the queue of all lanes, which is as long as theirs together.
    fn share(&mut self, job: Job, now: u64) {
        if self.shared.len() >= self.size.queue * usize::from(self.size.lanes) {
            self.ledger.drop(&job);
            return;
        }
        self.shared.push_back(job);
        // Any of those that look for work may be first.
        let lanes = (0..).map(LaneId).zip(self.workers());
        let mut idle = lanes.filter(|(_, lane)| lane.since.is_none()).map(|(id, _)| id);
        let count = idle.clone().count();
        if let Some(first) = count.checked_sub(1).and_then(|_| idle.nth(job.luck as usize % count))
        {
            self.rouse(first, now);
        }
    }

    /// Lets a lane that has nothing to do find what has come.
    fn rouse(&mut self, id: LaneId, now: u64) {
        if self.lanes[id.index()].since.is_none() {
            self.poll(id, now);
        }
    }

    /// Passes the migrator's commands to lanes.
    pub(super) fn tell(&mut self, now: u64) {
        for (id, command) in std::mem::take(&mut self.migrator.commands) {
            let lane = &mut self.lanes[id.index()];
            let wake = if lane.is_parked() { self.overhead.wake } else { 0 };
            lane.commands.push_back(command);
            self.rouse(id, now + wake);
        }
    }

    /// Lets the lanes work until `until`.
    pub(super) fn advance(&mut self, until: u64) {
        while let Some((end, lane)) = self.ends.pop(until) {
            let id = LaneId(lane as u16);
            self.end_poll(id, end);
            if self.lanes[id.index()].since.is_none() && self.finds_work(id) {
                self.poll(id, end);
            }
        }
    }

    /// Lets the lanes come to an end, and shards that are moving arrive, looking every `glance` nanoseconds; gives
    /// up after `timeout`.
    pub(super) fn run_dry(&mut self, mut now: u64, glance: u64, timeout: u64) {
        let last = now + timeout;
        while now < last && !(self.ends.is_empty() && self.migrator.is_idle()) {
            now += glance;
            self.advance(now);
            self.migrator.step(Time::from_nanos(now));
            self.tell(now);
        }
    }

    fn finds_work(&self, id: LaneId) -> bool {
        let shared = id.0 < self.size.lanes && !self.shared.is_empty();
        shared || self.lanes[id.index()].has_work()
    }

    /// A lane begins a poll.
    fn poll(&mut self, id: LaneId, now: u64) {
        let Size { burst, ring, lanes, .. } = self.size;
        let lane = &mut self.lanes[id.index()];
        let start = lane.pauses.start(now);
        lane.apply_commands();
        lane.take_handed(burst);
        if id.0 < lanes {
            for job in lane.receive(burst, ring) {
                self.ledger.drop(&job);
            }
            for job in self.shared.drain(..burst.min(self.shared.len())) {
                lane.accept(job);
            }
            self.backlogs[id.index()] = lane.queue.len() as u32;
        } else {
            let count = burst.min(lane.queue.len());
            lane.burst.extend(lane.queue.drain(..count));
        }
        if self.classes.is_some() {
            self.count_times(id);
        }
        let time = self.time_of_poll(id);
        let lane = &mut self.lanes[id.index()];
        let end = lane.pauses.end(start, time);
        lane.since = Some(start);
        self.ends.set(id.index(), end);
    }

    fn time_of(&self, job: &Job, flows: usize) -> u64 {
        self.work.packet(job.luck, flows) + self.work.bytes(job.bytes)
    }

    /// Counts what a poll does, as time: for shards their packets, for none of them what is handed over and taken.
    fn count_times(&mut self, id: LaneId) {
        let flows = self.flows[id.index()];
        let burst = std::mem::take(&mut self.lanes[id.index()].burst);
        for job in &burst {
            let time = self.time_of(job, flows);
            self.lanes[id.index()].count_time(job, time);
        }
        let lane = &mut self.lanes[id.index()];
        lane.burst = burst;
        lane.counts.other += (lane.outbox.handed + lane.outbox.taken) * self.overhead.handoff / 2;
    }

    /// Notes how long packets of a poll that ends took.
    fn note_latencies(&mut self, id: LaneId, burst: &[Job], now: u64) {
        let flows = self.flows[id.index()];
        let poll = self.overhead.poll / burst.len().max(1) as u64;
        for job in burst {
            let service = self.time_of(job, flows) + poll;
            let latency = now - job.at;
            if let Some(meter) = &mut self.lanes[id.index()].meter {
                meter.note(job.class(), job.at, latency, service);
            }
            if let Some(classes) = &mut self.classes {
                classes.phases.note(job.class(), job.at, latency);
            }
        }
    }

    fn time_of_poll(&self, id: LaneId) -> u64 {
        let (lane, overhead) = (&self.lanes[id.index()], &self.overhead);
        let (outbox, count) = (&lane.outbox, lane.burst.len() as u64);
        // A packet that changes cores costs either of them one half.
        let (packets, changes) = if self.dispatcher == Some(id) {
            (overhead.dispatch * count, count)
        } else {
            let flows = self.flows[id.index()];
            let packets = lane.burst.iter().map(|job| self.time_of(job, flows)).sum();
            let dispatched = if self.dispatcher.is_some() { count } else { 0 };
            (packets, dispatched + outbox.handed + outbox.taken)
        };
        overhead.poll
            + packets
            + changes * overhead.handoff / 2
            + outbox.installs * overhead.install
            + outbox.releases * overhead.release
    }

    /// A lane ends a poll: packets leave, and others hear of it.
    fn end_poll(&mut self, id: LaneId, now: u64) {
        let lane = &mut self.lanes[id.index()];
        let since = lane.since.take().expect("a poll that ends has begun");
        let mut burst = std::mem::take(&mut lane.burst);
        if !burst.is_empty() {
            lane.counts.busy_ns += now - since;
        }
        let owned = lane.owned - lane.outbox.installs as usize;
        lane.release_shards();
        let changed = lane.owned != owned;
        let outbox = std::mem::take(&mut lane.outbox);
        if self.dispatcher == Some(id) {
            for job in burst.drain(..) {
                match job.lane {
                    Some(lane) => self.enqueue(lane, job, now),
                    None => self.share(job, now),
                }
            }
        } else {
            burst.iter().for_each(|job| self.ledger.depart(job, now));
            if self.classes.is_some() {
                self.note_latencies(id, &burst, now);
            }
            burst.clear();
        }
        self.lanes[id.index()].burst = burst;
        if changed {
            self.note_flows(id);
        }
        self.migrator.reports.extend(outbox.reports);
        for (to, message) in outbox.messages {
            self.send(to, message, now);
        }
    }

    fn send(&mut self, to: LaneId, message: Message, now: u64) {
        let lane = &mut self.lanes[to.index()];
        if let Message::Packet(job) = &message {
            if lane.handed_in >= self.size.ring {
                self.ledger.drop(job);
                return;
            }
            lane.handed_in += 1;
        }
        lane.inbox.push_back(message);
        self.rouse(to, now);
    }

    /// A lane's working set is as large as its part of the shards; where flows do not stay with lanes, all flows.
    fn note_flows(&mut self, id: LaneId) {
        let share = match &self.placement {
            CorePlacement::Table => self.lanes[id.index()].owned as f64 / self.size.shards as f64,
            CorePlacement::Dispatch(dispatch) if dispatch.keeps_flows() => {
                1.0 / f64::from(self.size.lanes)
            }
            CorePlacement::Dispatch(_) => 1.0,
        };
        self.flows[id.index()] = self.work.working_set(share);
    }
}

/// What a controller is shown of these lanes.
fn observe(lanes: &mut [SimLane], percentile: Option<f64>) -> Observation {
    let counts = lanes.iter().map(|lane| lane.counts.clone()).collect();
    let Some(percentile) = percentile else { return Observation::from(counts) };
    let mut seen = Observation { counts, ..Observation::default() };
    for lane in lanes {
        let meter = lane.meter.as_mut();
        seen.classes.push(meter.map_or([None; 2], |meter| meter.take(percentile)));
        let Some(flows) = &mut lane.flows else { continue };
        let heavy = flows.heavy().into_iter();
        seen.heavy.extend(heavy.map(|(_, shard, part)| HeavyShare { shard, part }));
        flows.age();
    }
    seen
}
