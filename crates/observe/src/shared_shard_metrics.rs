//! How lanes that own shards together got at them, in the summary and in explanations.

use std::fmt;

use rheostat_run::{LaneSample, Sample};
use serde::{Deserialize, Serialize};

/// Shards that the lanes of a receive queue own together, each of which one lane at a time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedShardMetrics {
    /// How many there are.
    pub shards: usize,
    /// Times that a lane took a shard to process packets.
    pub visits: u64,
    /// Tries for a shard that another lane had.
    pub retries: u64,
}

impl SharedShardMetrics {
    /// The figures of a run, if its lanes own shards together.
    pub fn of(sample: &Sample) -> Option<SharedShardMetrics> {
        let sum = LaneSample::sum(&sample.lanes);
        (sample.joint_shards > 0).then_some(SharedShardMetrics {
            shards: sample.joint_shards,
            visits: sum.shard_visits,
            retries: sum.shard_retries,
        })
    }
}

/// A line for people.
impl fmt::Display for SharedShardMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} owned by the lanes of their queue together, {} visits, {} tries while another lane had the shard",
            self.shards, self.visits, self.retries
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_whose_lanes_own_shards_together_have_figures() {
        let lane = |shard_visits, shard_retries| LaneSample {
            shard_visits,
            shard_retries,
            ..LaneSample::default()
        };
        let lanes = vec![lane(3, 1), lane(4, 0)];
        let sample = Sample { lanes, joint_shards: 8, ..Sample::default() };
        let metrics = SharedShardMetrics::of(&sample).expect("there are some");
        assert_eq!(
            metrics.to_string(),
            "8 owned by the lanes of their queue together, 7 visits, 1 tries while another lane had the shard"
        );
        assert_eq!(SharedShardMetrics::of(&Sample { joint_shards: 0, ..sample }), None);
    }
}
