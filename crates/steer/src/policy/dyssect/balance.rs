//! Loads as even as can be, with given numbers of lanes (Table 5.4).

use rheostat_base::{LaneId, ShardId};

use super::super::descent::{Descent, DescentLane, Made};
use super::super::{Load, SquaredLoad};
use super::adoption::Adopted;
use super::answer::Balanced;
use super::feasible::{Model, violations};
use super::level::{Levels, Member, level_of, members};
use super::placement::{DyssectPlacement, Edit};
use super::repair::repair;
use super::sums::Caps;
use super::{Budget, Counts, FlowAssignment, Problem, ProblemError};

/// How many lanes a step takes shards from.
const HOTTEST: usize = 4;

/// What is to be even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceGoal {
    /// T: what every lane should have. All work is done by some lane, so the target moves the
    /// objective of all assignments by the same and does not change which one is best.
    pub target: Load,
    /// α: a change has to lower the sum of squares by more than this.
    pub price: SquaredLoad,
}

/// Lanes' loads as near the target as is found, where every change has its price (5.21).
///
/// Working lanes that share an offloading lane send it so much that all have the same, as far as
/// flows may leave. Then shards are moved and exchanged by steepest descent, as the policy
/// `local-search` does; a group that divides evenly what it gets counts as one wide lane. A step
/// that makes nothing better when all is levelled again is taken back, and the search ends.
///
/// # Errors
/// [`ProblemError`] when `previous` or `counts` do not fit the problem.
pub fn balance(
    problem: &Problem,
    previous: &FlowAssignment,
    counts: Counts,
    goal: BalanceGoal,
    mut budget: Budget,
) -> Result<Balanced, ProblemError> {
    problem.check_previous(previous)?;
    problem.check_counts(counts)?;
    let adopted = Adopted::new(problem, Caps::unbounded(problem), previous, counts);
    let mut placement = adopted.placement.clone();
    // Lanes without a shard and missing links.
    repair(&mut placement, &mut budget, false);
    let mut levels = Levels::of(&placement);
    link(&mut placement, &mut levels, goal, &mut budget);
    descend(&mut placement, &mut levels, goal, &mut budget);
    let assignment = placement.with_offloaded(
        problem,
        &adopted.working,
        &adopted.offloading,
        &levels.away(&placement),
    );
    Ok(Balanced {
        squared: levels.loads(&placement).map(|load| distance(load, goal.target)).sum(),
        bound: least(problem, counts, goal.target),
        changes: assignment.changes_since(previous),
        violations: violations(problem, Model::Balance(counts), &assignment),
        steps: budget.spent(),
        is_cut: budget.is_used_up(),
        assignment,
    })
}

fn distance(load: u64, target: Load) -> SquaredLoad {
    SquaredLoad::square(load.abs_diff(target.nanos_per_second()))
}

/// Gives working lanes without an offloading lane one, where that is worth a change: the most
/// loaded first.
fn link(
    placement: &mut DyssectPlacement<'_>,
    levels: &mut Levels,
    goal: BalanceGoal,
    budget: &mut Budget,
) {
    let mut free: Vec<usize> =
        (0..placement.lanes.len()).filter(|lane| placement.lanes[*lane].link.is_none()).collect();
    free.sort_by_key(|lane| std::cmp::Reverse(placement.lanes[*lane].load));
    for lane in free {
        let alone = u128::from(placement.lanes[lane].load).pow(2);
        let mut best = (goal.price.get(), None);
        for group in 0..placement.offloaders.len() as u16 {
            if !budget.spend(placement.lanes.len()) {
                return;
            }
            let before = alone + levels.squares(placement, &[Some(group)]);
            placement.make(Edit::Link(lane as u16, Some(group)));
            let level = std::mem::replace(
                &mut levels.0[usize::from(group)],
                level_of(placement, usize::from(group)),
            );
            let gain = before.saturating_sub(levels.squares(placement, &[Some(group)]));
            placement.make(Edit::Link(lane as u16, None));
            levels.0[usize::from(group)] = level;
            if gain > best.0 {
                best = (gain, Some(group));
            }
        }
        if let (_, Some(group)) = best {
            placement.make(Edit::Link(lane as u16, Some(group)));
            levels.0[usize::from(group)] = level_of(placement, usize::from(group));
        }
    }
}

fn descend(
    placement: &mut DyssectPlacement<'_>,
    levels: &mut Levels,
    goal: BalanceGoal,
    budget: &mut Budget,
) {
    let lanes = placement.lanes.iter().enumerate().map(|(number, _)| {
        let shards = placement.shards[number].iter().map(|shard| (placement.load(*shard), *shard));
        let shards = shards.filter(|(load, _)| *load > 0);
        let shards = shards.map(|(load, shard)| (load, ShardId(shard))).collect();
        DescentLane { id: LaneId(number as u16), load: 0, parts: 1, shards }
    });
    let mut descent = Descent::new(lanes.collect(), goal.price.get());
    show(placement, levels, &mut descent);
    let mut left = 2 * placement.home.len();
    let cost = HOTTEST * placement.lanes.len();
    while left > 0 && budget.spend(cost) {
        left -= 1;
        let Some(made) = descent.step(HOTTEST) else { return };
        let groups = groups(placement, made);
        let before = levels.squares(placement, &groups) + alone(placement, made);
        let edit = carry(placement, made);
        if groups == [None; 2] {
            continue;
        }
        let old: Vec<u64> = levels.0.clone();
        for group in groups.iter().flatten() {
            levels.0[usize::from(*group)] = level_of(placement, usize::from(*group));
        }
        let after = levels.squares(placement, &groups) + alone(placement, made);
        let shards: u128 = if made.returned.is_some() { 2 } else { 1 };
        if before.saturating_sub(after) <= shards.saturating_mul(goal.price.get()) {
            placement.make(edit);
            levels.0 = old;
            descent.take_back(made);
            return;
        }
        show(placement, levels, &mut descent);
    }
}

/// The groups of the lanes of a step, each once.
fn groups(placement: &DyssectPlacement<'_>, made: Made) -> [Option<u16>; 2] {
    let link = |lane: LaneId| placement.lanes[lane.index()].link;
    let (from, to) = (link(made.from), link(made.to));
    [from, to.filter(|_| from != to)]
}

/// The squares of those lanes of a step that have no group.
fn alone(placement: &DyssectPlacement<'_>, made: Made) -> u128 {
    let lanes = [made.from, made.to].map(|lane| placement.lanes[lane.index()]);
    let lanes = lanes.into_iter().filter(|lane| lane.link.is_none());
    lanes.map(|lane| u128::from(lane.load).pow(2)).sum()
}

/// Makes a step of the descent; returns what takes it back.
fn carry(placement: &mut DyssectPlacement<'_>, made: Made) -> Edit {
    let given = made.given.index() as u16;
    placement.make(match made.returned {
        Some(returned) => Edit::Swap(given, returned.index() as u16),
        None => Edit::Move(given, made.to.0),
    })
}

/// Tells the descent the loads of lanes, and which of them divide what they get.
fn show(placement: &DyssectPlacement<'_>, levels: &Levels, descent: &mut Descent) {
    let mut parts = vec![1_u64; levels.0.len()];
    for (group, parts) in parts.iter_mut().enumerate() {
        let level = |member: &Member| member.is_level(levels.0[group]);
        *parts += members(placement, group).filter(|(_, member)| level(member)).count() as u64;
    }
    for lane in &mut descent.lanes {
        let sums = &placement.lanes[lane.id.index()];
        (lane.load, lane.parts) = (sums.load, 1);
        let Some(group) = sums.link.map(usize::from) else { continue };
        let member = Member { load: sums.load, may_leave: sums.may_leave };
        lane.load -= member.sends(levels.0[group]);
        if member.is_level(levels.0[group]) {
            lane.parts = parts[group];
        }
    }
    descent.sort();
}

/// No assignment has a lower sum of squares: shards that cannot be divided stand alone if the rest
/// of them is above the mean of all others.
fn least(problem: &Problem, counts: Counts, target: Load) -> SquaredLoad {
    let demands = problem.shards().iter();
    let mut total: u64 = demands.clone().map(|demand| demand.load.nanos_per_second()).sum();
    let stays =
        |may_leave: u64, load: u64| if counts.offloading > 0 { load - may_leave } else { load };
    let mut whole: Vec<u64> = demands
        .map(|demand| stays(demand.may_leave.nanos_per_second(), demand.load.nanos_per_second()))
        .collect();
    whole.sort_unstable_by(|a, b| b.cmp(a));
    let mut lanes = counts.lanes() as u64;
    let mut squares = SquaredLoad::default();
    for load in whole {
        if lanes < 2 || u128::from(load) * u128::from(lanes) <= u128::from(total) {
            break;
        }
        squares = [squares, distance(load, target)].into_iter().sum();
        (total, lanes) = (total - load, lanes - 1);
    }
    let mean = total / lanes.max(1);
    let rest = distance(mean, target).get().saturating_mul(u128::from(lanes));
    // The mean is rounded down: as if every lane had up to a nanosecond less.
    let slack = 2 * u128::from(lanes) * u128::from(mean.abs_diff(target.nanos_per_second()));
    [squares, SquaredLoad::from_square(rest.saturating_sub(slack))].into_iter().sum()
}
