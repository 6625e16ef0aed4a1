//! What the balancing policies share: scaling first, then moves that even the load out, then
//! reasons.

use rheostat_base::{LaneId, Time};

use super::assignment::Assignment;
use super::scaling::Change;
use super::{Load, LoadSnapshot, MoveReason, Plan, Reason, Scaling, SquaredLoad};

/// Evens the load of lanes out.
pub(super) trait Solver {
    /// Shifts shards between the movable lanes so that the squared imbalance falls, or does
    /// nothing. Returns how many attempts or steps it took.
    fn solve(&self, assignment: &mut Assignment<'_>) -> usize;

    /// How far from the mean a lane may be and pass for balanced, as a share of the mean.
    fn tolerance(&self) -> Load;
}

/// The plan of a policy that scales by `scaling` and balances by `solver`.
pub(super) fn plan(
    solver: &impl Solver,
    scaling: &Scaling,
    now: Time,
    load: &LoadSnapshot,
) -> Plan {
    let change = scaling.change(now, load);
    if !change.park.is_empty() {
        return parking(now, load, change);
    }
    let attempt = Attempt::new(solver, now, load, &change.wake);
    let mut why: Vec<Reason> = change.why.into_iter().collect();
    // A lane that would get nothing, because the load cannot be divided further, is left asleep.
    let idle = |lane: &LaneId| !attempt.assignment.owns_any(*lane);
    if !change.forced && change.wake.iter().any(idle) {
        why = vec![Reason::CannotScaleOut { mean: load.mean(), target: scaling.target }];
        return Attempt::new(solver, now, load, &[]).into_plan(load, why);
    }
    Plan { wake: change.wake, ..attempt.into_plan(load, why) }
}

/// Parks the lanes of `change`.
pub(super) fn parking(now: Time, load: &LoadSnapshot, change: Change) -> Plan {
    let mut assignment = Assignment::new(now, load);
    assignment.park(&change.park, &change.takers);
    Plan {
        moves: assignment.moves(|_| MoveReason::Parking),
        park: change.park,
        why: change.why.into_iter().collect(),
        ..Plan::default()
    }
}

/// The outcome of a solver.
struct Attempt<'a> {
    assignment: Assignment<'a>,
    mean: Load,
    before: SquaredLoad,
    steps: usize,
    tolerance: Load,
    resting: usize,
}

impl<'a> Attempt<'a> {
    fn new(
        solver: &impl Solver,
        now: Time,
        load: &'a LoadSnapshot,
        wake: &[LaneId],
    ) -> Attempt<'a> {
        let mut assignment = Assignment::new(now, load);
        for lane in wake {
            assignment.wake(*lane);
        }
        let (mean, before) = (assignment.mean(), assignment.squared());
        let resting = assignment.active().len() - assignment.movable().count();
        let steps = solver.solve(&mut assignment);
        Attempt { assignment, mean, before, steps, tolerance: solver.tolerance(), resting }
    }

    fn into_plan(self, load: &LoadSnapshot, mut why: Vec<Reason>) -> Plan {
        let Attempt { assignment, mean, before, steps, resting, .. } = &self;
        let (mean, before, steps) = (*mean, *before, *steps);
        let moves = assignment.moves(|lane| {
            let load = load.load(lane);
            if load > mean {
                MoveReason::Overloaded { load, mean }
            } else {
                MoveReason::Exchange { load }
            }
        });
        let limit = mean + mean.times(self.tolerance);
        let uneven = assignment.active().iter().any(|lane| assignment.load(*lane) > limit);
        if !moves.is_empty() {
            why.push(Reason::Rebalanced { mean, before, after: assignment.squared(), steps });
        } else if uneven {
            why.push(Reason::NoBetter { squared: before, steps });
        } else {
            why.push(Reason::Balanced { mean, squared: before });
        }
        if *resting > 0 {
            why.push(Reason::Resting { lanes: *resting });
        }
        self.name_indivisible(mean, limit, &mut why);
        Plan { moves, why, ..Plan::default() }
    }

    /// Names the lanes that stay above the limit because one of their shards alone would.
    fn name_indivisible(&self, mean: Load, limit: Load, why: &mut Vec<Reason>) {
        let shards = self.assignment.loaded_shards();
        for lane in self.assignment.active() {
            let (lane, load) = (*lane, self.assignment.load(*lane));
            let heaviest = shards[lane.index()].first();
            if let Some((weight, shard)) = heaviest.filter(|(weight, _)| *weight > limit) {
                let (weight, shard) = (*weight, *shard);
                why.push(Reason::OneShard { lane, load, shard, weight, mean });
            }
        }
    }
}
