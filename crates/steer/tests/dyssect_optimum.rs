//! Dyssect's models against an exact solver, on small problems.
//! `cargo test -p rheostat-steer --test steer dyssect_optimum -- --nocapture` prints the figures.

use std::time::Duration;

use microlp::{ComparisonOp, Error, OptimizationDirection, SolveOutcome, Variable};
use rheostat_base::LaneId;
use rheostat_steer::policy::dyssect::{
    BalanceGoal, Budget, Counts, FlowAssignment, LaneRole, Problem, balance, fewest_changes,
    fewest_lanes,
};
use rheostat_steer::policy::{Load, SquaredLoad};

use crate::dyssect_instances::{perturbed, problem, solved};

const SHARDS: usize = 16;
/// What an instance may take; what takes longer proves nothing.
const LIMIT: Duration = Duration::from_secs(2);

/// What an exact solver knows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exact {
    /// The least changes.
    Least(f64),
    Infeasible,
    Unknown,
}

/// Table 5.2 or 5.3 for given counts, linear: what leaves a lane for another is one variable per
/// pair of them.
struct Linear {
    model: microlp::Problem,
    home: Vec<Vec<Variable>>,
    links: Vec<Vec<Variable>>,
}

impl Linear {
    fn new(
        problem: &Problem,
        counts: Counts,
        (working_cap, offloading_cap): (Load, Load),
        price_of_home: impl Fn(usize, usize) -> f64,
        price_of_link: impl Fn(usize, usize) -> f64,
    ) -> Linear {
        use ComparisonOp::{Eq, Ge, Le};
        let mut model = microlp::Problem::new(OptimizationDirection::Minimize);
        let Counts { working, offloading } = counts;
        let (lanes, offloaders) = (0..working, 0..offloading);
        let shards = problem.shards();
        let home: Vec<Vec<Variable>> = (0..shards.len())
            .map(|s| lanes.clone().map(|c| model.add_binary_var(price_of_home(s, c))).collect())
            .collect();
        let links: Vec<Vec<Variable>> = lanes
            .clone()
            .map(|c| {
                offloaders.clone().map(|k| model.add_binary_var(price_of_link(c, k))).collect()
            })
            .collect();
        let away: Vec<Vec<Variable>> = lanes
            .clone()
            .map(|_| offloaders.clone().map(|_| model.add_var(0.0, (0.0, f64::INFINITY))).collect())
            .collect();
        // (5.3)
        for home in &home {
            let each: Vec<_> = home.iter().map(|x| (*x, 1.0)).collect();
            model.add_constraint(&each[..], Eq, 1.0);
        }
        for c in lanes {
            // (5.6)
            let each: Vec<_> = home.iter().map(|home| (home[c], 1.0)).collect();
            model.add_constraint(&each[..], Ge, 1.0);
            // (5.10), (5.12), (5.14) or (5.17)
            let mut load: Vec<_> =
                home.iter().zip(shards).map(|(home, s)| (home[c], s.load.share())).collect();
            load.extend(away[c].iter().map(|z| (*z, -1.0)));
            model.add_constraint(&load[..], Le, working_cap.share());
            // (5.9)
            let mut leaves: Vec<_> = away[c].iter().map(|z| (*z, 1.0)).collect();
            let may = |s: usize| -shards[s].may_leave.share();
            leaves.extend(home.iter().enumerate().map(|(s, home)| (home[c], may(s))));
            model.add_constraint(&leaves[..], Le, 0.0);
            // (5.5)
            let one: Vec<_> = links[c].iter().map(|link| (*link, 1.0)).collect();
            model.add_constraint(&one[..], Le, 1.0);
            for k in offloaders.clone() {
                let cap = offloading_cap.share();
                model.add_constraint(&[(away[c][k], 1.0), (links[c][k], -cap)][..], Le, 0.0);
            }
        }
        for k in offloaders {
            // (5.8)
            let served: Vec<_> = links.iter().map(|links| (links[k], 1.0)).collect();
            let least = problem.setting().min_working_per_offloading as f64;
            model.add_constraint(&served[..], Ge, least);
            // (5.11), (5.13), (5.15) or (5.18)
            let load: Vec<_> = away.iter().map(|away| (away[k], 1.0)).collect();
            model.add_constraint(&load[..], Le, offloading_cap.share());
        }
        model.set_time_limit(LIMIT);
        Linear { model, home, links }
    }

    fn solve(&self) -> Exact {
        match self.model.solve() {
            Ok(SolveOutcome::Solution(solution)) => match solution.status() {
                microlp::SolutionStatus::Optimal => Exact::Least(solution.objective()),
                _ => Exact::Unknown,
            },
            Err(Error::Infeasible) => Exact::Infeasible,
            _ => Exact::Unknown,
        }
    }
}

/// Whether any assignment has these counts. Lanes are numbered by their first shard.
fn fewest_lanes_exact(problem: &Problem, counts: Counts) -> Exact {
    let caps = (problem.setting().working.planned(), problem.setting().offloading.planned());
    let mut linear = Linear::new(problem, counts, caps, |_, _| 0.0, |_, _| 0.0);
    for (shard, home) in linear.home.iter().enumerate() {
        for lane in home.iter().skip(shard + 1) {
            linear.model.add_constraint(&[(*lane, 1.0)][..], ComparisonOp::Eq, 0.0);
        }
    }
    linear.solve()
}

/// The fewest changes, where lanes keep their roles.
fn fewest_changes_exact(problem: &Problem, previous: &FlowAssignment) -> Exact {
    let caps = (problem.setting().working.transient(), problem.setting().offloading.transient());
    let with = |role| -> Vec<LaneId> {
        let lanes = (0..).map(LaneId).zip(&previous.roles);
        lanes.filter(|(_, other)| **other == role).map(|(lane, _)| lane).collect()
    };
    let (working, offloading) = (with(LaneRole::Working), with(LaneRole::Offloading));
    let price = |differs: bool| if differs { 1.0 } else { 0.0 };
    let linear = Linear::new(
        problem,
        previous.counts(),
        caps,
        |shard, lane| price(previous.home[shard] != working[lane]),
        |lane, link| price(previous.links[working[lane].index()] != Some(offloading[link])),
    );
    assert_eq!(linear.links.len(), working.len());
    linear.solve()
}

/// Optimal answers among those where the optimum is known.
#[derive(Debug, Default)]
struct Score {
    optimal: usize,
    proved: usize,
    unknown: usize,
}

impl Score {
    fn note(&mut self, optimal: Option<bool>) {
        match optimal {
            Some(optimal) => {
                self.proved += 1;
                self.optimal += usize::from(optimal);
            }
            None => self.unknown += 1,
        }
    }

    fn share(&self) -> f64 {
        self.optimal as f64 / self.proved as f64
    }
}

#[test]
fn fewest_lanes_are_optimal_where_that_is_proved() {
    let mut score = Score::default();
    for seed in 0..150 {
        let lanes = 4 + seed as usize % 5;
        let problem = problem(seed, SHARDS, lanes, 0.5 + 0.3 * (seed % 7) as f64 / 6.0);
        let answer = fewest_lanes(&problem, Budget::default());
        let least = answer.bound.unwrap_or(lanes + 1);
        if answer.is_optimal() || answer.bound.is_none() {
            score.note(Some(true));
            continue;
        }
        // Is there an assignment with fewer lanes, or any if none was found?
        let value = if answer.violations.is_empty() { answer.value } else { lanes + 1 };
        let splits = (least..value)
            .flat_map(|n| (0..n).map(move |o| Counts { working: n - o, offloading: o }));
        let splits = splits.filter(|counts| problem.check_counts(*counts).is_ok());
        let mut known = Some(true);
        for counts in splits {
            match fewest_lanes_exact(&problem, counts) {
                Exact::Least(_) => {
                    known = Some(false);
                    break;
                }
                Exact::Infeasible => {}
                Exact::Unknown => known = None,
            }
        }
        score.note(known);
    }
    println!("fewest lanes: {score:?}");
    assert!(score.proved >= 120 && score.share() >= 0.97, "{score:?}");
}

#[test]
fn the_bound_on_lanes_excludes_nothing() {
    let mut checked = 0;
    for seed in 200..260 {
        let lanes = 3 + seed as usize % 4;
        let problem = problem(seed, SHARDS, lanes, 0.7);
        let bound = fewest_lanes(&problem, Budget::default()).bound.unwrap_or(lanes + 1);
        for offloading in 0..bound - 1 {
            let counts = Counts { working: bound - 1 - offloading, offloading };
            if problem.check_counts(counts).is_ok() {
                let exact = fewest_lanes_exact(&problem, counts);
                assert!(!matches!(exact, Exact::Least(_)), "seed {seed}: {counts:?}");
                checked += usize::from(exact == Exact::Infeasible);
            }
        }
    }
    assert!(checked >= 60, "{checked}");
}

#[test]
fn fewest_changes_are_optimal_where_that_is_proved() {
    let mut score = Score::default();
    let mut changes = 0;
    for seed in 0..150 {
        let lanes = 4 + seed as usize % 4;
        let old = problem(seed, SHARDS, lanes, 0.6 + 0.25 * (seed % 5) as f64 / 4.0);
        let first = solved(&old);
        if !first.violations.is_empty() {
            continue;
        }
        let problem = perturbed(seed, &old, 0.8);
        let answer =
            fewest_changes(&problem, &first.assignment, first.counts, Budget::default()).unwrap();
        let exact = fewest_changes_exact(&problem, &first.assignment);
        score.note(match exact {
            Exact::Least(least) => {
                let least = least.round() as usize;
                let bound = answer.bound.expect("there is an assignment");
                assert!(bound <= least, "seed {seed}: bound {bound}, optimum {least}");
                assert!(!answer.violations.is_empty() || answer.value >= least, "seed {seed}");
                changes += least;
                Some(answer.violations.is_empty() && answer.value == least)
            }
            Exact::Infeasible => {
                assert!(!answer.violations.is_empty(), "seed {seed}");
                Some(true)
            }
            Exact::Unknown => None,
        });
    }
    println!("fewest changes: {score:?}, {changes} changes");
    assert!(changes >= 60, "{changes} changes are no test");
    assert!(score.proved >= 100 && score.share() >= 0.97, "{score:?}");
}

/// Without offloading lanes, where all assignments can be tried.
#[test]
fn balance_is_near_the_optimum() {
    let goal = BalanceGoal { target: Load::from_percent(50), price: SquaredLoad::ZERO };
    let mut ratios = Vec::new();
    for seed in 0..200 {
        let problem = problem(seed, 8, 3, 0.6);
        let previous = FlowAssignment::dealt(8, 3);
        let counts = previous.counts();
        let answer = balance(&problem, &previous, counts, goal, Budget::default()).unwrap();
        let loads: Vec<u64> =
            problem.shards().iter().map(|shard| shard.load.nanos_per_second()).collect();
        let squared = |mut code: usize| {
            let mut lanes = [0_u64; 3];
            for load in &loads {
                lanes[code % 3] += load;
                code /= 3;
            }
            let far = |lane: &u64| lane.abs_diff(goal.target.nanos_per_second());
            lanes.iter().map(|lane| u128::from(far(lane)).pow(2)).sum::<u128>()
        };
        let best = (0..3_usize.pow(8)).map(squared).min().unwrap();
        let best = best as f64 / 1e18;
        let found = answer.squared.share();
        assert!(found >= best * (1.0 - 1e-9) && answer.bound.share() <= best * (1.0 + 1e-9));
        ratios.push(found - best);
    }
    ratios.sort_by(f64::total_cmp);
    let (median, p95) = (ratios[100], ratios[190]);
    println!("balance: squared above the optimum: median {median:.1e}, p95 {p95:.1e} lanes²");
    assert!(median < 2e-3 && p95 < 2e-2, "{median} {p95}");
}
