//! What holds for every answer of Dyssect's models.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::{LaneId, ShardId};
use rheostat_steer::policy::dyssect::{
    BalanceGoal, Budget, Constraint, Counts, FlowAssignment, LaneLimit, LaneRole, LaneSetting,
    Model, Problem, ProblemError, ShardDemand, WaitModel, WaitStatistic, balance, fewest_changes,
    fewest_lanes, violations,
};
use rheostat_steer::policy::{Load, SquaredLoad};

use crate::dyssect_instances::{perturbed, problem, solved};

const GOAL: BalanceGoal = BalanceGoal { target: Load::from_percent(60), price: SquaredLoad::ZERO };

fn sizes() -> impl Strategy<Value = (u64, usize, usize, f64)> {
    let shards = prop_oneof![Just(16_usize), Just(128), Just(512), 1..300_usize];
    (any::<u64>(), shards, 1..33_usize, 0.05..1.3_f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fewest_lanes_are_feasible_or_reported((seed, shards, lanes, fill) in sizes()) {
        let problem = problem(seed, shards, lanes, fill);
        let answer = fewest_lanes(&problem, Budget::default());
        let found = violations(&problem, Model::FewestLanes, &answer.assignment);
        prop_assert_eq!(&found, &answer.violations);
        prop_assert_eq!(answer.counts, answer.assignment.counts());
        prop_assert_eq!(answer.value, answer.counts.lanes());
        if found.is_empty() {
            let bound = answer.bound;
            prop_assert!(bound.is_some_and(|bound| bound <= answer.value), "{bound:?}");
        }
        // What is violated is what lanes may have: everything else can always be had.
        let loads = [
            Constraint::WorkingWait,
            Constraint::OffloadingWait,
            Constraint::WorkingReserve,
            Constraint::OffloadingReserve,
        ];
        prop_assert!(found.iter().all(|violation| loads.contains(&violation.constraint)));
        prop_assert!(answer.steps <= Budget::default_steps() + (shards * (lanes + 1)) as u64);
    }

    #[test]
    fn fewest_changes_are_feasible_or_reported(
        (seed, shards, lanes, fill) in sizes(),
        more in -2..3_isize,
    ) {
        let old = problem(seed, shards, lanes, fill);
        let first = solved(&old);
        let problem = perturbed(seed ^ 1, &old, 0.5);
        let working = first.counts.working.saturating_add_signed(more);
        let counts = Counts { working, ..first.counts };
        let answer = fewest_changes(&problem, &first.assignment, counts, Budget::default());
        let Ok(answer) = answer else {
            prop_assert!(problem.check_counts(counts).is_err());
            return Ok(());
        };
        let found = violations(&problem, Model::FewestChanges(counts), &answer.assignment);
        prop_assert_eq!(&found, &answer.violations);
        prop_assert_eq!(answer.assignment.counts(), counts);
        let changes = answer.assignment.changes_since(&first.assignment).total();
        prop_assert_eq!(changes, answer.value);
        if found.is_empty() {
            prop_assert!(answer.bound.is_some_and(|bound| bound <= changes));
        }
    }

    #[test]
    fn nothing_changes_where_nothing_has_to((seed, shards, lanes, fill) in sizes()) {
        let problem = problem(seed, shards, lanes, fill);
        let first = solved(&problem);
        prop_assume!(first.violations.is_empty());
        let second =
            fewest_changes(&problem, &first.assignment, first.counts, Budget::default()).unwrap();
        prop_assert_eq!((second.value, second.bound, second.violations), (0, Some(0), vec![]));
        prop_assert_eq!(second.assignment.home, first.assignment.home);
        prop_assert_eq!(second.assignment.links, first.assignment.links);
    }

    #[test]
    fn balanced_lanes_are_feasible_and_no_worse_than_before(
        (seed, shards, lanes, fill) in sizes(),
    ) {
        let old = problem(seed, shards, lanes, fill);
        let first = solved(&old);
        let problem = perturbed(seed ^ 1, &old, 0.5);
        let counts = first.counts;
        let answer = balance(&problem, &first.assignment, counts, GOAL, Budget::default()).unwrap();
        prop_assert_eq!(answer.violations, vec![]);
        prop_assert!(answer.bound <= answer.squared);
        let still = BalanceGoal { price: SquaredLoad::MAX, ..GOAL };
        let before = balance(&problem, &first.assignment, counts, still, Budget::default()).unwrap();
        prop_assert_eq!(before.changes.total(), 0);
        prop_assert!(answer.squared <= before.squared);
    }

    #[test]
    fn a_budget_bounds_every_search((seed, shards, lanes, fill) in sizes(), steps in 0..3_000_u64) {
        let old = problem(seed, shards, lanes, fill);
        let answer = fewest_lanes(&old, Budget::steps(steps));
        // A step that has begun looks at all shards and lanes it is about.
        let slack = (4 * shards * (lanes + 1)) as u64;
        prop_assert!(answer.steps <= steps + slack);
        prop_assert!(!answer.violations.is_empty() || answer.value <= lanes);
        let counts = answer.counts;
        let problem = perturbed(seed ^ 1, &old, 0.5);
        let budget = Budget::steps(steps);
        let changes = fewest_changes(&problem, &answer.assignment, counts, budget).unwrap();
        prop_assert!(changes.steps <= steps + slack);
        let even = balance(&problem, &answer.assignment, counts, GOAL, budget).unwrap();
        prop_assert!(even.steps <= steps + slack);
    }

    /// Any figures at all: an answer or an error, never a panic.
    #[test]
    fn no_input_panics(
        loads in prop::collection::vec((0..=u64::MAX, 0..=u64::MAX), 0..40),
        lanes in 0..20_usize,
        cv2 in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), 0.0..1e9_f64],
        (service, objective) in (any::<u64>(), any::<u64>()),
        (highest, least) in (0..200_u64, 0..4_usize),
        (working, offloading) in (0..20_usize, 0..20_usize),
        homes in prop::collection::vec(0..25_u16, 0..45),
        roles in prop::collection::vec(0..3_usize, 0..25),
    ) {
        let shards = loads.into_iter().map(|(load, part)| {
            let load = Load::from_nanos_per_second(load);
            ShardDemand { load, may_leave: load.part(part, u64::MAX) }
        });
        let wait = WaitModel {
            arrival_cv2: cv2,
            service_cv2: 1.0,
            service: Duration::from_nanos(service),
            objective: Duration::from_nanos(objective),
            statistic: WaitStatistic::Mean,
            factor: 1.0,
        };
        let limit = LaneLimit { wait: Some(wait), highest: Load::from_percent(highest) };
        let setting =
            LaneSetting { lanes, working: limit, offloading: limit, min_working_per_offloading: least };
        let Ok(problem) = Problem::new(shards.collect(), setting) else { return Ok(()) };
        let counts = Counts { working, offloading };
        let role = [LaneRole::Idle, LaneRole::Working, LaneRole::Offloading];
        let count = problem.shards().len();
        // Now of the right length, now not; lanes that do not exist, links that make no sense.
        let lane = |at: usize| homes.get(at % homes.len().max(1)).map_or(LaneId(0), |h| LaneId(*h));
        let arbitrary = FlowAssignment {
            roles: (0..lanes).map(|at| role[roles.get(at).copied().unwrap_or(1)]).collect(),
            home: (0..count.max(homes.len() / 20 * 40)).map(lane).collect(),
            links: (0..lanes).map(|at| (at % 3 > 0).then(|| lane(at + 7))).collect(),
            offloaded: problem.shards().iter().map(|shard| shard.load).collect(),
        };
        let dealt = FlowAssignment::dealt(count, lanes);
        fewest_lanes(&problem, Budget::default());
        for previous in [&dealt, &arbitrary] {
            for model in [Model::FewestLanes, Model::FewestChanges(counts), Model::Balance(counts)] {
                violations(&problem, model, previous);
            }
            let fits = problem.check_counts(counts).is_ok();
            let changes = fewest_changes(&problem, previous, counts, Budget::default());
            prop_assert!(fits || changes.is_err());
            let _ = balance(&problem, previous, counts, GOAL, Budget::default());
        }
    }
}

fn small(loads: &[(u64, u64)], lanes: usize) -> Problem {
    let demand = |&(load, may_leave): &(u64, u64)| ShardDemand {
        load: Load::from_percent(load),
        may_leave: Load::from_percent(may_leave),
    };
    let limit = LaneLimit { highest: Load::from_percent(80), ..LaneLimit::NONE };
    let setting =
        LaneSetting { lanes, working: limit, offloading: limit, min_working_per_offloading: 2 };
    Problem::new(loads.iter().map(demand).collect(), setting).unwrap()
}

/// A feasible assignment: lanes 0 and 1 work, lane 2 takes a tenth from each.
fn sound() -> (Problem, FlowAssignment) {
    let problem = small(&[(60, 30), (30, 0), (50, 20), (40, 20)], 4);
    let lane = LaneId;
    let assignment = FlowAssignment {
        roles: vec![LaneRole::Working, LaneRole::Working, LaneRole::Offloading, LaneRole::Idle],
        home: vec![lane(0), lane(0), lane(1), lane(1)],
        links: vec![Some(lane(2)), Some(lane(2)), None, None],
        offloaded: [10, 0, 0, 10].map(Load::from_percent).to_vec(),
    };
    (problem, assignment)
}

/// Each constraint is seen to fail by name, and by itself as far as others do not follow.
#[test]
fn every_constraint_is_checked() {
    let (problem, sound) = sound();
    let counts = Counts { working: 2, offloading: 1 };
    let all = [Model::FewestLanes, Model::FewestChanges(counts), Model::Balance(counts)];
    for model in all {
        assert_eq!(violations(&problem, model, &sound), vec![]);
    }
    let mut seen = HashSet::new();
    let mut broken = |constraint, model, change: &dyn Fn(&mut FlowAssignment)| {
        let mut assignment = sound.clone();
        change(&mut assignment);
        let found = violations(&problem, model, &assignment);
        let names: Vec<_> = found.iter().map(|violation| violation.constraint).collect();
        assert!(names.contains(&constraint), "{constraint:?} among {names:?}");
        assert!(found.iter().all(|violation| violation.excess > 0.0));
        seen.insert(constraint);
    };
    let long = Model::FewestLanes;
    let short = Model::FewestChanges(counts);
    broken(Constraint::LaneCount, long, &|a| a.roles.fill(LaneRole::Idle));
    broken(Constraint::OneHome, long, &|a| a.home[1] = LaneId(4));
    broken(Constraint::OneHome, long, &|a| a.home.truncate(3));
    broken(Constraint::HomeWorks, long, &|a| a.home[1] = LaneId(3));
    broken(Constraint::OffloadNeedsLink, long, &|a| a.links[0] = None);
    broken(Constraint::LinkNeedsWorking, long, &|a| a.links[3] = Some(LaneId(2)));
    broken(Constraint::WorkingHasShard, long, &|a| a.roles[3] = LaneRole::Working);
    broken(Constraint::LinkToOffloading, long, &|a| a.roles[2] = LaneRole::Idle);
    broken(Constraint::EnoughLinks, long, &|a| a.links[1] = None);
    broken(Constraint::MayLeave, long, &|a| a.offloaded[0] = Load::from_percent(31));
    broken(Constraint::WorkingReserve, long, &|a| a.offloaded[0] = Load::from_percent(9));
    broken(Constraint::OffloadingReserve, long, &|a| a.offloaded[0] = Load::from_percent(71));
    broken(Constraint::WorkingBelowFull, short, &|a| a.home[2] = LaneId(0));
    broken(Constraint::OffloadingBelowFull, short, &|a| a.offloaded[0] = Load::from_percent(90));
    broken(Constraint::WorkingCount, short, &|a| a.roles[3] = LaneRole::Working);
    broken(Constraint::OffloadingCount, short, &|a| a.roles[3] = LaneRole::Offloading);
    let strict = WaitModel {
        arrival_cv2: 1.0,
        service_cv2: 1.0,
        service: Duration::from_micros(1),
        objective: Duration::from_nanos(10),
        statistic: WaitStatistic::Mean,
        factor: 1.0,
    };
    let limit = LaneLimit { wait: Some(strict), highest: Load::from_percent(80) };
    let setting = LaneSetting { working: limit, offloading: limit, ..*problem.setting() };
    let strict = Problem::new(problem.shards().to_vec(), setting).unwrap();
    for violation in violations(&strict, long, &sound) {
        seen.insert(violation.constraint);
    }
    assert_eq!(seen.len(), 17, "each of them was seen");
}

#[test]
fn nonsense_is_an_error_with_its_figures() {
    let (problem, sound) = sound();
    let few = Counts { working: 1, offloading: 1 };
    let error = fewest_changes(&problem, &sound, few, Budget::default()).unwrap_err();
    assert!(matches!(error, ProblemError::Counts { working: 1, offloading: 1, least: 2, .. }));
    let other = FlowAssignment::dealt(3, 4);
    let counts = Counts { working: 2, offloading: 1 };
    let error = balance(&problem, &other, counts, GOAL, Budget::default()).unwrap_err();
    assert_eq!(error, ProblemError::Previous { shards: 4, lanes: 4 });
    let setting = *problem.setting();
    let load = Load::from_percent(10);
    let demand = ShardDemand { load, may_leave: Load::from_percent(11) };
    assert_eq!(
        Problem::new(vec![demand], setting).unwrap_err().to_string(),
        format!("of {}, 11.0 % may leave, but its load is 10.0 %", ShardId(0))
    );
    assert_eq!(Problem::new(vec![], setting), Err(ProblemError::Shards(0)));
}

#[test]
fn a_load_that_no_lanes_can_bear_is_reported_as_such() {
    // One shard alone is more than a lane and an offloading lane take together.
    let problem = small(&[(170, 90), (10, 0), (10, 0)], 8);
    let answer = fewest_lanes(&problem, Budget::default());
    assert_eq!(answer.bound, None);
    let excess: f64 = answer.violations.iter().map(|violation| violation.excess).sum();
    // 160 % fit, whatever else happens.
    assert!((0.1..0.11).contains(&excess), "{:?}", answer.violations);
}
