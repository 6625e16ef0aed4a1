//! `[run]`: how long, and from which random numbers.

use std::time::Duration;

use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::name;
use rheostat_settings::reader::convert::number::{duration, integer};

/// How long a run lasts, and what its random numbers start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunConfig {
    /// When the run ends by itself; without it, at the end of the input or when interrupted.
    pub duration: Option<Duration>,
    /// Seeds hash keys, table placement and generated traffic, which makes a run repeatable; random if
    /// absent, which is what keeps a run from being aimed at.
    pub seed: Option<u64>,
    /// The user that the process becomes once its devices are open, by name or number; without it, the user stays the same.
    pub user: Option<String>,
    /// The group it is in then; without it, the user's own.
    pub group: Option<String>,
}

impl RunConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> RunConfig {
        let span = Duration::from_millis(1)..=YEAR;
        let duration = table.read("duration", findings, duration(span));
        let seed = table.read("seed", findings, integer(0..=i64::MAX as u64));
        let user = table.read("user", findings, name);
        let group = if table.has("user") {
            table.read("group", findings, name)
        } else {
            table.refuse(&["group"], "user = \"rheo\"", findings);
            None
        };
        RunConfig { duration, seed, user, group }
    }
}
