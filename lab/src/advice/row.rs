//! What a row states.

use std::fmt;

use rheostat_observe::profile::ScalingProfile;
use serde::{Deserialize, Serialize};

use super::Case;

/// A case with one setting, on some lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The case, as [`Case::name`] has it.
    pub case: String,
    /// The setting, with its value.
    pub setting: String,
    /// Whether it is as the recipe has it.
    pub advised: bool,
    /// Lanes.
    pub lanes: usize,
    /// Whether lanes were simulated.
    pub simulated: bool,
    /// Packets per second of all lanes, in millions: the median window; of simulated lanes, in virtual time.
    pub mpps: f64,
    /// The same ÷ that of the row before, where the setting was not yet as the recipe has it.
    pub gain: Option<f64>,
    /// What the paper gained by the change, on 23 cores.
    pub gain_in_paper: f64,
    /// Transactions that took effect.
    pub commits: u64,
    /// Attempts that were undone.
    pub aborts: u64,
    /// Aborts ÷ attempts.
    pub abort_rate: f64,
    /// Transactions that had to run alone.
    pub serial: u64,
    /// The cause of most aborts, if there were any.
    pub cause: Option<String>,
    /// Of which part it was the cause.
    pub share: Option<f64>,
    /// What the profiler advises first.
    pub recipe: Option<String>,
}

impl Row {
    pub(super) fn new(
        case: Case,
        lanes: usize,
        simulated: bool,
        mpps: f64,
        profile: &ScalingProfile,
    ) -> Row {
        let first = profile.causes.first();
        Row {
            case: case.name().to_owned(),
            setting: String::new(),
            advised: false,
            lanes,
            simulated,
            mpps,
            gain: None,
            gain_in_paper: case.gain_in_paper(),
            commits: profile.commits,
            aborts: profile.aborts,
            abort_rate: profile.abort_rate,
            serial: profile.serial,
            cause: first.map(|cause| format!("{}: {}", cause.object, cause.cause)),
            share: first.map(|cause| cause.share),
            recipe: first.map(|cause| cause.recipe.clone()),
        }
    }
}

/// Rows as lines under a heading.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl Table {
    /// The heading.
    pub fn heading() -> String {
        format!(
            "{:<9} {:<21} {:>5} {:<9} {:>8} {:>7} {:>7} {:>9} {:>7}  most aborts",
            "case", "setting", "lanes", "", "Mpps", "gain", "paper", "aborts", "alone"
        )
    }

    /// A row's line.
    pub fn line(row: &Row) -> impl fmt::Display {
        let origin = if row.simulated { "simulated" } else { "measured" };
        let times = |gain: f64| format!("{gain:.2} x");
        let gain = row.gain.map_or_else(String::new, times);
        let paper = row.gain.map_or_else(String::new, |_| format!("{} x", row.gain_in_paper));
        let cause = match (&row.cause, row.share) {
            (Some(cause), Some(share)) => format!("{:.0} % {cause}", 100.0 * share),
            _ => String::new(),
        };
        format!(
            "{:<9} {:<21} {:>5} {:<9} {:>8.2} {:>7} {:>7} {:>7.2} % {:>7}  {cause}",
            row.case,
            row.setting,
            row.lanes,
            origin,
            row.mpps,
            gain,
            paper,
            100.0 * row.abort_rate,
            row.serial
        )
    }
}
