//! The long period's model: as few lanes as can be (Table 5.2).

use super::answer::Answer;
use super::bound::Totals;
use super::construction::{by_room, by_turns, heaviest_first};
use super::feasible::{Model, violations};
use super::placement::DyssectPlacement;
use super::repair::repair;
use super::sums::Caps;
use super::{Budget, Counts, Problem};
use rheostat_base::LaneId;

/// As few working and offloading lanes as an assignment is found for (5.1).
///
/// The number of lanes goes up from a bound. For each, shards are dealt out by their load and the
/// result is repaired: first by single moves for each split into roles, then by exchanges, too, and
/// from another start. The answer is feasible unless `violations` says what it is not. Lanes are
/// numbered from 0: what works, then what offloads. [`fewest_changes`](super::fewest_changes())
/// turns the counts into changes of an assignment that there is.
pub fn fewest_lanes(problem: &Problem, mut budget: Budget) -> Answer {
    let caps = Caps::planned(problem);
    let totals = Totals::of(problem, caps);
    let order = heaviest_first(problem.shards());
    let lanes = problem.setting().lanes;
    let bound = totals.lanes(lanes);
    let mut least: Option<(DyssectPlacement<'_>, Counts)> = None;
    let mut is_cut = false;
    for lanes in bound.unwrap_or(lanes)..=lanes {
        let splits: Vec<Counts> = match bound {
            Some(_) => totals.splits(lanes).collect(),
            None => possible(problem, lanes, &totals),
        };
        // Half of what is left, so that some is left for one lane more; and what is violated least
        // is worth less than what is feasible.
        let mut part = budget.part(if bound.is_some() { 2 } else { 4 });
        let found = attempt(problem, caps, &order, splits, &totals, &mut part, &mut least);
        is_cut |= part.is_used_up();
        budget.back(part);
        if found.is_some() {
            least = found;
            break;
        }
        if budget.is_used_up() {
            break;
        }
    }
    let (placement, counts) = least.unwrap_or_else(|| {
        let counts = Counts { working: lanes.min(problem.shards().len()), offloading: 0 };
        (by_room(problem.shards(), &order, caps, counts), counts)
    });
    let working: Vec<LaneId> = ids(0, counts.working);
    let offloading = ids(counts.working, counts.offloading);
    let assignment = placement.to_assignment(problem, &working, &offloading);
    let violations = violations(problem, Model::FewestLanes, &assignment);
    Answer {
        counts,
        value: counts.lanes(),
        bound,
        is_cut,
        violations,
        steps: budget.spent(),
        assignment,
    }
}

fn ids(first: usize, count: usize) -> Vec<LaneId> {
    (first..first + count).map(|lane| LaneId(lane as u16)).collect()
}

/// Splits of so many lanes that can do most, whatever the load.
fn possible(problem: &Problem, lanes: usize, totals: &Totals) -> Vec<Counts> {
    let shards = problem.shards().len();
    let counts = |offloading| {
        let working = lanes.saturating_sub(offloading).min(shards);
        Counts { working, offloading }
    };
    let counts = (0..lanes).map(counts);
    let mut counts: Vec<Counts> =
        counts.filter(|counts| problem.check_counts(*counts).is_ok()).collect();
    counts.sort_by_key(|counts| totals.pressure(*counts));
    counts.truncate(3);
    counts
}

/// A feasible assignment of one of these splits; otherwise the one that violates least is kept.
fn attempt<'p>(
    problem: &'p Problem,
    caps: Caps,
    order: &[u16],
    mut splits: Vec<Counts>,
    totals: &Totals,
    budget: &mut Budget,
    least: &mut Option<(DyssectPlacement<'p>, Counts)>,
) -> Option<(DyssectPlacement<'p>, Counts)> {
    let mut check = |placement: DyssectPlacement<'p>, counts: Counts| {
        if placement.violation == 0 {
            return Some((placement, counts));
        }
        if least.as_ref().is_none_or(|(other, _)| placement.violation < other.violation) {
            *least = Some((placement, counts));
        }
        None
    };
    for &counts in &splits {
        let mut placement = by_room(problem.shards(), order, caps, counts);
        repair(&mut placement, budget, false);
        if let Some(found) = check(placement, counts) {
            return Some(found);
        }
        if budget.is_used_up() {
            return None;
        }
    }
    splits.sort_by_key(|counts| totals.pressure(*counts));
    for start in [by_room, by_turns] {
        for &counts in &splits {
            let mut placement = start(problem.shards(), order, caps, counts);
            repair(&mut placement, budget, true);
            if let Some(found) = check(placement, counts) {
                return Some(found);
            }
            if budget.is_used_up() {
                return None;
            }
        }
    }
    None
}
