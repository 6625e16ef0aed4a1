//! Steepest descent on the squared imbalance.

mod returning;

use std::cmp::Reverse;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};

use super::assignment::Assignment;
use super::balancing::{self, Solver};
use super::{Imbalance, Load, LoadSnapshot, Pace, Plan, Policy, Scaling, SquaredLoad};

pub use returning::Returning;

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
        let mut descent = Descent::new(assignment, self);
        let loaded: usize = descent.lanes.iter().map(|lane| lane.shards.len()).sum();
        let mut steps = 0;
        while steps < loaded * self.steps_per_shard && descent.step(self.hottest) {
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
fn changeable(lanes: &[Lane], mean: Load) -> SquaredLoad {
    let stuck = |lane: &Lane| lane.shards.len() == 1 && lane.load > mean.nanos_per_second();
    let loads = lanes.iter().filter(|lane| !stuck(lane));
    let loads: Vec<Load> = loads.map(|lane| Load::from_nanos_per_second(lane.load)).collect();
    Imbalance::of(&loads).squared
}

/// The state of the search. Loads are plain nanoseconds per second here; they are below 2⁶⁰, and
/// products below 2¹²⁰.
#[derive(Debug)]
struct Descent {
    /// The movable lanes, the most loaded first, between equals the lower number.
    lanes: Vec<Lane>,
    /// What a step has to gain for each shard it moves.
    worthwhile: u128,
}

#[derive(Debug)]
struct Lane {
    id: LaneId,
    load: u64,
    /// Those with any load, the lightest first.
    shards: Vec<(u64, ShardId)>,
}

/// A shard of `from` goes to `to`, and perhaps another one back: places in the lists of lanes and
/// shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    from: usize,
    to: usize,
    there: usize,
    back: Option<usize>,
}

/// The best step so far.
#[derive(Default)]
struct Best {
    gain: u128,
    step: Option<Step>,
}

impl Best {
    /// Keeps the first of equals.
    fn offer(&mut self, gain: u128, step: Step) {
        if gain > self.gain {
            *self = Best { gain, step: Some(step) };
        }
    }
}

/// By how much it lowers the sum of squares to move `weight` between lanes that differ by
/// `difference`.
fn gain(weight: u64, difference: u64) -> u128 {
    2 * u128::from(weight) * u128::from(difference.saturating_sub(weight))
}

impl Descent {
    fn new(assignment: &Assignment<'_>, settings: &LocalSearch) -> Descent {
        let mut shards = assignment.loaded_shards();
        let lanes = assignment.movable().map(|id| {
            let shards = std::mem::take(&mut shards[id.index()]);
            let shards = shards.into_iter().map(|(load, shard)| (load.nanos_per_second(), shard));
            let mut shards: Vec<_> = shards.collect();
            shards.sort_unstable();
            Lane { id, load: assignment.load(id).nanos_per_second(), shards }
        });
        let mut lanes: Vec<_> = lanes.collect();
        lanes.sort_unstable_by_key(|lane| (Reverse(lane.load), lane.id));
        let mean = assignment.mean();
        let near = mean.times(settings.tolerance).nanos_per_second();
        let share = changeable(&lanes, mean).get() / u128::from(settings.one_in.max(1));
        let returning =
            settings.returning.mean.get() / u128::from(settings.one_in_returning.max(1));
        Descent { lanes, worthwhile: gain(near, 2 * near).max(share).max(returning) }
    }

    /// Makes the best step; false if none is worth it.
    fn step(&mut self, hottest: usize) -> bool {
        let mut best = Best::default();
        self.pairs(hottest, |from, to| self.best_move(from, to, &mut best));
        if best.gain <= self.worthwhile {
            best = Best::default();
            self.pairs(hottest, |from, to| self.best_exchange(from, to, &mut best));
        }
        let Some(step) = best.step else { return false };
        let shards = if step.back.is_some() { 2 } else { 1 };
        if best.gain <= shards * self.worthwhile {
            return false;
        }
        self.make(step);
        true
    }

    /// Calls `look` with each of the hottest lanes that has a shard to give and each cooler lane.
    fn pairs(&self, hottest: usize, mut look: impl FnMut(usize, usize)) {
        // A lane with a single loaded shard can only pass its trouble on.
        let giving = (0..self.lanes.len()).filter(|from| self.lanes[*from].shards.len() > 1);
        for from in giving.take(hottest) {
            let cooler = (from + 1..self.lanes.len()).rev();
            for to in cooler.filter(|to| self.lanes[*to].load < self.lanes[from].load) {
                look(from, to);
            }
        }
    }

    /// The move nearest half the difference lies on one side of it or the other.
    fn best_move(&self, from: usize, to: usize, best: &mut Best) {
        let (hot, cool) = (&self.lanes[from], &self.lanes[to]);
        let difference = hot.load - cool.load;
        let middle = hot.shards.partition_point(|(weight, _)| *weight <= difference / 2);
        for there in middle.saturating_sub(1)..(middle + 1).min(hot.shards.len()) {
            let step = Step { from, to, there, back: None };
            best.offer(gain(hot.shards[there].0, difference), step);
        }
    }

    /// The heavier the shard that goes, the heavier the one to return: one pass over both lists.
    fn best_exchange(&self, from: usize, to: usize, best: &mut Best) {
        let (hot, cool) = (&self.lanes[from], &self.lanes[to]);
        let difference = hot.load - cool.load;
        let mut back = 0;
        for (there, (weight, _)) in hot.shards.iter().enumerate() {
            // The first that is heavy enough to leave no more than half the difference, and the one
            // before.
            let heavy = |other: u64| weight.saturating_sub(other) <= difference / 2;
            while back < cool.shards.len() && !heavy(cool.shards[back].0) {
                back += 1;
            }
            for back in back.saturating_sub(1)..(back + 1).min(cool.shards.len()) {
                let net = weight.saturating_sub(cool.shards[back].0);
                let step = Step { from, to, there, back: Some(back) };
                best.offer(gain(net, difference), step);
            }
        }
    }

    fn make(&mut self, step: Step) {
        let returned = step.back.map(|back| self.lanes[step.to].shards.remove(back));
        let given = self.lanes[step.from].shards.remove(step.there);
        self.lanes[step.to].insert(given);
        self.lanes[step.from].load -= given.0;
        if let Some(returned) = returned {
            self.lanes[step.from].insert(returned);
            self.lanes[step.to].load -= returned.0;
        }
        self.lanes.sort_by_key(|lane| (Reverse(lane.load), lane.id));
    }
}

impl Lane {
    /// Adds a shard.
    fn insert(&mut self, shard: (u64, ShardId)) {
        self.shards.insert(self.shards.partition_point(|other| *other < shard), shard);
        self.load += shard.0;
    }
}

#[cfg(test)]
mod tests;
