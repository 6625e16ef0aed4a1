//! The short period's model: as few changes as can be, with given numbers of lanes (Table 5.3).

use super::adoption::Adopted;
use super::answer::Answer;
use super::bound::{self, Totals};
use super::construction::{by_room, heaviest_first};
use super::deepening::{DeepeningOutcome, deepen};
use super::feasible::{Model, violations};
use super::placement::DyssectPlacement;
use super::repair::repair;
use super::sums::Caps;
use super::{Budget, Counts, FlowAssignment, Problem, ProblemError};

/// As few shards that move and lanes that get another offloading lane as an assignment with these
/// counts is found for (5.16).
///
/// Starts from `previous`, repairs what it violates by single changes and, where none helps, by
/// exchanges, and takes changes back that are not needed. Where a bound leaves open whether fewer
/// changes would do, a search that is complete looks for them as far as the budget goes. If the
/// repair fails, a new assignment is made and its lanes are named after those they share most
/// shards with.
///
/// # Errors
/// [`ProblemError`] when `previous` or `counts` do not fit the problem.
pub fn fewest_changes(
    problem: &Problem,
    previous: &FlowAssignment,
    counts: Counts,
    mut budget: Budget,
) -> Result<Answer, ProblemError> {
    problem.check_previous(previous)?;
    problem.check_counts(counts)?;
    let caps = Caps::transient(problem);
    let totals = Totals::of(problem, caps);
    let adopted = Adopted::new(problem, caps, previous, counts);
    let forced = adopted.changes(&adopted.placement);
    let mut best = adopted.placement.clone();
    repair(&mut best, &mut budget, true);
    adopted.undo(&mut best);
    if best.violation > 0 {
        let mut other = remade(problem, &adopted, caps, counts, &mut budget);
        adopted.undo(&mut other);
        if other.violation < best.violation {
            best = other;
        }
    }
    let mut bound = least(&adopted, forced);
    if best.violation == 0 && adopted.keeps_roles {
        bound = fewer(&adopted, &mut best, bound, &mut budget);
    }
    let assignment = best.to_assignment(problem, &adopted.working, &adopted.offloading);
    let violations = violations(problem, Model::FewestChanges(counts), &assignment);
    Ok(Answer {
        counts,
        value: assignment.changes_since(previous).total(),
        bound: totals.allow(counts).then_some(bound),
        is_cut: budget.is_used_up(),
        violations,
        steps: budget.spent(),
        assignment,
    })
}

/// No assignment with these counts makes fewer changes.
fn least(adopted: &Adopted<'_>, forced: usize) -> usize {
    if adopted.keeps_roles {
        return bound::changes(&adopted.placement);
    }
    // Shards of lanes that work no longer move, whichever lanes they are: those with the fewest.
    let homeless = adopted.home.iter().filter(|lane| lane.is_none()).count();
    let mut shards = vec![0; adopted.working.len()];
    adopted.home.iter().flatten().for_each(|lane| shards[usize::from(*lane)] += 1);
    let empty = shards.iter().filter(|shards| **shards == 0).count();
    homeless.max(empty).min(forced.max(empty))
}

/// Replaces `best` by an assignment with fewer changes, or proves that there is none.
fn fewer<'p>(
    adopted: &Adopted<'p>,
    best: &mut DyssectPlacement<'p>,
    mut bound: usize,
    budget: &mut Budget,
) -> usize {
    while bound < adopted.changes(best) {
        let mut placement = adopted.placement.clone();
        match deepen(&mut placement, bound, budget) {
            DeepeningOutcome::Found => *best = placement,
            DeepeningOutcome::None => bound += 1,
            DeepeningOutcome::Cut => break,
        }
    }
    bound
}

/// An assignment made anew, whose lanes are named after those with which they share most shards.
fn remade<'p>(
    problem: &'p Problem,
    adopted: &Adopted<'p>,
    caps: Caps,
    counts: Counts,
    budget: &mut Budget,
) -> DyssectPlacement<'p> {
    let order = heaviest_first(problem.shards());
    let mut made = by_room(problem.shards(), &order, caps, counts);
    repair(&mut made, budget, true);
    let lanes = counts.working;
    let mut shared = vec![0_u32; lanes * lanes];
    for (lane, then) in made.home.iter().zip(&adopted.home) {
        if let Some(then) = then {
            shared[usize::from(*lane) * lanes + usize::from(*then)] += 1;
        }
    }
    let mut pairs: Vec<usize> = (0..lanes * lanes).filter(|pair| shared[*pair] > 0).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(shared[*pair]));
    let mut names = vec![None; lanes];
    let mut taken = vec![false; lanes];
    for (lane, name) in pairs.into_iter().map(|pair| (pair / lanes, pair % lanes)) {
        if names[lane].is_none() && !taken[name] {
            (names[lane], taken[name]) = (Some(name as u16), true);
        }
    }
    let mut free = (0..lanes).filter(|lane| !taken[*lane]);
    let names: Vec<u16> = names
        .into_iter()
        .map(|name| name.unwrap_or_else(|| free.next().unwrap_or(0) as u16))
        .collect();
    let home = made.home.iter().map(|lane| names[usize::from(*lane)]).collect();
    let mut links = vec![None; lanes];
    made.lanes.iter().zip(&names).for_each(|(lane, name)| links[usize::from(*name)] = lane.link);
    DyssectPlacement::new(problem.shards(), caps, home, &links, counts.offloading)
}
