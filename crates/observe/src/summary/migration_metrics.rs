//! How long moving shards took.

use rheostat_base::Histogram;
use rheostat_run::MigrationTimes;
use serde::{Deserialize, Serialize};

/// How long moving shards took, in microseconds: of half of them, and of all but one in a hundred. `null`
/// where nothing was to be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MigrationMetrics {
    /// From the start of a move to the shard's arrival.
    pub moved_us_p50: Option<f64>,
    /// The same.
    pub moved_us_p99: Option<f64>,
    /// How long packets waited for their shard.
    pub held_us_p50: Option<f64>,
    /// The same.
    pub held_us_p99: Option<f64>,
    /// From the command that gave a parked lane a shard to the poll that applied it.
    pub woken_us_p50: Option<f64>,
    /// The same.
    pub woken_us_p99: Option<f64>,
}

impl MigrationMetrics {
    /// The metrics of a run, if any shard moved.
    pub(super) fn of(times: &MigrationTimes) -> Option<MigrationMetrics> {
        let us = |times: &Histogram, share| times.quantile(share).map(|nanos| nanos as f64 / 1e3);
        (times.moved.count() > 0).then(|| MigrationMetrics {
            moved_us_p50: us(&times.moved, 0.5),
            moved_us_p99: us(&times.moved, 0.99),
            held_us_p50: us(&times.held, 0.5),
            held_us_p99: us(&times.held, 0.99),
            woken_us_p50: us(&times.woken, 0.5),
            woken_us_p99: us(&times.woken, 0.99),
        })
    }
}
