//! How long each stage of a lane takes, for rows.

use rheostat_run::{BurstStage, StageTimes};
use serde::{Deserialize, Serialize};

/// Nanoseconds per packet, over all polls of a run that found full bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// The polls of which a tenth took less: hardly disturbed.
    pub p10: StageNanos,
    /// The median polls.
    pub median: StageNanos,
}

/// Nanoseconds per packet, by stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageNanos {
    /// Making the packets.
    pub source: f64,
    /// Parsing them, and placing them in shards.
    pub classify: f64,
    /// Asking for the memory that their flows lie in.
    pub probe: f64,
    /// The functions.
    pub run: f64,
    /// Collecting them by device.
    pub emit: f64,
    /// Taking them off.
    pub sink: f64,
    /// Everything else that a poll does.
    pub rest: f64,
}

impl Stages {
    /// Of times that a run has noted; `None` if it has not.
    pub(super) fn of(times: &StageTimes) -> Option<Stages> {
        Some(Stages { p10: StageNanos::at(times, 0.1)?, median: StageNanos::at(times, 0.5)? })
    }
}

impl StageNanos {
    fn at(times: &StageTimes, quantile: f64) -> Option<StageNanos> {
        let of = |stage| Some(times.of(stage).quantile(quantile)? as f64 / 10.0);
        Some(StageNanos {
            source: of(BurstStage::Receive)?,
            classify: of(BurstStage::Classify)?,
            probe: of(BurstStage::Probe)?,
            run: of(BurstStage::Run)?,
            emit: of(BurstStage::Emit)?,
            sink: of(BurstStage::Transmit)?,
            rest: of(BurstStage::Rest)?,
        })
    }

    /// What a packet takes above source and sink of the same run.
    pub fn above_own(&self) -> f64 {
        self.classify + self.probe + self.run + self.emit + self.rest
    }
}
