//! Random problems, to test and to measure the models with.

use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;

use super::{LaneLimit, LaneSetting, Problem, ShardDemand, WaitModel, WaitStatistic};
use crate::policy::Load;

/// So many lanes, whose objectives, variations and reserves are drawn.
pub fn draw_setting(random: &mut impl Rng, lanes: usize) -> LaneSetting {
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

/// What each of so many shards weighs beside the others: the one of rank r weighs r^-s give or take a half, s between 0.3 and 0.9,
/// in a random order.
pub fn draw_weights(random: &mut impl Rng, shards: usize) -> Vec<f64> {
    let exponent: f64 = random.random_range(0.3..0.9);
    let rank = |rank: usize| (rank as f64).powf(-exponent);
    let mut weights: Vec<f64> =
        (1..=shards).map(|r| rank(r) * random.random_range(0.5..1.5)).collect();
    weights.shuffle(random);
    weights
}

/// What shards of these weights bring.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// All of them, in lanes.
    pub total: f64,
    /// What no shard exceeds.
    pub heaviest: f64,
    /// The share of shards of which nothing may leave.
    pub fixed: f64,
}

/// A problem. How much may leave is drawn for each shard: little or much of all.
///
/// # Panics
/// When the total is no load: negative, or beyond 1,000 lanes.
pub fn draw_problem(
    random: &mut impl Rng,
    weights: &[f64],
    demand: Demand,
    setting: LaneSetting,
) -> Problem {
    let scale = demand.total / weights.iter().sum::<f64>();
    let most: f64 = random.random_range(0.05..1.0);
    let shards = weights.iter().map(|weight| {
        let load = Load::from_share((weight * scale).min(demand.heaviest)).expect("a load");
        let is_fixed = demand.fixed > 0.0 && random.random_bool(demand.fixed);
        let share = if is_fixed { 0.0 } else { random.random_range(0.0..most) };
        ShardDemand { load, may_leave: load.times(Load::from_share(share).expect("a share")) }
    });
    Problem::new(shards.collect(), setting).expect("drawn figures are sound")
}
