//! What a controller did at last, for people.

use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_steer::policy::{Class, Prediction, PredictionLog};

/// What a lane is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It owns shards, or may be given some.
    #[default]
    Working,
    /// It works on flows of other lanes.
    Offloading,
    /// It is left without work.
    Parked,
}

impl Role {
    /// The role as one word.
    pub fn name(self) -> &'static str {
        match self {
            Role::Working => "working",
            Role::Offloading => "offloading",
            Role::Parked => "parked",
        }
    }
}

/// What a controller did at last, and what was predicted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The policy's name; empty before the first plan.
    pub policy: &'static str,
    /// How many times it was asked.
    pub plans: u64,
    /// By lane, what it is for.
    pub roles: Vec<Role>,
    /// By lane, its offloading lane.
    pub links: Vec<Option<LaneId>>,
    /// Why the last plan is as it is, a sentence each.
    pub why: Vec<String>,
    /// By class, the waits that plans predicted at the percentile of the objectives: the mean of the last predictions, weighted
    /// with the packets that were then measured.
    pub predicted: [Option<Duration>; Class::ALL.len()],
    /// By which factor waits differed from predictions, up or down.
    pub prediction_error: Option<f64>,
}

impl Progress {
    /// What was predicted.
    pub(super) fn of(log: Option<&PredictionLog>) -> Progress {
        let Some(log) = log else { return Progress::default() };
        let mean = |class: Class| {
            let rows = || log.rows().filter(move |row| row.class == class);
            let samples: u64 = rows().map(|row| row.samples).sum();
            let weighted = |row: &Prediction| row.predicted.as_nanos() * u128::from(row.samples);
            let sum: u128 = rows().map(weighted).sum();
            let mean = sum.checked_div(samples.into())?;
            Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
        };
        Progress {
            predicted: Class::ALL.map(mean),
            prediction_error: log.error(),
            ..Progress::default()
        }
    }
}
