//! Loads even enough that lanes bear a step of the load until the next plan.

use super::super::{Budget, Counts, FlowAssignment, Model, Violation, fewest_changes, violations};
use super::situation::Situation;
use super::{Dyssect, Goal};
use crate::policy::{Load, LoadSnapshot, Reason};

/// The largest step that is prepared for.
const LARGEST: f64 = 1.5;
/// A step smaller than this is what loads fluctuate by.
const SMALLEST: f64 = 1.05;
/// Lanes that are as even as can be bear the step that takes their mean load to what a lane may have. This part of it is prepared for:
/// all of it would take a move for every fluctuation.
const PART: f64 = 0.75;

impl Dyssect {
    /// As few changes as let the objectives be met when the load grows at once by as much as these lanes could bear, where all meets
    /// them now. A plan comes every short period, and what a lane cannot do waits until then. The thesis (chapter 5) has no such step. `None` if
    /// all stays as it is.
    pub(super) fn prepare(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        counts: Counts,
        why: &mut Vec<Reason>,
    ) -> Option<(FlowAssignment, Vec<Violation>)> {
        let previous = &situation.previous;
        if self.goal != Goal::FewestChanges || previous.counts() != counts {
            return None;
        }
        let mean = load.mean().share();
        let most = situation.working.transient().share();
        let step = (1.0 + PART * (most / mean - 1.0)).min(LARGEST);
        if mean == 0.0 || step < SMALLEST {
            return None;
        }
        let lanes = load.lanes().len();
        let grown = situation.problem(self, lanes, step, Load::FULL)?;
        if violations(&grown, Model::FewestChanges(counts), previous).is_empty() {
            return None;
        }
        let mut answer =
            fewest_changes(&grown, previous, counts, Budget::steps(self.steps)).ok()?;
        if !answer.violations.is_empty() {
            return None;
        }
        let back = Load::from_share(1.0 / step)?;
        for leaves in &mut answer.assignment.offloaded {
            *leaves = leaves.times(back);
        }
        why.push(Reason::Readiness {
            changes: answer.value,
            growth: Load::from_share(step - 1.0)?,
        });
        Some((answer.assignment, Vec::new()))
    }
}
