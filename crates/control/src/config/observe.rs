//! `[observe]`: what is reported while a run goes on.

use std::path::PathBuf;
use std::time::Duration;

use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::duration;
use rheostat_settings::reader::convert::path;

/// What is reported while a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserveConfig {
    /// The time between two lines of metrics.
    pub interval: Duration,
    /// Where the control socket is, through which a running instance gets requests and commands; without
    /// one there is none.
    pub control: Option<PathBuf>,
}

impl Default for ObserveConfig {
    fn default() -> ObserveConfig {
        ObserveConfig { interval: Duration::from_secs(1), control: None }
    }
}

impl ObserveConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> ObserveConfig {
        let span = Duration::from_millis(100)..=YEAR;
        let interval = table.read("interval", findings, duration(span));
        let control = table.read("control", findings, path);
        let default = ObserveConfig::default();
        ObserveConfig { interval: interval.unwrap_or(default.interval), control }
    }
}
