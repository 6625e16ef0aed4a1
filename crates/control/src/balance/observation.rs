//! What a controller is shown of a run.

use std::time::Duration;

use rheostat_base::ShardId;
use rheostat_steer::policy::{ClassLoads, LaneCounts, Load};

/// What lanes have done so far, and what they measured since they were looked at last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// What each lane has counted since the start.
    pub counts: Vec<LaneCounts>,
    /// What lanes measured by class since the last look; empty where classes are not told apart.
    pub classes: ClassLoads,
    /// The heaviest flows that may leave their lanes.
    pub heavy: Vec<HeavyShare>,
    /// What the last rewriting of the device's table took, fence included.
    pub rewrite: Option<Duration>,
}

/// A flow that may leave its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyShare {
    /// Its shard.
    pub shard: ShardId,
    /// Its part of the shard's work, where [`Load::FULL`] stands for all of it: a lower bound.
    pub part: Load,
}

impl From<Vec<LaneCounts>> for Observation {
    fn from(counts: Vec<LaneCounts>) -> Observation {
        Observation { counts, ..Observation::default() }
    }
}
