//! Metron's way: overloaded lanes are split, underloaded ones merged, in pairs.

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};

use super::balancing::parking;
use super::scaling::within_bounds;
use super::{
    Load, LoadSnapshot, Move, MoveReason, Plan, Policy, PolicyFacts, PolicyRegistration, Reason,
};

pub(super) const REGISTRATION: PolicyRegistration = PolicyRegistration {
    name: "traffic-class",
    summary: "half of a lane",
    facts: PolicyFacts { serves: false, ..PolicyFacts::MOVES_SHARDS },
    make: &|_| Box::new(TrafficClass::default()),
};

/// Dispatching by traffic class as Metron does it (Katsikas et al., NSDI 2018), as far as RSS++
/// describes it (sections 2 and 5.3), with shards for traffic classes.
///
/// A lane above the upper threshold gives half of its shards, counted and not weighed, to a new
/// lane, or when there is none, to the least loaded lane below the lower threshold. Two lanes below
/// the lower threshold become one, unless that one would be above the upper. A lane takes part in
/// one pair per plan. The load of single shards is not looked at, so half of the shards may carry
/// next to nothing or everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficClass {
    /// Lanes above this are split (75 %, the default `OVERLOAD` of the device balancer in
    /// FastClick, on which Metron and RSS++ were built).
    pub overload: Load,
    /// Lanes below this are merged (25 %, `UNDERLOAD`).
    pub underload: Load,
    /// How often to plan.
    pub period: Duration,
}

impl Default for TrafficClass {
    fn default() -> TrafficClass {
        TrafficClass {
            overload: Load::from_percent(75),
            underload: Load::from_percent(25),
            period: Duration::from_millis(100),
        }
    }
}

impl Policy for TrafficClass {
    fn name(&self) -> &'static str {
        "traffic-class"
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        match within_bounds(load) {
            Some(change) if !change.park.is_empty() => parking(now, load, change),
            Some(change) => {
                Plan { wake: change.wake, why: change.why.into_iter().collect(), ..Plan::default() }
            }
            None => self.pair_up(now, load),
        }
    }

    fn period(&self) -> Duration {
        self.period
    }
}

impl TrafficClass {
    fn pair_up(&self, now: Time, load: &LoadSnapshot) -> Plan {
        let awake = load.active().filter(|lane| !load.rests(*lane, now));
        let mut lanes: Vec<(Load, LaneId)> = awake.map(|lane| (load.load(lane), lane)).collect();
        lanes.sort_unstable();
        let below = lanes.iter().copied().take_while(|(load, _)| *load < self.underload);
        let mut underloaded: VecDeque<(Load, LaneId)> = below.collect();
        let mut plan = Plan::default();
        for (weight, lane) in lanes.iter().rev().copied() {
            if weight <= self.overload {
                break;
            }
            self.split(load, lane, &mut underloaded, &mut plan);
        }
        self.merge(load, underloaded, &mut plan);
        if plan.why.is_empty() {
            let squared = load.imbalance().squared;
            plan.why.push(Reason::Balanced { mean: load.mean(), squared });
        }
        plan
    }

    /// Gives the second half of a lane's shards to a parked lane, or to the least loaded one.
    fn split(
        &self,
        snapshot: &LoadSnapshot,
        from: LaneId,
        underloaded: &mut VecDeque<(Load, LaneId)>,
        plan: &mut Plan,
    ) {
        let (load, above) = (snapshot.load(from), self.overload);
        let shards: Vec<ShardId> = snapshot.shards_of(from).map(|(shard, _)| shard).collect();
        let room = snapshot.active().count() + plan.wake.len() < snapshot.bounds().max;
        let parked = snapshot.parked().nth(plan.wake.len()).filter(|_| room);
        let taker = match parked {
            _ if shards.len() < 2 => None,
            Some(lane) => {
                plan.wake.push(lane);
                Some(lane)
            }
            None => underloaded.pop_front().map(|(_, lane)| lane),
        };
        let Some(to) = taker else {
            plan.why.push(Reason::CannotSplit { lane: from, load, above });
            return;
        };
        let why = MoveReason::Split { load };
        let leaving = shards[shards.len().div_ceil(2)..].iter();
        plan.moves.extend(leaving.map(|shard| Move { shard: *shard, from, to, why }));
        plan.why.push(Reason::Split { lane: from, load, above });
    }

    /// Merges the least loaded lanes, two by two.
    fn merge(
        &self,
        snapshot: &LoadSnapshot,
        mut underloaded: VecDeque<(Load, LaneId)>,
        plan: &mut Plan,
    ) {
        let spare = snapshot.active().count() + plan.wake.len() - snapshot.bounds().min;
        while plan.park.len() < spare
            && let Some((load, from)) = underloaded.pop_front()
            && let Some((other, to)) = underloaded.pop_front()
        {
            let together = load + other;
            if together >= self.overload {
                break;
            }
            let why = MoveReason::Merge { load };
            let shards = snapshot.shards_of(from);
            plan.moves.extend(shards.map(|(shard, _)| Move { shard, from, to, why }));
            plan.park.push(from);
            let below = self.underload;
            plan.why.push(Reason::Merge { into: to, lane: from, load: together, below });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{LaneBounds, LaneLoad, ShardLoad};

    const NOW: Time = Time::from_secs(1);

    /// Active lanes with the given shards, in percent, and `parked` lanes.
    fn lanes(lanes: &[&[u64]], parked: usize) -> LoadSnapshot {
        let shards = (0..).map(LaneId).zip(lanes).flat_map(|(owner, shards)| {
            let load = |percent: &u64| Load::from_percent(*percent);
            shards.iter().map(move |percent| ShardLoad { owner, load: load(percent) })
        });
        let shards = shards.collect();
        let mut lanes = vec![LaneLoad::ACTIVE; lanes.len()];
        lanes.extend(vec![LaneLoad::PARKED; parked]);
        let bounds = LaneBounds { min: 1, max: lanes.len() };
        LoadSnapshot::new(lanes, shards, bounds, Duration::from_millis(100)).unwrap()
    }

    fn moves(plan: &Plan) -> Vec<(u16, u16, u16)> {
        plan.moves.iter().map(|each| (each.shard.0, each.from.0, each.to.0)).collect()
    }

    #[test]
    fn half_of_the_shards_go_whatever_they_weigh() {
        let mut policy = TrafficClass::default();
        let load = lanes(&[&[90, 1, 5], &[40], &[1, 1, 40, 50]], 1);
        let plan = policy.plan(NOW, &load);
        // The most loaded lane first; the only parked lane goes to it.
        assert_eq!(plan.wake, [LaneId(3)]);
        assert_eq!(moves(&plan), [(2, 0, 3)]);
        assert!(matches!(plan.why[1], Reason::CannotSplit { lane: LaneId(2), .. }));
        let after = load.after(&plan).unwrap();
        assert_eq!(
            after.load(LaneId(0)),
            Load::from_percent(91),
            "half of them was next to nothing"
        );
    }

    #[test]
    fn without_a_parked_lane_the_least_loaded_takes_half() {
        let load = lanes(&[&[50, 40], &[20], &[10]], 0);
        let plan = TrafficClass::default().plan(NOW, &load);
        assert_eq!(moves(&plan), [(1, 0, 2)]);
        assert!(plan.park.is_empty(), "lane 1 has no lane left to merge with");
    }

    #[test]
    fn a_lane_with_one_shard_cannot_be_split() {
        let plan = TrafficClass::default().plan(NOW, &lanes(&[&[95], &[60]], 1));
        assert!(plan.is_empty());
        assert!(matches!(plan.why[0], Reason::CannotSplit { lane: LaneId(0), .. }));
    }

    #[test]
    fn underloaded_lanes_are_merged_in_pairs() {
        let load = lanes(&[&[5, 5], &[20], &[1], &[24], &[2]], 0);
        let plan = TrafficClass::default().plan(NOW, &load);
        assert_eq!(moves(&plan), [(3, 2, 4), (0, 0, 1), (1, 0, 1)]);
        assert_eq!(plan.park, [LaneId(2), LaneId(0)]);
        assert!(load.after(&plan).is_ok());
        let load = lanes(&[&[50], &[20]], 0);
        assert!(TrafficClass::default().plan(NOW, &load).is_empty(), "one alone has no pair");
    }
}
