//! Where the time of requests went, in a row.

use std::fmt;

use rheostat_measure::rounding::to_thousandths;
use rheostat_serve::{RequestStage, RequestTimes};
use serde::{Deserialize, Serialize};

/// The stages of requests at a load, in their order; times in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// Requests sampled.
    pub sampled: u64,
    /// The slowest requests, of which the last figures are.
    pub slowest: usize,
    /// Each stage.
    pub stages: Vec<StageTime>,
}

/// How long a stage took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: String,
    /// The mean of the sampled requests.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The mean of the slowest requests.
    pub slowest_us: f64,
}

impl StageTimes {
    pub(crate) fn of(times: &RequestTimes) -> StageTimes {
        let slowest = times.slowest_means();
        let stages = RequestStage::ALL.iter().zip(&times.stages).zip(slowest);
        let micros = |nanos: f64| to_thousandths(nanos / 1e3);
        let stages = stages.map(|((stage, summary), slowest)| StageTime {
            stage: stage.name().to_owned(),
            mean_us: micros(summary.mean_ns),
            p50_us: micros(summary.p50.as_nanos() as f64),
            p99_us: micros(summary.p99.as_nanos() as f64),
            slowest_us: micros(slowest),
        });
        StageTimes {
            sampled: times.sampled,
            slowest: times.slowest.len(),
            stages: stages.collect(),
        }
    }
}

impl fmt::Display for StageTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "    of {} requests, and the slowest {}:", self.sampled, self.slowest)?;
        for StageTime { stage, mean_us, p99_us, slowest_us, .. } in &self.stages {
            write!(
                f,
                "\n    {stage:<14} mean {mean_us:>9.3} us, p99 {p99_us:>9.3}, slowest {slowest_us:>9.3}"
            )?;
        }
        Ok(())
    }
}
