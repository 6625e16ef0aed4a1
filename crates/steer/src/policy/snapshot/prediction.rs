//! What a plan would come to.

use rheostat_base::LaneId;

use super::{LaneLoad, LaneState, LoadSnapshot, SnapshotError};
use crate::policy::{Plan, PlanError};

impl LoadSnapshot {
    /// The load to expect once the plan is carried out, if every shard keeps its load.
    ///
    /// # Errors
    /// [`PlanError`] when the plan does not fit this snapshot.
    pub fn after(&self, plan: &Plan) -> Result<LoadSnapshot, PlanError> {
        let mut after = self.clone();
        after.change_lanes(&plan.wake, LaneState::Parked, PlanError::Wake)?;
        let mut moved = vec![false; self.shards.len()];
        for each in &plan.moves {
            let shard = each.shard;
            let Some(found) = after.shards.get_mut(shard.index()) else {
                return Err(PlanError::NoSuchShard(shard));
            };
            if std::mem::replace(&mut moved[shard.index()], true) {
                return Err(PlanError::MovedTwice(shard));
            }
            if found.owner != each.from || each.from == each.to {
                return Err(PlanError::From { shard, from: each.from, owner: found.owner });
            }
            let target = after.lanes.get(each.to.index());
            if target.is_none_or(|lane| lane.state == LaneState::Parked) {
                return Err(PlanError::Target { shard, to: each.to });
            }
            found.owner = each.to;
        }
        after.change_lanes(&plan.park, LaneState::Active, PlanError::Park)?;
        let LoadSnapshot { lanes, shards, bounds, period, .. } = after;
        LoadSnapshot::new(lanes, shards, bounds, period).map_err(|error| match error {
            SnapshotError::Parked { lane, shard } => PlanError::NotEmptied { lane, shard },
            _ => PlanError::AllParked,
        })
    }

    /// Turns each of `lanes` from `state` to the other one.
    fn change_lanes(
        &mut self,
        lanes: &[LaneId],
        state: LaneState,
        error: fn(LaneId) -> PlanError,
    ) -> Result<(), PlanError> {
        for id in lanes {
            let lane = self.lanes.get_mut(id.index()).filter(|lane| lane.state == state);
            let lane = lane.ok_or_else(|| error(*id))?;
            *lane = match state {
                LaneState::Parked => LaneLoad::ACTIVE,
                LaneState::Active => LaneLoad::PARKED,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rheostat_base::ShardId;

    use super::*;
    use crate::policy::{LaneBounds, Load, Move, MoveReason, ShardLoad};

    fn snapshot() -> LoadSnapshot {
        let lanes = vec![LaneLoad::ACTIVE, LaneLoad::ACTIVE, LaneLoad::PARKED];
        let shard =
            |owner, percent| ShardLoad { owner: LaneId(owner), load: Load::from_percent(percent) };
        let shards = vec![shard(0, 40), shard(0, 30), shard(1, 10)];
        let bounds = LaneBounds { min: 1, max: 3 };
        LoadSnapshot::new(lanes, shards, bounds, Duration::from_millis(100)).unwrap()
    }

    fn shift(shard: u16, from: u16, to: u16) -> Move {
        let [from, to] = [from, to].map(LaneId);
        Move { shard: ShardId(shard), from, to, why: MoveReason::Parking }
    }

    #[test]
    fn a_plan_moves_loads_and_changes_lanes() {
        let plan = Plan {
            moves: vec![shift(1, 0, 2), shift(2, 1, 2)],
            wake: vec![LaneId(2)],
            park: vec![LaneId(1)],
            ..Plan::default()
        };
        let after = snapshot().after(&plan).unwrap();
        assert_eq!(after.active().collect::<Vec<_>>(), [LaneId(0), LaneId(2)]);
        assert_eq!(after.load(LaneId(0)), after.load(LaneId(2)));
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let refused = |plan: Plan| snapshot().after(&plan).unwrap_err();
        let moves = |moves: &[Move]| Plan { moves: moves.to_vec(), ..Plan::default() };
        let [lane0, lane1, lane2] = [0, 1, 2].map(LaneId);
        assert_eq!(refused(moves(&[shift(3, 0, 1)])), PlanError::NoSuchShard(ShardId(3)));
        let twice = [shift(0, 0, 1), shift(0, 1, 0)];
        assert_eq!(refused(moves(&twice)), PlanError::MovedTwice(ShardId(0)));
        for (from, owner) in [(1, 0), (0, 0)] {
            let error = refused(moves(&[shift(0, from, 0)]));
            assert_eq!(
                error,
                PlanError::From { shard: ShardId(0), from: LaneId(from), owner: LaneId(owner) }
            );
        }
        for to in [2, 3] {
            let error = refused(moves(&[shift(0, 0, to)]));
            assert_eq!(error, PlanError::Target { shard: ShardId(0), to: LaneId(to) });
        }
        let park = Plan { park: vec![lane1], ..Plan::default() };
        assert_eq!(refused(park), PlanError::NotEmptied { lane: lane1, shard: ShardId(2) });
        assert_eq!(refused(Plan { park: vec![lane2], ..Plan::default() }), PlanError::Park(lane2));
        assert_eq!(refused(Plan { wake: vec![lane0], ..Plan::default() }), PlanError::Wake(lane0));
    }
}
