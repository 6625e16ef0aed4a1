//! Answers with what is known about them.

use super::super::SquaredLoad;
use super::{Changes, Counts, FlowAssignment, Violation};

/// What [`fewest_lanes`](super::fewest_lanes()) or [`fewest_changes`](super::fewest_changes()) found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The assignment: feasible if `violations` is empty, otherwise the one found that violates
    /// least.
    pub assignment: FlowAssignment,
    /// How many lanes have which role in it.
    pub counts: Counts,
    /// The value of the objective: lanes, or changes.
    pub value: usize,
    /// No feasible assignment has less; `None` when it is certain that there is none at all.
    pub bound: Option<usize>,
    /// Which constraints it violates, and by how much.
    pub violations: Vec<Violation>,
    /// Steps that the search took.
    pub steps: u64,
    /// Whether the search ended because its budget did.
    pub is_cut: bool,
}

impl Answer {
    /// Whether it is certain that no feasible assignment is better.
    pub fn is_optimal(&self) -> bool {
        self.violations.is_empty() && self.bound == Some(self.value)
    }
}

/// What [`balance`](super::balance()) found.
#[derive(Clone, Debug, PartialEq)]
pub struct Balanced {
    /// The assignment.
    pub assignment: FlowAssignment,
    /// The squared distance from the target, summed over working and offloading lanes.
    pub squared: SquaredLoad,
    /// No assignment with these counts has less.
    pub bound: SquaredLoad,
    /// What has changed.
    pub changes: Changes,
    /// Which constraints it violates, and by how much.
    pub violations: Vec<Violation>,
    /// Steps that the search took.
    pub steps: u64,
    /// Whether the search ended because its budget did.
    pub is_cut: bool,
}
