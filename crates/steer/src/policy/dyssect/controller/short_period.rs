//! The short period: which flows and shards go where, with the lanes that there are.

use super::super::{
    BalanceGoal, Budget, Constraint, Counts, FlowAssignment, Model, Violation, balance,
    fewest_changes, violations,
};
use super::situation::Situation;
use super::{Dyssect, Goal};
use crate::policy::{Load, LoadSnapshot, Reason};

impl Dyssect {
    /// An assignment with these numbers of lanes, and what it violates; `None` if all stays as it is.
    pub(super) fn short(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        counts: Counts,
        why: &mut Vec<Reason>,
    ) -> Option<(FlowAssignment, Vec<Violation>)> {
        let lanes = load.lanes().len();
        let exact = situation.problem(self, lanes, 1.0, Load::FULL)?;
        let (model, previous) = (Model::FewestChanges(counts), &situation.previous);
        let before = violations(&exact, model, previous);
        let budget = Budget::steps(self.steps);
        if let Goal::Balance(price) = self.goal {
            let goal = BalanceGoal { target: load.mean(), price };
            let answer = balance(&exact, previous, counts, goal, budget).ok()?;
            why.push(Reason::Changes { changes: answer.changes.total(), bound: None });
            let left = violations(&exact, model, &answer.assignment);
            return Some((answer.assignment, left));
        }
        if before.is_empty() {
            let working = situation.working.transient();
            why.push(Reason::WithinObjectives { most: working, highest: highest(load) });
            return None;
        }
        // With some room to spare if that is possible.
        let room = Load::FULL.saturating_sub(self.margin);
        let spare = situation.problem(self, lanes, 1.0 / room.share(), room);
        let spare = spare.and_then(|spare| fewest_changes(&spare, previous, counts, budget).ok());
        let feasible = spare.filter(|answer| answer.violations.is_empty());
        let answer = match feasible {
            Some(mut answer) => {
                // Loads were raised, and what leaves with them.
                for leaves in &mut answer.assignment.offloaded {
                    *leaves = leaves.times(room);
                }
                answer
            }
            None => fewest_changes(&exact, previous, counts, budget).ok()?,
        };
        let left = violations(&exact, model, &answer.assignment);
        if excess(&left) >= excess(&before) {
            why.push(Reason::NoFewerViolations { violations: before.len(), cut: answer.is_cut });
            return Some((previous.clone(), before));
        }
        why.push(Reason::Changes { changes: answer.value, bound: answer.bound });
        Some((answer.assignment, left))
    }
}

/// The most loaded lane's load.
fn highest(load: &LoadSnapshot) -> Load {
    load.active().chain(load.offloading()).map(|lane| load.load(lane)).max().unwrap_or_default()
}

/// How much is violated, where more of one thing may be less of another: first whether lanes are full, then structure, then
/// objectives.
fn excess(violations: &[Violation]) -> [f64; 3] {
    let mut excess = [0.0; 3];
    for violation in violations {
        let kind = match violation.constraint {
            Constraint::WorkingBelowFull | Constraint::OffloadingBelowFull => 0,
            Constraint::WorkingWait | Constraint::OffloadingWait => 2,
            _ => 1,
        };
        excess[kind] += violation.excess.min(1e9);
    }
    excess
}
