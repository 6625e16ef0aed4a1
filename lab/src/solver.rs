//! `rheo bench solver`: what Dyssect's optimisation models take, and how good their answers are.
//!
//! Problems are drawn from a seed, so that answers are the same on every machine and only times
//! differ. A time is the median of three runs of one problem; `median_us` and `p99_us` are taken
//! over problems. Whether an answer is optimal is known when its own bound proves it, or a search with
//! forty times the budget finds something better or proves that there is nothing.

mod instance;
mod row;

use std::time::Instant;

use rheostat_steer::policy::dyssect::{
    Answer, BalanceGoal, Balanced, Budget, FlowAssignment, Problem, balance, fewest_changes,
    fewest_lanes,
};
use rheostat_steer::policy::{Load, SquaredLoad};

use self::instance::Instance;
pub use row::SolverRow;

/// Runs of one problem.
const RUNS: usize = 3;
/// The budget of a proof.
const PROOF: Budget = Budget::steps(40 * Budget::default_steps());
/// How far from its bound a balanced answer passes for as good: as if each lane were 1 % of its time
/// away from the mean.
const CLOSE: Load = Load::from_percent(1);

/// How many shards and lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Shards.
    pub shards: usize,
    /// Working and offloading lanes at most.
    pub lanes: usize,
}

/// Measures models.
#[derive(Clone, Debug)]
pub struct SolverBench {
    /// Which problems.
    pub sizes: Vec<Size>,
    /// How many of each size.
    pub instances: usize,
    /// What they are drawn from.
    pub seed: u64,
    /// What a search may take.
    pub budget: Budget,
}

/// A model's name, and what measures it.
type Model<'a> = (&'a str, &'a dyn Fn(&Instance) -> SolverMeasurement);

/// One answer.
struct SolverMeasurement {
    us: f64,
    /// Lanes, or changes.
    value: usize,
    is_feasible: bool,
    is_cut: bool,
    is_optimal: Option<bool>,
    meets_bound: bool,
}

impl SolverBench {
    /// Measures each model at each size; `done` gets the rows.
    pub fn run(&self, mut done: impl FnMut(&SolverRow)) {
        for size in &self.sizes {
            let seeds = (0..self.instances as u64).map(|number| self.seed.wrapping_add(number));
            let instances: Vec<Instance> = seeds.map(|seed| Instance::draw(seed, *size)).collect();
            let models: [Model<'_>; 3] = [
                ("fewest-lanes", &|instance| self.lanes(instance)),
                ("fewest-changes", &|instance| self.changes(instance)),
                ("balance", &|instance| self.balance(instance)),
            ];
            for (model, measure) in models {
                let measured: Vec<SolverMeasurement> = instances.iter().map(measure).collect();
                done(&SolverRow::of(model, *size, &measured));
            }
        }
    }

    fn lanes(&self, instance: &Instance) -> SolverMeasurement {
        let solve = |budget| fewest_lanes(&instance.before, budget);
        self.measured(solve)
    }

    fn changes(&self, instance: &Instance) -> SolverMeasurement {
        let previous = &instance.previous;
        let solve = |budget| {
            fewest_changes(&instance.now, previous, previous.counts(), budget)
                .expect("a drawn problem fits its answer")
        };
        self.measured(solve)
    }

    /// Measures a model that proves its answers.
    fn measured(&self, solve: impl Fn(Budget) -> Answer) -> SolverMeasurement {
        let (us, answer) = timed(|| solve(self.budget));
        // That nothing is feasible is an answer, too.
        let is_proved = |answer: &Answer| answer.is_optimal() || answer.bound.is_none();
        let is_feasible = answer.violations.is_empty();
        let is_optimal = if is_proved(&answer) {
            Some(true)
        } else {
            let other = solve(PROOF);
            let is_better =
                other.violations.is_empty() && (!is_feasible || other.value < answer.value);
            if is_better { Some(false) } else { is_proved(&other).then_some(is_feasible) }
        };
        SolverMeasurement {
            us,
            value: answer.value,
            is_feasible,
            is_cut: answer.is_cut,
            is_optimal,
            meets_bound: is_proved(&answer),
        }
    }

    fn balance(&self, instance: &Instance) -> SolverMeasurement {
        let goal = goal(&instance.now, &instance.previous);
        let (us, answer) = timed(|| {
            balance(
                &instance.now,
                &instance.previous,
                instance.previous.counts(),
                goal,
                self.budget,
            )
            .expect("a drawn problem fits its answer")
        });
        let Balanced { assignment, squared, bound, .. } = &answer;
        let lanes = assignment.counts().lanes() as f64;
        SolverMeasurement {
            us,
            value: answer.changes.total(),
            is_feasible: answer.violations.is_empty(),
            is_cut: answer.is_cut,
            is_optimal: None,
            meets_bound: squared.share() - bound.share() <= lanes * CLOSE.share().powi(2),
        }
    }
}

/// The mean of the lanes as target; a change has to gain as much as two lanes 1 % away from it.
fn goal(problem: &Problem, previous: &FlowAssignment) -> BalanceGoal {
    let total: Load = problem.shards().iter().map(|shard| shard.load).sum();
    let target = total.part(1, previous.counts().lanes() as u64);
    BalanceGoal { target, price: SquaredLoad::of(CLOSE, Load::from_percent(2)) }
}

fn timed<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut once = || {
        let start = Instant::now();
        let answer = run();
        (start.elapsed().as_secs_f64() * 1e6, answer)
    };
    let mut runs: Vec<(f64, T)> = (0..RUNS).map(|_| once()).collect();
    runs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    runs.swap_remove(RUNS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sound() {
        let sizes = vec![Size { shards: 16, lanes: 4 }, Size { shards: 64, lanes: 8 }];
        let bench = SolverBench { sizes, instances: 20, seed: 1, budget: Budget::default() };
        let mut rows = Vec::new();
        bench.run(|row| rows.push(row.clone()));
        assert_eq!(rows.len(), 6);
        for row in &rows {
            assert!(row.median_us > 0.0 && row.median_us <= row.p99_us, "{row:?}");
            assert_eq!(row.optimal_share.is_none(), row.model == "balance");
            assert!(row.optimal_share.is_none_or(|share| share >= 0.97), "{row:?}");
            assert!(row.bound_share > 0.5 && row.bound_share <= 1.0, "{row:?}");
        }
    }
}
