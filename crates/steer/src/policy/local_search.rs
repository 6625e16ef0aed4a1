//! Steepest descent on the squared imbalance.

mod returning;

use std::time::Duration;

use rheostat_base::Time;

use super::assignment::Assignment;
use super::balancing::{self, Solver};
use super::descent::{Descent, DescentLane, gain};
use super::{
    Imbalance, Load, LoadSnapshot, Pace, Plan, Policy, PolicyFacts, PolicyRegistration, Scaling,
    SquaredLoad,
};

pub use returning::Returning;

pub(super) const REGISTRATION: PolicyRegistration = PolicyRegistration {
    name: "local-search",
    summary: "the most even loads",
    facts: PolicyFacts::MOVES_SHARDS,
    make: &|settings| Box::new(LocalSearch { scaling: settings.scaling, ..LocalSearch::default() }),
};

/// Local search: each step makes the move that lowers the squared imbalance most.
///
/// To move load w from one lane to another that has d less lowers the sum of squares by
/// 2·w·(d − w), most at w = d/2. So for each of the hottest lanes and each cooler one, the shard
/// nearest half their difference is looked up. When no move gains enough, an exchange of two
/// shards is looked for in the same way, with the difference of their loads as w.
///
/// The search ends when no step is worth its migrations, each of which has a price as in the second
/// term of RSS++'s objective (3.1). The price is a share of the imbalance there is at first, so a
/// plan makes the coarse moves and leaves finer ones to the next plan, and it is never less
/// than what the tolerance states is noise. Nor is it less than a share of the imbalance that comes
/// back by itself from plan to plan, or every plan would run after the fluctuations of the last
/// period.
///
/// The same scaling rules as [`Rsspp`](super::Rsspp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSearch {
    /// How far around the mean, as a share of it, a lane passes for balanced. A migration has to
    /// gain at least what it gains to even out two lanes this far above and below the mean.
    pub tolerance: Load,
    /// A migration has to remove at least one part in so many of the squared imbalance there is
    /// at first. 512 makes about as many moves per plan as RSS++ does (measured, see
    /// `docs/policies.md`); more makes more moves and a better balance.
    pub one_in: u32,
    /// A migration has to remove at least one part in so many of the squared imbalance that comes
    /// back by itself. 3 makes about as many moves as RSS++ does under loads that fluctuate
    /// (simulated, see `docs/policies.md`).
    pub one_in_returning: u32,
    /// The squared imbalance that comes back by itself, as far as plans so far have shown.
    pub returning: Returning,
    /// How many lanes a step looks at, the most loaded of those with more than one shard.
    pub hottest: usize,
    /// The most steps, per loaded shard.
    pub steps_per_shard: usize,
    /// When lanes are added and parked.
    pub scaling: Scaling,
    /// How often to plan.
    pub pace: Pace,
}

impl Default for LocalSearch {
    fn default() -> LocalSearch {
        LocalSearch {
            tolerance: Load::from_percent(1),
            one_in: 512,
            one_in_returning: 3,
            returning: Returning::default(),
            hottest: 4,
            steps_per_shard: 2,
            scaling: Scaling::default(),
            pace: Pace::default(),
        }
    }
}

impl Policy for LocalSearch {
    fn name(&self) -> &'static str {
        "local-search"
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        self.returning.found(load.imbalance().squared);
        let plan = balancing::plan(self, &self.scaling, now, load);
        self.returning.planned(load.imbalance().squared, &plan);
        self.pace.planned(load, &plan);
        plan
    }

    fn period(&self) -> Duration {
        self.pace.period()
    }
}

impl Solver for LocalSearch {
    fn solve(&self, assignment: &mut Assignment<'_>) -> usize {
        let mut descent = descent(assignment, self);
        let loaded: usize = descent.lanes.iter().map(|lane| lane.shards.len()).sum();
        let mut steps = 0;
        while steps < loaded * self.steps_per_shard && descent.step(self.hottest).is_some() {
            steps += 1;
        }
        for lane in descent.lanes {
            for (_, shard) in lane.shards {
                assignment.shift(shard, lane.id);
            }
        }
        steps
    }

    fn tolerance(&self) -> Load {
        self.tolerance
    }
}

/// The squared imbalance among the lanes without those that are overloaded by a single shard: about
/// them nothing can be done.
fn changeable(lanes: &[DescentLane], mean: Load) -> SquaredLoad {
    let stuck = |lane: &DescentLane| lane.shards.len() == 1 && lane.load > mean.nanos_per_second();
    let loads = lanes.iter().filter(|lane| !stuck(lane));
    let loads: Vec<Load> = loads.map(|lane| Load::from_nanos_per_second(lane.load)).collect();
    Imbalance::of(&loads).squared
}

fn descent(assignment: &Assignment<'_>, settings: &LocalSearch) -> Descent {
    let mut shards = assignment.loaded_shards();
    let lanes = assignment.movable().map(|id| {
        let shards = std::mem::take(&mut shards[id.index()]);
        let shards = shards.into_iter().map(|(load, shard)| (load.nanos_per_second(), shard));
        let load = assignment.load(id).nanos_per_second();
        DescentLane { id, load, parts: 1, shards: shards.collect() }
    });
    let lanes: Vec<DescentLane> = lanes.collect();
    let mean = assignment.mean();
    let near = mean.times(settings.tolerance).nanos_per_second();
    let share = changeable(&lanes, mean).get() / u128::from(settings.one_in.max(1));
    let returning = settings.returning.mean.get() / u128::from(settings.one_in_returning.max(1));
    Descent::new(lanes, gain(near, 2 * near).max(share).max(returning))
}

#[cfg(test)]
mod tests;
