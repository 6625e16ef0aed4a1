//! What an assignment comes to on each lane, and what that violates.

use super::super::Load;
use super::{LaneSetting, Problem, ShardDemand};

/// What lanes may have, in nanoseconds per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caps {
    pub(super) working: u64,
    pub(super) offloading: u64,
    /// Working lanes per offloading lane at least.
    pub(super) links: u32,
}

/// What a working lane without a shard, or a missing link, counts as violation: a full lane.
const STRUCTURE: u64 = Load::FULL.nanos_per_second();

/// Sums of a working lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneSum {
    /// Of its shards.
    pub(super) load: u64,
    /// What of it may leave.
    pub(super) may_leave: u64,
    pub(super) shards: u32,
    pub(super) link: Option<u16>,
    /// What it has too much of and cannot send away.
    pub(super) stuck: u64,
    /// What it sends away.
    pub(super) away: u64,
}

/// Sums of an offloading lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offloader {
    pub(super) load: u64,
    pub(super) links: u32,
}

impl LaneSum {
    pub(super) fn take(&mut self, demand: &ShardDemand) {
        self.load += demand.load.nanos_per_second();
        self.may_leave += demand.may_leave.nanos_per_second();
        self.shards += 1;
    }

    pub(super) fn give(&mut self, demand: &ShardDemand) {
        self.load -= demand.load.nanos_per_second();
        self.may_leave -= demand.may_leave.nanos_per_second();
        self.shards -= 1;
    }
}

impl Caps {
    /// While the number of lanes is open.
    pub(super) fn planned(problem: &Problem) -> Caps {
        let setting = problem.setting();
        Caps::of(setting, setting.working.planned(), setting.offloading.planned())
    }

    /// While the number of lanes stands.
    pub(super) fn transient(problem: &Problem) -> Caps {
        let setting = problem.setting();
        Caps::of(setting, setting.working.transient(), setting.offloading.transient())
    }

    /// Without bounds on the load.
    pub(super) fn unbounded(problem: &Problem) -> Caps {
        let bounded = Caps::planned(problem);
        Caps { working: u64::MAX, offloading: u64::MAX, ..bounded }
    }

    fn of(setting: &LaneSetting, working: Load, offloading: Load) -> Caps {
        let links = u32::try_from(setting.min_working_per_offloading).unwrap_or(u32::MAX);
        Caps {
            working: working.nanos_per_second(),
            offloading: offloading.nanos_per_second(),
            links,
        }
    }

    /// Decides what leaves the lane.
    pub(super) fn settle(&self, lane: &mut LaneSum) {
        let over = lane.load.saturating_sub(self.working);
        lane.away = if lane.link.is_some() { over.min(lane.may_leave) } else { 0 };
        lane.stuck = over - lane.away;
    }

    pub(super) fn of_lane(&self, lane: &LaneSum) -> u64 {
        lane.stuck + if lane.shards == 0 { STRUCTURE } else { 0 }
    }

    pub(super) fn of_offloader(&self, offloader: &Offloader) -> u64 {
        let missing = self.links.saturating_sub(offloader.links);
        offloader.load.saturating_sub(self.offloading) + STRUCTURE * u64::from(missing)
    }
}
