//! Every constraint of Tables 5.2 to 5.4, computed from an assignment alone.

use rheostat_base::LaneId;

use super::super::Load;
use super::{Constraint, Counts, FlowAssignment, LaneLimit, LaneRole, Problem, Violation};

/// Whose constraints hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Table 5.2.
    FewestLanes,
    /// Table 5.3.
    FewestChanges(Counts),
    /// Table 5.4.
    Balance(Counts),
}

/// What the assignment violates; nothing if it is feasible. Lanes and shards that it does not have
/// count as violations of (5.3).
pub fn violations(problem: &Problem, model: Model, assignment: &FlowAssignment) -> Vec<Violation> {
    let mut check = Check { problem, assignment, found: Vec::new() };
    if !check.has_all_shards_and_lanes() {
        return check.found;
    }
    check.structure();
    let utilisations = check.utilisations();
    let setting = problem.setting();
    match model {
        Model::FewestLanes => {
            check.waits(&utilisations);
            check.loads(
                &utilisations,
                setting.working.highest,
                setting.offloading.highest,
                [Constraint::WorkingReserve, Constraint::OffloadingReserve],
            );
        }
        Model::FewestChanges(counts) => {
            check.waits(&utilisations);
            let below = Load::from_nanos_per_second(Load::FULL.nanos_per_second() - 1);
            check.loads(
                &utilisations,
                below,
                below,
                [Constraint::WorkingBelowFull, Constraint::OffloadingBelowFull],
            );
            check.counts(counts);
        }
        Model::Balance(counts) => check.counts(counts),
    }
    check.found
}

struct Check<'a> {
    problem: &'a Problem,
    assignment: &'a FlowAssignment,
    found: Vec<Violation>,
}

impl Check<'_> {
    fn note(&mut self, constraint: Constraint, at: Option<usize>, excess: f64) {
        self.found.push(Violation { constraint, at, excess });
    }

    fn has_all_shards_and_lanes(&mut self) -> bool {
        let (shards, lanes) = (self.problem.shards().len(), self.problem.setting().lanes);
        let FlowAssignment { roles, home, links, offloaded } = self.assignment;
        let is_there = |lane: &LaneId| lane.index() < lanes;
        let wrong = home.len().abs_diff(shards)
            + offloaded.len().abs_diff(shards)
            + roles.len().abs_diff(lanes)
            + links.len().abs_diff(lanes)
            + home.iter().chain(links.iter().flatten()).filter(|lane| !is_there(lane)).count();
        if wrong > 0 {
            self.note(Constraint::OneHome, None, wrong as f64);
        }
        wrong == 0
    }

    fn structure(&mut self) {
        let FlowAssignment { roles, home, links, offloaded } = self.assignment;
        let Counts { working, offloading } = self.assignment.counts();
        let lanes = self.problem.setting().lanes;
        if working + offloading == 0 {
            self.note(Constraint::LaneCount, None, 1.0);
        }
        if working + offloading > lanes {
            self.note(Constraint::LaneCount, None, (working + offloading - lanes) as f64);
        }
        for (shard, lane) in home.iter().enumerate() {
            if roles[lane.index()] != LaneRole::Working {
                self.note(Constraint::HomeWorks, Some(shard), 1.0);
            }
            let leaves = offloaded[shard];
            if leaves > Load::ZERO && links[lane.index()].is_none() {
                self.note(Constraint::OffloadNeedsLink, Some(shard), leaves.share());
            }
            let may_leave = self.problem.shards()[shard].may_leave;
            if leaves > may_leave {
                let excess = leaves.saturating_sub(may_leave).share();
                self.note(Constraint::MayLeave, Some(shard), excess);
            }
        }
        let least = self.problem.setting().min_working_per_offloading;
        for (lane, role) in roles.iter().enumerate() {
            let id = LaneId(lane as u16);
            match role {
                LaneRole::Working if !home.contains(&id) => {
                    self.note(Constraint::WorkingHasShard, Some(lane), 1.0);
                }
                LaneRole::Offloading => {
                    let served = links.iter().filter(|link| **link == Some(id)).count();
                    if served < least {
                        self.note(Constraint::EnoughLinks, Some(lane), (least - served) as f64);
                    }
                }
                LaneRole::Working | LaneRole::Idle => {}
            }
            let Some(to) = links[lane] else { continue };
            if *role != LaneRole::Working {
                self.note(Constraint::LinkNeedsWorking, Some(lane), 1.0);
            }
            if roles[to.index()] != LaneRole::Offloading {
                self.note(Constraint::LinkToOffloading, Some(lane), 1.0);
            }
        }
    }

    /// (5.10) and (5.11), by lane.
    fn utilisations(&self) -> Vec<Load> {
        let FlowAssignment { home, links, offloaded, .. } = self.assignment;
        let mut utilisations = vec![Load::ZERO; self.problem.setting().lanes];
        for (shard, lane) in home.iter().enumerate() {
            let load = self.problem.shards()[shard].load;
            utilisations[lane.index()] += load.saturating_sub(offloaded[shard]);
            if let Some(to) = links[lane.index()] {
                utilisations[to.index()] += offloaded[shard];
            }
        }
        utilisations
    }

    fn limit(&self, lane: usize) -> Option<(LaneLimit, usize)> {
        let setting = self.problem.setting();
        match self.assignment.roles[lane] {
            LaneRole::Idle => None,
            LaneRole::Working => Some((setting.working, 0)),
            LaneRole::Offloading => Some((setting.offloading, 1)),
        }
    }

    fn waits(&mut self, utilisations: &[Load]) {
        for (lane, utilisation) in utilisations.iter().enumerate() {
            let Some((LaneLimit { wait: Some(model), .. }, role)) = self.limit(lane) else {
                continue;
            };
            let excess = model.wait(*utilisation) - model.objective.as_secs_f64();
            if excess > 0.0 {
                let constraint = [Constraint::WorkingWait, Constraint::OffloadingWait][role];
                self.note(constraint, Some(lane), excess);
            }
        }
    }

    fn loads(
        &mut self,
        utilisations: &[Load],
        working: Load,
        offloading: Load,
        by: [Constraint; 2],
    ) {
        for (lane, utilisation) in utilisations.iter().enumerate() {
            let Some((_, role)) = self.limit(lane) else { continue };
            let excess = utilisation.saturating_sub([working, offloading][role]);
            if excess > Load::ZERO {
                self.note(by[role], Some(lane), excess.share());
            }
        }
    }

    fn counts(&mut self, counts: Counts) {
        let have = self.assignment.counts();
        let differences = [
            (Constraint::WorkingCount, have.working.abs_diff(counts.working)),
            (Constraint::OffloadingCount, have.offloading.abs_diff(counts.offloading)),
        ];
        for (constraint, difference) in differences {
            if difference > 0 {
                self.note(constraint, None, difference as f64);
            }
        }
    }
}
