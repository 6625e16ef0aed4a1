//! What a row states.

use rheostat_measure::record::{Column, TableRow};
use rheostat_observe::profile::ScalingProfile;
use serde::{Deserialize, Serialize};

use super::AdviceCase;

/// A case with one setting, on some lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceRow {
    /// The case, as [`AdviceCase::name`] has it.
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

impl AdviceRow {
    pub(super) fn new(
        case: AdviceCase,
        lanes: usize,
        simulated: bool,
        mpps: f64,
        profile: &ScalingProfile,
    ) -> AdviceRow {
        let first = profile.causes.first();
        AdviceRow {
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

impl TableRow for AdviceRow {
    const COLUMNS: &'static [Column<AdviceRow>] = &[
        Column::name("case", 9, |row| &row.case),
        Column::name("setting", 21, |row| &row.setting),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::name("", 9, |row| if row.simulated { "simulated" } else { "measured" }),
        Column::number("Mpps", 8, 2, |row| row.mpps),
        Column::text("gain", 7, |row| {
            row.gain.map_or_else(String::new, |gain| format!("{gain:.2} x"))
        }),
        Column::text("paper", 7, |row| {
            row.gain.map_or_else(String::new, |_| format!("{} x", row.gain_in_paper))
        }),
        Column::percent("aborts", 9, 2, |row| row.abort_rate),
        Column::count("alone", 7, |row| row.serial),
        Column::apart(Column::text("most aborts", 0, |row| match (&row.cause, row.share) {
            (Some(cause), Some(share)) => format!("{:.0} % {cause}", 100.0 * share),
            _ => String::new(),
        })),
    ];
}
