//! Random problems for Dyssect's models.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_steer::policy::dyssect::instances::{
    Demand, draw_problem, draw_setting, draw_weights,
};
use rheostat_steer::policy::dyssect::{
    Answer, Budget, LaneSetting, Problem, ShardDemand, fewest_lanes,
};

/// A problem of so many shards and lanes. Loads come to `fill` of what as many working lanes may have; one shard may have more than
/// a lane may, and nothing of some may leave.
pub(crate) fn problem(seed: u64, shards: usize, lanes: usize, fill: f64) -> Problem {
    let mut random = StdRng::seed_from_u64(seed);
    let setting = draw_setting(&mut random, lanes);
    let min_working_per_offloading = random.random_range(1..=2);
    let setting = LaneSetting { min_working_per_offloading, ..setting };
    let weights = draw_weights(&mut random, shards);
    let total = fill * lanes as f64 * setting.working.planned().share();
    draw_problem(&mut random, &weights, demand(total), setting)
}

/// The same lanes after each load has changed by up to `spread` of it.
pub(crate) fn perturbed(seed: u64, problem: &Problem, spread: f64) -> Problem {
    let mut random = StdRng::seed_from_u64(seed);
    let mut total = 0.0;
    let mut weight = |shard: &ShardDemand| {
        total += shard.load.share();
        shard.load.share() * random.random_range(1.0 - spread..1.0 + spread)
    };
    let weights: Vec<f64> = problem.shards().iter().map(&mut weight).collect();
    draw_problem(&mut random, &weights, demand(0.97 * total), *problem.setting())
}

fn demand(total: f64) -> Demand {
    Demand { total, heaviest: 1000.0, fixed: 0.1 }
}

/// The answer with the fewest lanes, however long it takes.
pub(crate) fn solved(problem: &Problem) -> Answer {
    fewest_lanes(problem, Budget::steps(10_000_000))
}
