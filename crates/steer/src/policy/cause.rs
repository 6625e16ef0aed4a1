//! Causes for which `auto` picks a policy.

use std::time::Duration;

use super::Load;

/// Why `auto` has picked a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There are latency objectives.
    Objectives,
    /// A shard is more than a lane should have, and flows can leave it.
    HeavyShard {
        /// Its load.
        load: Load,
    },
    /// Rewriting the device's table takes so long that few moves count most.
    Rewriting {
        /// What it takes.
        took: Duration,
    },
    /// Lanes are many, or shards heavy against a lane's part.
    Coarse {
        /// How many lanes are active.
        lanes: usize,
        /// The heaviest shard.
        heaviest: Load,
    },
    /// Lanes are few, and shards light.
    Fine,
    /// One lane is all there may be.
    OneLane,
}
