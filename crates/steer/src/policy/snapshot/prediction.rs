//! What a plan would come to.

use rheostat_base::LaneId;

use super::{LaneLoad, LaneState, LoadSnapshot, SnapshotError};
use crate::policy::{Offloads, Plan, PlanError};

impl LoadSnapshot {
    /// The load to expect once the plan is carried out, if every shard keeps its load.
    ///
    /// # Errors
    /// [`PlanError`] when the plan does not fit this snapshot.
    pub fn after(&self, plan: &Plan) -> Result<LoadSnapshot, PlanError> {
        let mut after = self.clone();
        for lane in &plan.wake {
            let state = after.lanes.get(lane.index()).map(|lane| lane.state);
            if !matches!(state, Some(LaneState::Parked | LaneState::Offloading)) {
                return Err(PlanError::Wake(*lane));
            }
            after.lanes[lane.index()] = LaneLoad::ACTIVE;
        }
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
            if target.is_none_or(|lane| lane.state != LaneState::Active) {
                return Err(PlanError::Target { shard, to: each.to });
            }
            found.owner = each.to;
        }
        for lane in &plan.park {
            let found = after.lanes.get_mut(lane.index());
            let found = found.filter(|lane| lane.state == LaneState::Active);
            *found.ok_or(PlanError::Park(*lane))? = LaneLoad::PARKED;
        }
        let offloads = plan.offloads.clone().unwrap_or_else(|| after.offloads.clone());
        after.change_offloaders(&offloads)?;
        let LoadSnapshot { lanes, shards, bounds, period, classes, heavy, rewrite, .. } = after;
        let after = LoadSnapshot::new(lanes, shards, bounds, period);
        let after = after.map_err(|error| match error {
            SnapshotError::Parked { lane, .. } if offloads.is_target(lane) => {
                PlanError::Offloader(lane)
            }
            SnapshotError::Parked { lane, shard } => PlanError::NotEmptied { lane, shard },
            _ => PlanError::AllParked,
        })?;
        let after = after.with_offloads(offloads).map_err(|_| PlanError::Offloads)?;
        Ok(LoadSnapshot { classes, heavy, rewrite, ..after })
    }

    /// Lanes that are handed flows offload; the others that did are parked.
    fn change_offloaders(&mut self, offloads: &Offloads) -> Result<(), PlanError> {
        if let Some(lane) =
            offloads.links.iter().flatten().find(|to| to.index() >= self.lanes.len())
        {
            return Err(PlanError::Offloader(*lane));
        }
        for (id, lane) in (0..).map(LaneId).zip(&mut self.lanes) {
            match (offloads.is_target(id), lane.state) {
                (true, _) => *lane = LaneLoad { other: lane.other, ..LaneLoad::OFFLOADING },
                (false, LaneState::Offloading) => *lane = LaneLoad::PARKED,
                (false, LaneState::Active | LaneState::Parked) => {}
            }
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
    #[test]
    fn lanes_change_roles_with_what_they_are_handed() {
        let percent = |each: [u64; 3]| each.map(Load::from_percent).to_vec();
        let links = vec![Some(LaneId(2)), None, None];
        let offloads = Offloads { links, shares: percent([30, 0, 0]) };
        let begin = Plan { offloads: Some(offloads), ..Plan::default() };
        assert!(!begin.is_empty());
        let after = snapshot().after(&begin).unwrap();
        assert_eq!(after.offloading().collect::<Vec<_>>(), [LaneId(2)]);
        assert_eq!(after.load(LaneId(2)), Load::from_percent(30));
        assert_eq!(after.after(&Plan::default()).unwrap(), after, "nothing changes by itself");
        let end = Plan { offloads: Some(Offloads::none(3, 3)), ..Plan::default() };
        assert_eq!(after.after(&end).unwrap(), snapshot(), "it is parked");
        let wake = Plan { wake: vec![LaneId(2)], ..end };
        assert_eq!(after.after(&wake).unwrap().active().count(), 3);
    }

    #[test]
    fn a_lane_that_works_is_handed_no_flows() {
        let refused = |links: [Option<u16>; 3]| {
            let links = links.map(|link| link.map(LaneId)).to_vec();
            let offloads = Some(Offloads { links, shares: vec![Load::ZERO; 3] });
            snapshot().after(&Plan { offloads, ..Plan::default() }).unwrap_err()
        };
        assert_eq!(refused([Some(1), None, None]), PlanError::Offloader(LaneId(1)));
        assert_eq!(refused([Some(3), None, None]), PlanError::Offloader(LaneId(3)));
        assert_eq!(refused([None, None, Some(2)]), PlanError::Offloads);
        let short = Some(Offloads { links: vec![None; 2], shares: Vec::new() });
        let plan = Plan { offloads: short, ..Plan::default() };
        assert_eq!(snapshot().after(&plan), Err(PlanError::Offloads));
    }
}
