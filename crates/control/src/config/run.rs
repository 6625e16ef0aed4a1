//! `[run]`: how long, and from which random numbers.

use std::time::Duration;

use rheostat_settings::declared::kind::{duration, integer, name, optional};
use rheostat_settings::quantity::YEAR;

rheostat_settings::settings! {
    /// How long a run lasts, and what its random numbers start from.
    #[derive(Eq)]
    pub struct RunConfig: Default {
        /// When the run ends by itself; without it, at the end of the input or when interrupted.
        duration: Option<Duration> = optional(duration(Duration::from_millis(1)..=YEAR)), example("\"10s\"");
        /// Seeds hash keys, table placement and generated traffic, which makes a run repeatable; random without it, which keeps a run
        /// from being aimed at.
        seed: Option<u64> = optional(integer(0..=i64::MAX as u64)), example("1");
        /// The user that the process becomes once its devices are open, by name or number; without it, the user stays the same.
        user: Option<String> = optional(name()), example("\"rheo\"");
        /// The group it is in then; without it, the user's own.
        group: Option<String> = optional(name()), example("\"rheo\"")
            => user.as_ref().is_none_or(Option::is_some), "user = \"rheo\"";
    }
}
