//! Seeded random loads.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rheostat_base::LaneId;
use rheostat_steer::policy::{LaneBounds, LaneLoad, Load, LoadSnapshot, ShardLoad};

/// `shards` shards on `lanes` active lanes, dealt out in turn as plain RSS does, with a mean lane
/// load of 60 %. The shard of rank r weighs r^-s, with s drawn from 0.3 to 0.9 for the instance,
/// give or take a half; ranks are shuffled.
pub(crate) fn zipf_like(seed: u64, lanes: usize, shards: usize) -> LoadSnapshot {
    let mut random = StdRng::seed_from_u64(seed);
    let exponent: f64 = random.random_range(0.3..0.9);
    let rank = |rank: usize| (rank as f64).powf(-exponent);
    let mut weights: Vec<f64> =
        (1..=shards).map(|r| rank(r) * random.random_range(0.5..1.5)).collect();
    weights.shuffle(&mut random);
    let scale = 0.6 * lanes as f64 / weights.iter().sum::<f64>();
    let shards = weights.iter().enumerate().map(|(shard, weight)| ShardLoad {
        owner: LaneId((shard % lanes) as u16),
        load: Load::from_share(weight * scale).expect("less than a thousand lanes"),
    });
    let bounds = LaneBounds { min: lanes, max: lanes };
    let period = Duration::from_millis(100);
    LoadSnapshot::new(vec![LaneLoad::ACTIVE; lanes], shards.collect(), bounds, period)
        .expect("every owner is active")
}
