//! Placements as assignments.

use rheostat_base::LaneId;

use super::super::Load;
use super::placement::DyssectPlacement;
use super::{FlowAssignment, LaneRole, Problem};

impl DyssectPlacement<'_> {
    /// The assignment, with lanes by these names. What leaves a lane is taken from its shards in
    /// proportion to what may.
    pub(super) fn to_assignment(
        &self,
        problem: &Problem,
        working: &[LaneId],
        offloading: &[LaneId],
    ) -> FlowAssignment {
        let away: Vec<u64> = self.lanes.iter().map(|lane| lane.away).collect();
        self.with_offloaded(problem, working, offloading, &away)
    }

    /// As [`DyssectPlacement::to_assignment`], where so much leaves each lane.
    pub(super) fn with_offloaded(
        &self,
        problem: &Problem,
        working: &[LaneId],
        offloading: &[LaneId],
        away: &[u64],
    ) -> FlowAssignment {
        let lanes = problem.setting().lanes;
        let mut roles = vec![LaneRole::Idle; lanes];
        let mut links = vec![None; lanes];
        for lane in offloading {
            roles[lane.index()] = LaneRole::Offloading;
        }
        for (lane, sums) in working.iter().zip(&self.lanes) {
            roles[lane.index()] = LaneRole::Working;
            links[lane.index()] = sums.link.map(|link| offloading[usize::from(link)]);
        }
        let home = self.home.iter().map(|lane| working[usize::from(*lane)]).collect();
        FlowAssignment { roles, home, links, offloaded: self.spread(away) }
    }
    /// What leaves each shard, by shard, when so much leaves each lane: in proportion to what may.
    fn spread(&self, away: &[u64]) -> Vec<Load> {
        let mut offloaded = vec![0; self.home.len()];
        for ((lane, shards), &away) in self.lanes.iter().zip(&self.shards).zip(away) {
            let may_leave =
                |shard: &u16| self.demands[usize::from(*shard)].may_leave.nanos_per_second();
            let (mut left, total) = (away, u128::from(lane.may_leave.max(1)));
            for shard in shards {
                let part = u128::from(may_leave(shard)) * u128::from(away) / total;
                offloaded[usize::from(*shard)] = part as u64;
                left -= part as u64;
            }
            // What rounding has left, a few nanoseconds.
            for shard in shards {
                let offloaded = &mut offloaded[usize::from(*shard)];
                let more = left.min(may_leave(shard) - *offloaded);
                *offloaded += more;
                left -= more;
            }
        }
        offloaded.into_iter().map(Load::from_nanos_per_second).collect()
    }
}
