//! What a plan is made from.

use rheostat_base::LaneId;

use super::super::queue_model::{QueueFigures, limit};
use super::super::{
    FlowAssignment, LaneLimit, LaneRole, LaneSetting, Problem, ShardDemand, WaitModel,
};
use super::Dyssect;
use crate::policy::{Class, LaneState, Load, LoadSnapshot};

/// A lane with this much load is taken for full.
const FULL: Load = Load::from_percent(97);

/// What a plan is made from.
pub(super) struct Situation {
    pub(super) demands: Vec<ShardDemand>,
    pub(super) previous: FlowAssignment,
    pub(super) working: LaneLimit,
    pub(super) offloading: LaneLimit,
    /// Classes whose objectives no load would meet.
    pub(super) out_of_reach: Vec<Class>,
}

impl Situation {
    /// `None` where there is no shard to plan for.
    pub(super) fn of(policy: &Dyssect, load: &LoadSnapshot) -> Option<Situation> {
        if load.shards().is_empty() {
            return None;
        }
        let by = (&policy.objectives, &policy.corrections);
        let working: Vec<LaneId> = load.active().collect();
        let mut offloading: Vec<LaneId> = load.offloading().collect();
        if QueueFigures::of(load, offloading.iter().copied()).is_none() {
            offloading.clone_from(&working);
        }
        let highest = policy.highest.min(Load::FULL);
        let (working, no_priority) = limit(load, by, (&working, &Class::ALL), highest);
        let (offloading, no_regular) = limit(load, by, (&offloading, &[Class::Regular]), highest);
        let mut out_of_reach: Vec<Class> = no_priority.into_iter().chain(no_regular).collect();
        out_of_reach.dedup();
        let demands = demands(load, policy.offloading > 0);
        Some(Situation { demands, previous: previous(load), working, offloading, out_of_reach })
    }

    /// The problem on `lanes` lanes, with loads and capacities times these factors.
    pub(super) fn problem(
        &self,
        policy: &Dyssect,
        lanes: usize,
        growth: f64,
        room: Load,
    ) -> Option<Problem> {
        let grown = |load: Load| Load::from_share(load.share() * growth).unwrap_or(Load::MAX);
        let demand = |demand: &ShardDemand| {
            let load = grown(demand.load);
            ShardDemand { load, may_leave: grown(demand.may_leave).min(load) }
        };
        let limit = |limit: LaneLimit| {
            let wait = limit.wait.map(|wait| {
                let objective = wait.objective.mul_f64(room.share());
                WaitModel { objective, ..wait }
            });
            LaneLimit { wait, highest: limit.highest }
        };
        let setting = LaneSetting {
            lanes,
            working: limit(self.working),
            offloading: limit(self.offloading),
            min_working_per_offloading: policy.min_working_per_offloading.max(1),
        };
        Problem::new(self.demands.iter().map(demand).collect(), setting).ok()
    }
}

/// The work of each shard. What lanes do for none of their shards, such as handing flows over, is spread over these by
/// their load: it goes with them. A full lane drops what it cannot do, so that its shards need more than they were seen to
/// take; a quarter more is assumed, and the next plan sees whether that was enough.
fn demands(load: &LoadSnapshot, may_leave: bool) -> Vec<ShardDemand> {
    let mut sums = vec![Load::ZERO; load.lanes().len()];
    for shard in load.shards() {
        sums[shard.owner.index()] += shard.load;
    }
    let leaving = load.may_leave().into_iter();
    let demands = load.shards().iter().zip(leaving).map(|(shard, leaving)| {
        let lane = shard.owner.index();
        let other = load.lanes()[lane].other;
        let own = shard.load.nanos_per_second();
        let full = load.load(shard.owner) >= FULL;
        let seen = shard.load + other.part(own, sums[lane].nanos_per_second());
        let load = if full { seen + seen.part(1, 4) } else { seen };
        ShardDemand { load, may_leave: if may_leave { leaving.min(load) } else { Load::ZERO } }
    });
    demands.collect()
}

/// What there is.
fn previous(load: &LoadSnapshot) -> FlowAssignment {
    let role = |state| match state {
        LaneState::Active => LaneRole::Working,
        LaneState::Offloading => LaneRole::Offloading,
        LaneState::Parked => LaneRole::Idle,
    };
    FlowAssignment {
        roles: load.lanes().iter().map(|lane| role(lane.state)).collect(),
        home: load.shards().iter().map(|shard| shard.owner).collect(),
        links: load.offloads().links.clone(),
        offloaded: load.offloads().shares.clone(),
    }
}
