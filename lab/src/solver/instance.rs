//! Random problems.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_steer::policy::dyssect::instances::{
    Demand, draw_problem, draw_setting, draw_weights,
};
use rheostat_steer::policy::dyssect::{Budget, FlowAssignment, Problem, fewest_lanes};

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
        let setting = draw_setting(&mut random, size.lanes);
        let weights = draw_weights(&mut random, size.shards);
        let fill = random.random_range(0.4..0.95);
        let heaviest = setting.working.planned().share();
        let total = fill * size.lanes as f64 * heaviest;
        let demand = Demand { total, heaviest, fixed: 0.0 };
        let before = draw_problem(&mut random, &weights, demand, setting);
        let previous = fewest_lanes(&before, Budget::steps(10_000_000)).assignment;
        let weights: Vec<f64> =
            weights.iter().map(|weight| weight * random.random_range(0.2..1.8)).collect();
        let demand = Demand { total: 0.97 * total, ..demand };
        let now = draw_problem(&mut random, &weights, demand, setting);
        Instance { before, previous, now }
    }
}
