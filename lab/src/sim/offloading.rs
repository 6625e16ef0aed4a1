//! Flows that leave a working lane of a simulation and come back, in order.

use std::collections::{HashMap, HashSet, VecDeque};

use rheostat_base::{LaneId, ShardId};
use rheostat_state::SpaceSaving;
use rheostat_steer::policy::{Load, pick_flows};

use super::lane::Job;

/// Flows that a lane tells apart.
const TRACKED: usize = 256;
/// One packet in so many is counted for its flow.
const SAMPLE: u32 = 4;
/// Flows of less than this part of a shard are not reported: handing them over would gain nothing.
const FEWEST: Load = Load::from_percent(1);
/// What a packet counts beside its bytes.
const PACKET: u64 = 256;

/// Where a packet of a shard that is here goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// It is processed here.
    Home,
    /// Its flow was handed to this lane.
    Away(LaneId),
    /// Its flow is coming back: it waits.
    Returning,
}

/// The flows of one working lane: which are heavy, which are away, which are coming back.
///
/// A flow begins to leave between two packets: those before it are processed here, and leave when the poll ends, before the
/// other lane hears of the first one handed over. It comes back behind a control message that follows its last packet through
/// the other lane: until that returns, its packets wait.
#[derive(Debug)]
pub(super) struct OffloadedFlows {
    heavy: SpaceSaving<u32>,
    /// By shard: everything counted, aged as the flows.
    totals: Vec<u64>,
    sample: u32,
    to: Option<LaneId>,
    away: HashSet<u32>,
    /// With the number of the control message that each waits for.
    returning: HashMap<u32, u32>,
    /// Their packets.
    held: VecDeque<Job>,
    /// Control messages so far; the last one's number.
    pub(super) messages: u32,
    /// Flows that left and that came home, so far.
    pub(super) left: u64,
    pub(super) returned: u64,
}

impl OffloadedFlows {
    pub(super) fn new(shards: usize) -> OffloadedFlows {
        OffloadedFlows {
            heavy: SpaceSaving::new(TRACKED),
            totals: vec![0; shards],
            sample: 0,
            to: None,
            away: HashSet::new(),
            returning: HashMap::new(),
            held: VecDeque::new(),
            messages: 0,
            left: 0,
            returned: 0,
        }
    }

    fn shard(&self, flow: u32) -> ShardId {
        ShardId((flow as usize & (self.totals.len() - 1)) as u16)
    }

    /// Where a packet of a shard that is here goes; counts it.
    pub(super) fn route(&mut self, job: &Job) -> Route {
        self.sample += 1;
        if self.sample.is_multiple_of(SAMPLE) {
            let weight = PACKET + u64::from(job.bytes);
            self.totals[job.shard.index()] += weight;
            if !job.priority {
                self.heavy.add(job.hash, weight);
            }
        }
        if !self.returning.is_empty() && self.returning.contains_key(&job.hash) {
            return Route::Returning;
        }
        match self.to {
            Some(to) if self.away.contains(&job.hash) => Route::Away(to),
            _ => Route::Home,
        }
    }

    /// A packet waits for its flow.
    pub(super) fn hold(&mut self, job: Job) {
        self.held.push_back(job);
    }

    /// How many packets wait.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// The heaviest flows with their parts of their shards, surely no less.
    pub(super) fn heavy(&self) -> Vec<(u32, ShardId, Load)> {
        let of = |(flow, count): (u32, rheostat_state::space_saving::Estimate)| {
            let shard = self.shard(flow);
            let part = Load::FULL.part(count.least(), self.totals[shard.index()]).min(Load::FULL);
            (flow, shard, part)
        };
        let mut heavy: Vec<_> = self.heavy.iter().map(of).filter(|flow| flow.2 >= FEWEST).collect();
        heavy.sort_unstable_by_key(|(flow, shard, _)| (*shard, *flow));
        heavy
    }

    /// An epoch ends.
    pub(super) fn age(&mut self) {
        self.heavy.age();
        self.totals.iter_mut().for_each(|total| *total /= 2);
    }

    /// Forgets what was counted for a shard that leaves.
    pub(super) fn forget(&mut self, shard: ShardId) {
        self.totals[shard.index()] = 0;
    }

    /// Flows that make up so much of each shard are to be at `to`; only those of shards that `stays` may leave. Returns
    /// the lane that a control message goes to, with its number, if flows come home first.
    pub(super) fn change(
        &mut self,
        to: Option<LaneId>,
        shares: &[Load],
        stays: impl Fn(ShardId) -> bool,
    ) -> Option<(LaneId, u32)> {
        let mut wanted = HashSet::new();
        let heavy = self.heavy();
        for of_shard in heavy.chunk_by(|one, other| one.1 == other.1) {
            let shard = of_shard[0].1;
            let share = shares[shard.index()];
            if to.is_some() && share > Load::ZERO && stays(shard) {
                let parts: Vec<Load> = of_shard.iter().map(|flow| flow.2).collect();
                wanted.extend(pick_flows(&parts, share).into_iter().map(|flow| of_shard[flow].0));
            }
        }
        let stay = |flow: &u32| self.to == to && wanted.contains(flow);
        let home: Vec<u32> = self.away.iter().copied().filter(|flow| !stay(flow)).collect();
        let message = self.recall(&home);
        wanted.retain(|flow| !self.returning.contains_key(flow));
        self.left += wanted.difference(&self.away).count() as u64;
        self.away.extend(wanted);
        self.to = to;
        message
    }

    /// Flows of this shard come home, because it moves. As [`OffloadedFlows::change`].
    pub(super) fn recall_shard(&mut self, shard: ShardId) -> Option<(LaneId, u32)> {
        let of_shard = |flow: &u32| self.shard(*flow) == shard;
        let home: Vec<u32> = self.away.iter().copied().filter(of_shard).collect();
        self.recall(&home)
    }

    fn recall(&mut self, flows: &[u32]) -> Option<(LaneId, u32)> {
        let to = self.to.filter(|_| !flows.is_empty())?;
        self.messages += 1;
        for flow in flows {
            self.away.remove(flow);
            self.returning.insert(*flow, self.messages);
        }
        Some((to, self.messages))
    }

    /// The control message of this number has returned: its flows are home. Returns their packets, in order.
    pub(super) fn come_home(&mut self, message: u32) -> Vec<Job> {
        let returning = &self.returning;
        let is_home = |job: &mut Job| returning.get(&job.hash) == Some(&message);
        let mut home = Vec::new();
        let mut waiting = VecDeque::new();
        for mut job in self.held.drain(..) {
            if is_home(&mut job) { home.push(job) } else { waiting.push_back(job) }
        }
        self.held = waiting;
        let before = self.returning.len();
        self.returning.retain(|_, waits_for| *waits_for != message);
        self.returned += (before - self.returning.len()) as u64;
        home
    }

    /// Whether a flow of this shard is away or coming back.
    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.away.iter().chain(self.returning.keys()).any(|flow| self.shard(*flow) == shard)
    }
}
