use super::*;
use crate::policy::{LaneBounds, LaneLoad, MoveReason, Reason, ShardLoad};

const NOW: Time = Time::from_secs(1);

fn percent(percent: u64) -> Load {
    Load::from_percent(percent)
}

/// Active lanes with the given shards, in percent, of which at least `min` must be, and `parked`
/// lanes.
fn lanes(lanes: &[&[u64]], min: usize, parked: usize) -> LoadSnapshot {
    let shards = (0..).map(LaneId).zip(lanes).flat_map(|(owner, shards)| {
        shards.iter().map(move |load| ShardLoad { owner, load: percent(*load) })
    });
    let shards = shards.collect();
    let bounds = LaneBounds { min, max: lanes.len() + parked };
    let mut lanes = vec![LaneLoad::ACTIVE; lanes.len()];
    lanes.extend(vec![LaneLoad::PARKED; parked]);
    LoadSnapshot::new(lanes, shards, bounds, Duration::from_millis(100)).unwrap()
}

fn moves(plan: &Plan) -> Vec<(u16, u16)> {
    plan.moves.iter().map(|each| (each.shard.0, each.to.0)).collect()
}

/// The course of the paper's Figure 7: too little, too much, between the two. (The paper does not
/// give the figure's loads; these are our own.)
#[test]
fn attempts_move_too_little_then_too_much_then_what_is_right() {
    let load = lanes(&[&[28, 27, 18, 12, 10], &[36], &[37]], 3, 0);
    let problem = Problem::new(&Assignment::new(NOW, &load), percent(1));
    assert_eq!((problem.mean, problem.excess), (percent(56), percent(39)));

    // The two heaviest fit nowhere without overload.
    let first = problem.attempt(Load::ZERO);
    assert_eq!((first.moved, first.left), (percent(30), percent(9)));
    let second = problem.attempt(first.left);
    assert_eq!((second.moved, second.left), (percent(55), Load::ZERO));
    let third = problem.attempt(first.left.part(1, 2));
    assert_eq!((third.moved, third.left), (percent(40), Load::ZERO));
    assert!(third.squared < first.squared && first.squared < second.squared);

    let plan = Rsspp::default().plan(NOW, &load);
    assert_eq!(moves(&plan), [(2, 1), (3, 2), (4, 2)]);
    let why = MoveReason::Overloaded { load: percent(95), mean: percent(56) };
    assert!(plan.moves.iter().all(|each| each.why == why));
    assert!(matches!(plan.why[..], [Reason::Rebalanced { steps: 3, .. }]));
    let loads = [0, 1, 2].map(|lane| load.after(&plan).unwrap().load(LaneId(lane)));
    assert_eq!(loads, [55, 54, 59].map(percent));
}

#[test]
fn the_heaviest_shard_of_the_most_loaded_goes_to_the_least_loaded_first() {
    let load = lanes(&[&[40, 9, 11], &[50, 10, 20], &[20], &[8, 2]], 4, 0);
    let plan = Rsspp { attempts: 1, ..Rsspp::default() }.plan(NOW, &load);
    // The mean is 42.5. Lane 1's 50 fits nowhere, its 20 goes to lane 3, which is then at 30. Then
    // lanes 0 and 1 are at 60: lane 0's 40 fits nowhere, its 11 goes to lane 2. Lane 1's 10 goes to
    // lane 3, lane 0's 9 to lane 2.
    assert_eq!(moves(&plan), [(1, 2), (2, 2), (4, 3), (5, 3)]);
}

#[test]
fn a_lane_with_a_single_loaded_shard_is_never_a_source() {
    let load = lanes(&[&[90, 0, 0], &[10], &[20]], 3, 0);
    let plan = Rsspp::default().plan(NOW, &load);
    assert!(plan.is_empty());
    let one = Reason::OneShard {
        lane: LaneId(0),
        load: percent(90),
        shard: ShardId(0),
        weight: percent(90),
        mean: percent(40),
    };
    assert_eq!(plan.why.last(), Some(&one));
}

#[test]
fn a_lane_keeps_a_loaded_shard_whatever_may_overshoot() {
    let load = lanes(&[&[20, 20, 20, 0], &[1], &[2], &[3]], 4, 0);
    let problem = Problem::new(&Assignment::new(NOW, &load), percent(1));
    assert_eq!(problem.attempt(Load::FULL).transfers.len(), 2);
}

#[test]
fn a_shard_that_fits_only_by_overshooting_moves_all_the_same() {
    // The first attempt moves nothing: either shard would bring lane 1 to 50, the mean is 40.
    let load = lanes(&[&[30, 30], &[20]], 2, 0);
    let plan = Rsspp::default().plan(NOW, &load);
    assert_eq!(moves(&plan), [(0, 1)]);
    let loads = [0, 1].map(|lane| load.after(&plan).unwrap().load(LaneId(lane)));
    assert_eq!(loads, [30, 50].map(percent));
}

#[test]
fn lanes_that_are_even_enough_stay_though_a_move_would_help_by_overshooting() {
    // Either shard would bring lane 1 to 19, the mean is 14.5; after that, the lanes would be 9 apart
    // in place of 11. But what the first attempt leaves is 0.006 of a lane squared.
    let load = lanes(&[&[10, 10], &[9]], 2, 0);
    let plan = Rsspp::default().plan(NOW, &load);
    assert!(plan.is_empty());
    let squared = load.imbalance().squared;
    assert_eq!(plan.why, [Reason::NoBetter { squared, steps: 1 }]);
    let exact = Rsspp { enough: SquaredLoad::default(), ..Rsspp::default() }.plan(NOW, &load);
    assert_eq!(moves(&exact), [(0, 1)]);
}

#[test]
fn nothing_moves_that_would_worsen_the_imbalance() {
    // The heavy shard fits into the idle lane's place only by trading places.
    let load = lanes(&[&[60, 1], &[20, 20]], 2, 0);
    let plan = Rsspp::default().plan(NOW, &load);
    let after = load.after(&plan).unwrap().imbalance().squared;
    assert!(after <= load.imbalance().squared);
    assert_eq!(moves(&plan), [(1, 1)]);
}

#[test]
fn a_lane_that_was_just_given_a_shard_is_left_alone() {
    let of = lanes(&[&[40, 40], &[5], &[50]], 3, 0);
    assert_eq!(moves(&Rsspp::default().plan(NOW, &of)), [(0, 1)]);
    let mut figures = of.lanes().to_vec();
    figures[1].resting_since = Some(Time::from_millis(950));
    let resting = LoadSnapshot::new(figures, of.shards().to_vec(), of.bounds(), of.period());
    let plan = Rsspp::default().plan(NOW, &resting.unwrap());
    assert!(plan.is_empty());
    assert!(plan.why.contains(&Reason::Resting { lanes: 1 }));
}

#[test]
fn a_lane_that_is_added_gets_just_enough() {
    let load = lanes(&[&[30, 30, 30], &[30, 30, 30]], 1, 1);
    let plan = Rsspp::default().plan(NOW, &load);
    assert_eq!(plan.wake, [LaneId(2)]);
    assert_eq!(moves(&plan), [(0, 2), (3, 2)]);
    assert!(matches!(plan.why[0], Reason::ScaleOut { .. }));
}

#[test]
fn a_lane_that_would_get_nothing_is_left_asleep() {
    let load = lanes(&[&[90], &[85]], 1, 1);
    let plan = Rsspp::default().plan(NOW, &load);
    assert!(plan.is_empty());
    assert!(matches!(plan.why[0], Reason::CannotScaleOut { .. }));
}

#[test]
fn a_parked_lane_leaves_its_shards_largest_first_to_the_least_loaded() {
    let load = lanes(&[&[30, 10], &[30], &[15, 5, 2, 0]], 1, 0);
    let plan = Rsspp::default().plan(NOW, &load);
    assert_eq!(plan.park, [LaneId(2)]);
    // 15 to lane 1 (45), 5 to lane 0 (45), 2 and 0 to the one with fewer shards, then load.
    assert_eq!(moves(&plan), [(3, 1), (4, 0), (5, 1), (6, 0)]);
    assert!(plan.moves.iter().all(|each| each.why == MoveReason::Parking));
}

#[test]
fn it_plans_less_often_while_all_is_quiet() {
    let mut policy = Rsspp::default();
    let quiet = lanes(&[&[10, 10], &[10, 10]], 2, 0);
    for millis in [100, 200, 400, 800, 1000] {
        assert_eq!(policy.period(), Duration::from_millis(millis));
        policy.plan(NOW, &quiet);
    }
    policy.plan(NOW, &lanes(&[&[50, 50], &[10, 10]], 2, 0));
    assert_eq!(policy.period(), Duration::from_millis(100));
}
