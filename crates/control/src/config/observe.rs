//! `[observe]`: what is told while a run goes on.

use std::time::Duration;

use super::run::YEAR;
use crate::findings::Findings;
use crate::reader::Table;
use crate::reader::convert::number::duration;

/// What is told while a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserveConfig {
    /// The time between two lines of figures.
    pub interval: Duration,
}

impl Default for ObserveConfig {
    fn default() -> ObserveConfig {
        ObserveConfig { interval: Duration::from_secs(1) }
    }
}

impl ObserveConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> ObserveConfig {
        let span = Duration::from_millis(100)..=YEAR;
        let interval = table.read("interval", findings, duration(span));
        interval.map_or_else(ObserveConfig::default, |interval| ObserveConfig { interval })
    }
}
