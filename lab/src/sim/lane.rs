//! A lane of a simulation.

use std::collections::VecDeque;

use rheostat_base::{LaneId, ShardId};
use rheostat_steer::policy::{Class, LaneCounts};

use super::class_meter::ClassMeter;
use super::offloading::{OffloadedFlows, Route};
use super::pauses::Pauses;
use super::shard_moves::{MoveCommand, MoveReport};

/// Packets at most that wait in a lane for flows to come home.
const HELD: usize = 1 << 12;

/// A packet on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    /// When it arrived.
    pub(super) at: u64,
    /// Counted as packets arrived.
    pub(super) number: u32,
    pub(super) flow: u32,
    pub(super) luck: u32,
    pub(super) shard: ShardId,
    /// Names the flow, both directions together.
    pub(super) hash: u32,
    pub(super) bytes: u16,
    /// Whether it is of the priority class.
    pub(super) priority: bool,
    /// The lane that processes it, if that was decided for this packet.
    pub(super) lane: Option<LaneId>,
}

impl Job {
    pub(super) fn class(&self) -> Class {
        if self.priority { Class::Priority } else { Class::Regular }
    }
}

/// What comes to a lane from another.
#[derive(Debug)]
pub(super) enum Message {
    Packet(Job),
    /// The sender hands packets of this shard to the receiver no more.
    Redirected(ShardId),
    /// The shard is the receiver's from now on.
    Shard(ShardId),
    /// The sender has given this shard away, to this lane.
    Released(ShardId, LaneId),
    /// The sender has taken what the former owner of this shard had handed to it.
    Drained(ShardId),
    /// Flows of the sender come home once this message, of this number, has returned.
    Cycle(LaneId, u32),
    /// It has: everything before it was processed.
    Cycled(u32),
}

/// What a lane does with a packet of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePlace {
    Local,
    Incoming,
    Remote(LaneId),
}

/// What a poll did, beside processing packets: to be told to others when it ends.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) messages: Vec<(LaneId, Message)>,
    pub(super) reports: Vec<MoveReport>,
    /// To be paid for: shards to give away, shards taken in, packets handed over and taken.
    pub(super) releases: u64,
    pub(super) installs: u64,
    pub(super) handed: u64,
    pub(super) taken: u64,
}

/// A shard that is to be given away.
#[derive(Debug)]
pub(super) struct Release {
    shard: ShardId,
    to: LaneId,
    /// How many packets the lane must have received.
    pub(super) watermark: u64,
}

#[derive(Debug)]
pub(super) struct SimLane {
    me: LaneId,
    lanes: u16,
    /// The receive queue.
    pub(super) queue: VecDeque<Job>,
    /// What other lanes have sent, and the migrator.
    pub(super) inbox: VecDeque<Message>,
    /// How many packets are in there.
    pub(super) handed_in: usize,
    pub(super) commands: VecDeque<MoveCommand>,
    /// Packets of the poll under way, in the order in which they are processed.
    pub(super) burst: Vec<Job>,
    pub(super) outbox: Outbox,
    /// Since when the lane has been polling; none while it has nothing to do.
    pub(super) since: Option<u64>,
    pub(super) pauses: Pauses,
    pub(super) counts: LaneCounts,
    /// Packets received.
    received: u64,
    /// Per shard.
    places: Vec<QueuePlace>,
    held: Vec<VecDeque<Job>>,
    redirected: Vec<u16>,
    taken: Vec<u16>,
    pub(super) releases: Vec<Release>,
    /// Shards that have come and wait for the word of other lanes.
    delivered: Vec<ShardId>,
    /// Shards here.
    pub(super) owned: usize,
    /// Shards that come.
    arriving: usize,
    /// Flows that leave for other lanes, where they can.
    pub(super) flows: Option<Box<OffloadedFlows>>,
    /// What the lane measures by class, where classes are told apart. Work is then counted as time, not as packets.
    pub(super) meter: Option<Box<ClassMeter>>,
    /// Packets for which there was no room.
    pub(super) refused: Vec<Job>,
}

impl SimLane {
    /// A lane when the shards belong to `owners`.
    pub(super) fn new(me: LaneId, lanes: u16, owners: &[LaneId], pauses: Pauses) -> SimLane {
        let place = |owner: &LaneId| match *owner {
            owner if owner == me => QueuePlace::Local,
            owner => QueuePlace::Remote(owner),
        };
        let shards = owners.len();
        SimLane {
            me,
            lanes,
            queue: VecDeque::new(),
            inbox: VecDeque::new(),
            handed_in: 0,
            commands: VecDeque::new(),
            burst: Vec::new(),
            outbox: Outbox::default(),
            since: None,
            pauses,
            counts: LaneCounts { shards: vec![0; shards], ..LaneCounts::default() },
            received: 0,
            places: owners.iter().map(place).collect(),
            held: vec![VecDeque::new(); shards],
            redirected: vec![0; shards],
            taken: vec![0; shards],
            releases: Vec::new(),
            delivered: Vec::new(),
            owned: owners.iter().filter(|owner| **owner == me).count(),
            arriving: 0,
            flows: None,
            meter: None,
            refused: Vec::new(),
        }
    }

    /// Whether a poll would find something.
    pub(super) fn has_work(&self) -> bool {
        !(self.queue.is_empty() && self.inbox.is_empty() && self.commands.is_empty())
    }

    /// Whether it is not polled until it gets a shard.
    pub(super) fn is_parked(&self) -> bool {
        self.owned == 0 && self.arriving == 0
    }

    /// Carries out what the migrator has commanded.
    pub(super) fn apply_commands(&mut self) {
        while let Some(command) = self.commands.pop_front() {
            match command {
                MoveCommand::Expect(shard) => {
                    self.places[shard.index()] = QueuePlace::Incoming;
                    self.arriving += 1;
                    self.taken[shard.index()] = 0;
                    self.outbox.reports.push(MoveReport::Ready(shard));
                }
                MoveCommand::Redirect { shard, from, to } => {
                    if to != self.me {
                        self.places[shard.index()] = QueuePlace::Remote(to);
                    }
                    self.send(from, Message::Redirected(shard));
                }
                MoveCommand::Release { shard, to } => {
                    let watermark = self.received + self.queue.len() as u64;
                    self.releases.push(Release { shard, to, watermark });
                    self.outbox.releases += 1;
                    let message = self.flows.as_mut().and_then(|flows| flows.recall_shard(shard));
                    self.send_behind(message);
                }
                MoveCommand::Offload { to, shares } => {
                    let SimLane { flows, places, releases, .. } = self;
                    let stays = |shard: ShardId| {
                        let leaves = releases.iter().any(|release| release.shard == shard);
                        places[shard.index()] == QueuePlace::Local && !leaves
                    };
                    let flows = flows.as_mut();
                    let message = flows.and_then(|flows| flows.change(to, &shares, stays));
                    self.send_behind(message);
                }
            }
        }
    }

    /// Takes what other lanes sent, up to `most` packets, then the shards that have come.
    pub(super) fn take_handed(&mut self, most: usize) {
        let mut others = Vec::new();
        while self.burst.len() < most
            && let Some(message) = self.inbox.pop_front()
        {
            match message {
                Message::Packet(job) => {
                    self.handed_in -= 1;
                    self.outbox.taken += 1;
                    match (job.lane, self.places[job.shard.index()]) {
                        (Some(_), _) => self.accept(job),
                        (None, QueuePlace::Local) => self.process(job),
                        (None, _) => others.push(job),
                    }
                }
                Message::Redirected(shard) => self.redirected[shard.index()] += 1,
                Message::Shard(shard) => self.delivered.push(shard),
                Message::Released(shard, to) => self.send(to, Message::Drained(shard)),
                Message::Drained(shard) => self.taken[shard.index()] += 1,
                // Leaves behind this poll's packets.
                Message::Cycle(from, number) => self.send(from, Message::Cycled(number)),
                Message::Cycled(number) => {
                    let home = self.flows.as_mut().map(|flows| flows.come_home(number));
                    home.into_iter().flatten().for_each(|job| self.accept(job));
                }
            }
        }
        // What is not for a shard that is here, in the order in which it came.
        for job in others {
            self.route_to_owner(job);
        }
        self.install_shards();
    }

    fn install_shards(&mut self) {
        let pending_acks = self.lanes.saturating_sub(2);
        let taken = &self.taken;
        let arrived: Vec<_> =
            self.delivered.extract_if(.., |shard| taken[shard.index()] == pending_acks).collect();
        for shard in arrived {
            assert_eq!(
                self.places[shard.index()],
                QueuePlace::Incoming,
                "{shard} comes unexpected"
            );
            self.places[shard.index()] = QueuePlace::Local;
            (self.owned, self.arriving) = (self.owned + 1, self.arriving - 1);
            self.outbox.installs += 1;
            let held = std::mem::take(&mut self.held[shard.index()]);
            held.into_iter().for_each(|job| self.accept(job));
            self.outbox.reports.push(MoveReport::Arrived(shard));
        }
    }

    /// Takes up to `most` packets from a receive queue. Returns those for which there was no room.
    pub(super) fn receive(&mut self, most: usize, hold: usize) -> Vec<Job> {
        let mut dropped = std::mem::take(&mut self.refused);
        for _ in 0..most {
            let Some(job) = self.queue.pop_front() else { break };
            self.received += 1;
            match job.lane {
                Some(lane) if lane == self.me => self.accept(job),
                Some(lane) => self.hand_over(lane, job),
                None if self.places[job.shard.index()] == QueuePlace::Local => self.process(job),
                None if self.held[job.shard.index()].len() >= hold => dropped.push(job),
                None => self.route_to_owner(job),
            }
        }
        dropped
    }

    /// Processes a packet of a shard that is here, or hands it to where its flow is.
    fn process(&mut self, mut job: Job) {
        let Some(flows) = &mut self.flows else { return self.accept(job) };
        match flows.route(&job) {
            Route::Home => self.accept(job),
            Route::Away(to) => {
                job.lane = Some(to);
                self.hand_over(to, job);
            }
            Route::Returning if flows.held() < HELD => flows.hold(job),
            Route::Returning => self.refused.push(job),
        }
    }

    /// Processes a packet in the poll under way.
    pub(super) fn accept(&mut self, job: Job) {
        if self.meter.is_none() {
            self.counts.shards[job.shard.index()] += 1;
        }
        self.burst.push(job);
    }

    /// Counts the time that a packet of the poll under way takes.
    pub(super) fn count_time(&mut self, job: &Job, time: u64) {
        let work = match job.lane {
            None => &mut self.counts.shards,
            Some(_) => &mut self.counts.offloaded,
        };
        work.resize(self.places.len(), 0);
        work[job.shard.index()] += time;
    }

    /// Sends a control message behind all packets handed to its receiver.
    fn send_behind(&mut self, message: Option<(LaneId, u32)>) {
        if let Some((to, number)) = message {
            self.send(to, Message::Cycle(self.me, number));
        }
    }

    fn route_to_owner(&mut self, job: Job) {
        match self.places[job.shard.index()] {
            QueuePlace::Local => self.process(job),
            QueuePlace::Incoming => self.held[job.shard.index()].push_back(job),
            QueuePlace::Remote(owner) => self.hand_over(owner, job),
        }
    }

    fn hand_over(&mut self, to: LaneId, job: Job) {
        self.outbox.handed += 1;
        if self.meter.is_none() {
            self.counts.other += 1;
        }
        self.send(to, Message::Packet(job));
    }

    /// At the end of a poll, gives away the shards of which nothing is under way here any more.
    pub(super) fn release_shards(&mut self) {
        let (lanes, received, redirected) = (self.lanes, self.received, &mut self.redirected);
        let flows = &self.flows;
        let due: Vec<_> = self
            .releases
            .extract_if(.., |release| {
                let told = redirected[release.shard.index()] == lanes - 1;
                let home = flows.as_ref().is_none_or(|flows| !flows.has(release.shard));
                told && received >= release.watermark && home
            })
            .collect();
        for Release { shard, to, .. } in due {
            self.redirected[shard.index()] = 0;
            self.places[shard.index()] = QueuePlace::Remote(to);
            if let Some(flows) = &mut self.flows {
                flows.forget(shard);
            }
            self.owned -= 1;
            self.send(to, Message::Shard(shard));
            let others = (0..self.lanes).map(LaneId).filter(|lane| ![self.me, to].contains(lane));
            for lane in others.collect::<Vec<_>>() {
                self.send(lane, Message::Released(shard, to));
            }
        }
    }

    fn send(&mut self, to: LaneId, message: Message) {
        self.outbox.messages.push((to, message));
    }
}
