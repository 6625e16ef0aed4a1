use rheostat_base::LaneId;

use super::*;
use crate::policy::{LaneBounds, LaneLoad, MoveReason, Reason, ShardLoad};

const NOW: Time = Time::from_secs(1);

/// Active lanes with the given shards, in percent.
fn lanes(lanes: &[&[u64]]) -> LoadSnapshot {
    let shards = (0..).map(LaneId).zip(lanes).flat_map(|(owner, shards)| {
        let load = |percent: &u64| Load::from_percent(*percent);
        shards.iter().map(move |percent| ShardLoad { owner, load: load(percent) })
    });
    let shards = shards.collect();
    let bounds = LaneBounds { min: lanes.len(), max: lanes.len() };
    let lanes = vec![LaneLoad::ACTIVE; lanes.len()];
    LoadSnapshot::new(lanes, shards, bounds, Duration::from_millis(100)).unwrap()
}

fn plan(load: &LoadSnapshot) -> Plan {
    LocalSearch::default().plan(NOW, load)
}

fn moves(plan: &Plan) -> Vec<(u16, u16)> {
    plan.moves.iter().map(|each| (each.shard.0, each.to.0)).collect()
}

#[test]
fn the_shard_nearest_half_the_difference_moves() {
    // Lane 0 has 40 more than lane 1: 19 is nearer 20 than 30 or 11 are.
    let plan = plan(&lanes(&[&[30, 19, 11], &[20]]));
    assert_eq!(moves(&plan), [(1, 1)]);
    assert!(matches!(plan.why[..], [Reason::Rebalanced { steps: 1, .. }]));
}

#[test]
fn shards_change_places_when_no_move_helps() {
    // Half the difference is 5, and every shard of lane 0 is heavier than all of it.
    let load = lanes(&[&[40, 20], &[35, 15]]);
    let plan = plan(&load);
    assert_eq!(moves(&plan), [(1, 1), (3, 0)]);
    assert!(matches!(plan.moves[0].why, MoveReason::Overloaded { .. }));
    assert!(matches!(plan.moves[1].why, MoveReason::Exchange { .. }));
    assert_eq!(load.after(&plan).unwrap().imbalance().squared.get(), 0);
}

#[test]
fn lanes_that_cannot_give_do_not_hide_those_that_can() {
    let elephants: [&[u64]; 4] = [&[95], &[94], &[93], &[92]];
    let load = lanes(&[&elephants[..], &[&[40, 40], &[10]]].concat());
    assert_eq!(moves(&plan(&load)), [(4, 5)]);
}

#[test]
fn steps_that_are_not_worth_a_migration_are_not_made() {
    let almost = lanes(&[&[30, 20, 1], &[30, 19]]);
    assert_eq!(moves(&plan(&almost)), [(2, 1)]);
    let five = Load::from_percent(5);
    let mut content = LocalSearch { tolerance: five, ..LocalSearch::default() };
    assert!(content.plan(NOW, &almost).is_empty());
    // One part in one of what there is would be all of it; this removes all but nothing.
    let mut frugal = LocalSearch { one_in: 1, ..LocalSearch::default() };
    assert!(frugal.plan(NOW, &almost).is_empty());
}
