//! Random problems.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_steer::policy::Load;
use rheostat_steer::policy::dyssect::{
    Budget, FlowAssignment, LaneLimit, LaneSetting, Problem, ShardDemand, WaitModel, WaitStatistic,
    fewest_lanes,
};

use super::Size;

/// Loads, the answer with the fewest lanes, and the loads after that.
pub(super) struct Instance {
    /// What `previous` answers.
    pub(super) before: Problem,
    /// An assignment with as few lanes as were found.
    pub(super) previous: FlowAssignment,
    /// Each shard has up to four fifths more or less; together they have 3 % less.
    pub(super) now: Problem,
}

impl Instance {
    /// The shard of rank r weighs r^-s give or take a half, s between 0.3 and 0.9, in a random order, as
    /// in the figures of other policies. Together they come to 40 to 95 % of what as many working lanes may have.
    /// No shard has more than one lane may have: no assignment helps against those. Objectives, variations, reserves, and what may leave of each shard are drawn.
    pub(super) fn draw(seed: u64, size: Size) -> Instance {
        let mut random = StdRng::seed_from_u64(seed);
        let setting = setting(&mut random, size.lanes);
        let exponent: f64 = random.random_range(0.3..0.9);
        let rank = |rank: usize| (rank as f64).powf(-exponent);
        let mut weights: Vec<f64> =
            (1..=size.shards).map(|r| rank(r) * random.random_range(0.5..1.5)).collect();
        weights.shuffle(&mut random);
        let fill = random.random_range(0.4..0.95);
        let total = fill * size.lanes as f64 * setting.working.planned().share();
        let before = problem(&mut random, &weights, total, setting);
        let previous = fewest_lanes(&before, Budget::steps(10_000_000)).assignment;
        let weights: Vec<f64> =
            weights.iter().map(|weight| weight * random.random_range(0.2..1.8)).collect();
        let now = problem(&mut random, &weights, 0.97 * total, setting);
        Instance { before, previous, now }
    }
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
    LaneSetting { lanes, working, offloading, min_working_per_offloading: 2 }
}

fn problem(random: &mut StdRng, weights: &[f64], total: f64, setting: LaneSetting) -> Problem {
    let scale = total / weights.iter().sum::<f64>();
    let most: f64 = random.random_range(0.05..1.0);
    let lane = setting.working.planned().share();
    let shards = weights.iter().map(|weight| {
        let load = Load::from_share((weight * scale).min(lane)).expect("a load");
        let share = Load::from_share(random.random_range(0.0..most)).expect("a share");
        ShardDemand { load, may_leave: load.times(share) }
    });
    Problem::new(shards.collect(), setting).expect("drawn figures are sound")
}
