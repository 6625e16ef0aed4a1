use rheostat_base::ShardId;

use super::*;
use crate::policy::{ClassLoad, ClassLoads, LaneBounds, LaneLoad, ShardLoad, Waits};
use crate::policy::{HeavyFlow, MoveReason};

const PERIOD: Duration = Duration::from_millis(100);

fn percent(percent: u64) -> Load {
    Load::from_percent(percent)
}

/// Lanes with these shards, in percent, and parked ones.
fn lanes(lanes: &[&[u64]], parked: usize) -> LoadSnapshot {
    let shards = (0..).map(LaneId).zip(lanes).flat_map(|(owner, shards)| {
        shards.iter().map(move |load| ShardLoad { owner, load: percent(*load) })
    });
    let shards = shards.collect();
    let mut all = vec![LaneLoad::ACTIVE; lanes.len()];
    all.extend(vec![LaneLoad::PARKED; parked]);
    let bounds = LaneBounds { min: 1, max: all.len() };
    LoadSnapshot::new(all, shards, bounds, PERIOD).unwrap()
}

/// Packets of 2 us that come and take as long as in M/M/1 queues.
fn markovian(waits: Option<Waits>) -> ClassLoad {
    let service = Duration::from_micros(2);
    ClassLoad { packets: 40_000, arrival_cv2: 1.0, service_cv2: 1.0, service, waits }
}

fn measured(load: LoadSnapshot, class: ClassLoad) -> LoadSnapshot {
    let classes: ClassLoads =
        vec![[Some(ClassLoad { packets: 40, ..class }), Some(class)]; load.lanes().len()];
    load.with_classes(classes).unwrap()
}

/// Flows of shards, in percent.
fn heavy(load: LoadSnapshot, flows: &[(u16, u64)]) -> LoadSnapshot {
    let flow = |&(shard, load)| HeavyFlow { shard: ShardId(shard), load: percent(load) };
    load.with_heavy(flows.iter().map(flow).collect()).unwrap()
}

fn plan(policy: &mut Dyssect, ms: u64, load: &LoadSnapshot) -> (Plan, LoadSnapshot) {
    let plan = policy.plan(Time::from_millis(ms), load);
    let after = load.after(&plan).unwrap_or_else(|error| panic!("{error}: {plan:?}"));
    (plan, after)
}

fn strict() -> Dyssect {
    let micros = Duration::from_micros;
    // M/M/1 with 2 us: 99.5 % wait at most 50 us with 79 % of load, 500 us with 98 %.
    let objectives = Objectives::waiting(micros(50), micros(500));
    let keep = 1;
    Dyssect { objectives, offloading: 2, min_working_per_offloading: 1, keep, ..Dyssect::default() }
}

#[test]
fn what_meets_the_objectives_is_left_alone() {
    let load = measured(lanes(&[&[30, 30], &[30, 30]], 0), markovian(None));
    let (plan, _) = plan(&mut strict(), 0, &load);
    assert!(plan.is_empty(), "{plan:?}");
    assert!(matches!(plan.why[..], [.., Reason::WithinObjectives { .. }]), "{:?}", plan.why);
}

#[test]
fn fewest_shards_move_when_a_lane_has_too_much() {
    let load = measured(lanes(&[&[30, 30, 20, 10], &[10, 10, 10]], 0), markovian(None));
    let (plan, after) = plan(&mut strict(), 0, &load);
    assert_eq!(plan.moves.len(), 1, "{plan:?}");
    assert!(after.load(LaneId(0)) < percent(79), "{after:?}");
    assert!(matches!(plan.moves[0].why, MoveReason::Objective { .. }));
}

#[test]
fn flows_leave_where_no_shard_helps() {
    // One shard is more than a working lane may have; 40 of it may leave.
    let load = measured(lanes(&[&[90], &[60]], 1), markovian(None));
    let load = heavy(load, &[(0, 15), (0, 25), (1, 5)]);
    let mut policy = strict();
    let (plan, after) = plan(&mut policy, 0, &load);
    assert!(plan.moves.is_empty(), "{plan:?}");
    assert_eq!(after.offloading().collect::<Vec<_>>(), [LaneId(2)]);
    assert_eq!(after.offloads().links[0], Some(LaneId(2)));
    let left = after.load(LaneId(0));
    assert!(
        left < percent(79) && left > percent(40),
        "{left}: whole flows, and no more than needed"
    );
    // The same without objectives: nothing has to leave.
    let (none, _) =
        super::tests::plan(&mut Dyssect { objectives: Objectives::NONE, ..strict() }, 0, &load);
    let shares = none.offloads.iter().flat_map(|offloads| &offloads.shares);
    assert_eq!(shares.copied().sum::<Load>(), Load::ZERO, "{none:?}");
    // And where flows cannot leave, the objective is missed and named.
    let mut stays = Dyssect { offloading: 0, ..strict() };
    let (plan, _) = super::tests::plan(&mut stays, 0, &load);
    let missed =
        |reason: &Reason| matches!(reason, Reason::ObjectiveMissed { class: Class::Priority, .. });
    assert!(plan.offloads.is_none() && plan.why.iter().any(missed), "{:?}", plan.why);
}

#[test]
fn flows_come_home_when_lanes_are_to_be_parked() {
    let mut policy = strict();
    let (_, after) = plan(
        &mut policy,
        0,
        &heavy(measured(lanes(&[&[90], &[60]], 1), markovian(None)), &[(0, 40)]),
    );
    // The load falls: one lane would do.
    let (roles, offloads) = (after.lanes().to_vec(), after.offloads().clone());
    let shards = [10, 10]
        .iter()
        .zip(after.shards())
        .map(|(load, shard)| ShardLoad { load: percent(*load), ..*shard });
    let low = LoadSnapshot::new(roles, shards.collect(), after.bounds(), PERIOD).unwrap();
    let mut low = measured(low.with_offloads(offloads).unwrap(), markovian(None));
    let mut active = Vec::new();
    for ms in [1_000, 2_000, 3_000] {
        let (_, after) = plan(&mut policy, ms, &low);
        active.push(after.active().count() + after.offloading().count());
        low = after;
    }
    assert_eq!(active, [3, 1, 1], "fewer lanes only when two long periods agree");
}

#[test]
fn lanes_are_added_before_they_are_needed() {
    let mut policy = strict();
    let mut counts = Vec::new();
    for (second, load) in (0..).zip([22, 28, 34]) {
        let shards = [load; 3];
        let load = measured(lanes(&[&shards[..1], &shards[..2]], 3), markovian(None));
        let (plan, _) = plan(&mut policy, 1_000 * second, &load);
        counts.push(plan.wake.len());
        if !plan.wake.is_empty() {
            let ahead = |reason: &Reason| matches!(reason, Reason::LaneCounts { ahead: true, .. });
            assert!(plan.why.iter().any(ahead), "{:?}", plan.why);
        }
    }
    // One lane has 34 and the other 68, which may be 79. But all has grown by 18 a second, and 68 would become 80.
    assert_eq!(counts, [0, 0, 1]);
}

#[test]
fn an_overload_adds_lanes_at_once() {
    let mut policy = strict();
    let calm = measured(lanes(&[&[30, 30], &[30, 30]], 4), markovian(None));
    plan(&mut policy, 0, &calm);
    let load = measured(lanes(&[&[95, 95], &[95, 95]], 4), markovian(None));
    // The short period finds that two lanes do not do, and does not wait for the long one.
    let (_, at_100) = plan(&mut policy, 100, &load);
    assert!(at_100.active().count() >= 4, "{at_100:?}");
}

#[test]
fn moves_wait_where_rewriting_the_table_is_expensive() {
    let uneven = || measured(lanes(&[&[40, 40, 20], &[10, 10]], 0), markovian(None));
    let load = uneven().with_rewrite(Duration::from_millis(350));
    let mut policy = strict();
    assert_eq!(plan(&mut policy, 0, &load).0.moves.len(), 1);
    let (waits, _) = plan(&mut policy, 3_400, &load);
    assert!(waits.moves.is_empty());
    assert!(waits.why.iter().any(|reason| matches!(reason, Reason::RewriteCosts { .. })));
    assert_eq!(plan(&mut policy, 3_500, &load).0.moves.len(), 1, "one part in ten of the time");
}

#[test]
fn waits_that_turn_out_longer_make_lanes_take_less() {
    let mut policy = strict();
    let micros = Duration::from_micros;
    let waits = Waits { samples: 5_000, mean: micros(30), tail: micros(160) };
    let of = |waits| measured(lanes(&[&[30, 30], &[30, 30]], 2), markovian(waits));
    assert!(plan(&mut policy, 0, &of(None)).0.is_empty(), "nothing speaks against it yet");
    let load = of(Some(waits));
    let mut lanes_used = 0;
    for ms in 1..40 {
        lanes_used = plan(&mut policy, 100 * ms, &load).1.active().count();
    }
    // At 60 %, the formula gives 24 us, a seventh of what was measured.
    assert!(lanes_used > 2, "{lanes_used}");
    let log = policy.predictions().unwrap();
    assert!(log.rows().count() > 100 && log.error().unwrap() > 1.0);
    let last = log.rows().next_back().unwrap();
    assert!(
        last.predicted > micros(50),
        "{last:?}: the formula gives less than 20 us for fewer than 60 %"
    );
}

#[test]
fn an_objective_that_no_load_meets_limits_nothing() {
    let objectives = Objectives::waiting(Duration::from_nanos(10), Duration::from_micros(500));
    let load = measured(lanes(&[&[30, 30], &[30, 30]], 2), markovian(None));
    let (plan, after) = plan(&mut Dyssect { objectives, ..strict() }, 0, &load);
    assert_eq!(after.active().count(), 2);
    let named =
        |reason: &Reason| matches!(reason, Reason::OutOfReach { class: Class::Priority, .. });
    assert!(plan.why.iter().any(named), "{:?}", plan.why);
}

#[test]
fn a_flow_that_exceeds_a_lane_is_named() {
    let load = heavy(measured(lanes(&[&[130], &[20]], 1), markovian(None)), &[(0, 120)]);
    let (plan, _) = plan(&mut strict(), 0, &load);
    let named = |reason: &Reason| matches!(reason, Reason::HeavyFlow { shard: ShardId(0), .. });
    assert!(plan.why.iter().any(named), "{:?}", plan.why);
}

#[test]
fn fixed_numbers_of_lanes_stay_whatever_the_load() {
    let fixed = Some(Counts { working: 2, offloading: 1 });
    for shards in [&[&[5_u64, 5][..], &[5, 5], &[5]], &[&[60, 30][..], &[60], &[60]]] {
        let load = measured(lanes(shards, 0), markovian(None));
        let mut policy = Dyssect { fixed, ..strict() };
        plan(&mut policy, 0, &load);
        assert_eq!(policy.counts, fixed);
        let mut free = strict();
        plan(&mut free, 0, &load);
        assert_ne!(free.counts, fixed, "the load asks for other numbers");
    }
}

#[test]
fn the_balance_goal_levels_lanes() {
    let price = SquaredLoad::of(percent(10), percent(1));
    let mut policy = Dyssect { goal: Goal::Balance(price), ..strict() };
    let load = measured(lanes(&[&[30, 20, 10], &[10, 10]], 0), markovian(None));
    let (plan, after) = plan(&mut policy, 0, &load);
    assert_eq!(plan.moves.len(), 1, "{plan:?}");
    assert!(after.imbalance().squared < load.imbalance().squared);
}

#[test]
fn uneven_lanes_that_could_bear_a_step_are_made_ready_for_it_once_a_long_period() {
    // Both meet the objectives; if the load grew by a third, the first would not, and even lanes would.
    let load = measured(lanes(&[&[20, 20, 20, 10], &[10, 10, 10]], 0), markovian(None));
    let mut policy = Dyssect { keep: 2, ..strict() };
    let (ready, after) = plan(&mut policy, 0, &load);
    assert_eq!(ready.moves.len(), 1, "{ready:?}");
    assert!(after.load(LaneId(0)) < percent(60), "{after:?}");
    let readiness = |reason: &Reason| matches!(reason, Reason::Readiness { changes: 1, .. });
    assert!(ready.why.iter().any(readiness), "{:?}", ready.why);
    // Not between two long periods, and not what is ready already.
    let (between, _) = plan(&mut policy, 100, &load);
    assert!(between.is_empty(), "{between:?}");
    let (again, _) = plan(&mut policy, 1_000, &measured(after, markovian(None)));
    assert!(again.is_empty(), "{again:?}");
}
