//! Random problems for Dyssect's models.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_steer::policy::Load;
use rheostat_steer::policy::dyssect::{Answer, Budget};
use rheostat_steer::policy::dyssect::{
    LaneLimit, LaneSetting, Problem, ShardDemand, WaitModel, WaitStatistic, fewest_lanes,
};

/// A problem of so many shards and lanes. Loads follow ranks as those of `load::zipf_like` do and
/// come to `fill` of what as many working lanes may have; objectives, reserves, and what may leave
/// are drawn.
pub(crate) fn problem(seed: u64, shards: usize, lanes: usize, fill: f64) -> Problem {
    let mut random = StdRng::seed_from_u64(seed);
    let setting = setting(&mut random, lanes);
    let exponent: f64 = random.random_range(0.3..0.9);
    let rank = |rank: usize| (rank as f64).powf(-exponent);
    let mut weights: Vec<f64> =
        (1..=shards).map(|r| rank(r) * random.random_range(0.5..1.5)).collect();
    weights.shuffle(&mut random);
    let total = fill * lanes as f64 * setting.working.planned().share();
    demands(&mut random, &weights, total, setting)
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
    demands(&mut random, &weights, 0.97 * total, *problem.setting())
}

/// The answer with the fewest lanes, however long it takes.
pub(crate) fn solved(problem: &Problem) -> Answer {
    fewest_lanes(problem, Budget::steps(10_000_000))
}

fn setting(random: &mut StdRng, lanes: usize) -> LaneSetting {
    let service = Duration::from_micros(2);
    let mut limit = |times: std::ops::Range<f64>| LaneLimit {
        wait: Some(WaitModel {
            arrival_cv2: random.random_range(0.5..3.0),
            service_cv2: random.random_range(0.2..2.0),
            service,
            objective: service.mul_f64(random.random_range(times)),
            statistic: WaitStatistic::Mean,
            factor: 1.0,
        }),
        highest: Load::from_percent(random.random_range(75..=95)),
    };
    let (working, offloading) = (limit(3.0..25.0), limit(10.0..250.0));
    let min_working_per_offloading = random.random_range(1..=2);
    LaneSetting { lanes, working, offloading, min_working_per_offloading }
}

fn demands(random: &mut StdRng, weights: &[f64], total: f64, setting: LaneSetting) -> Problem {
    let scale = total / weights.iter().sum::<f64>();
    // What of a shard may leave: little or much of all, and nothing of some.
    let most: f64 = random.random_range(0.05..1.0);
    let shards = weights.iter().map(|weight| {
        let load = Load::from_share((weight * scale).min(1000.0)).expect("a load");
        let share = if random.random_bool(0.1) { 0.0 } else { random.random_range(0.0..most) };
        let may_leave = load.times(Load::from_share(share).expect("a share"));
        ShardDemand { load, may_leave }
    });
    let shards = shards.collect();
    Problem::new(shards, setting).expect("drawn figures are sound")
}
