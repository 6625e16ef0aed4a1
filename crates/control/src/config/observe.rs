//! `[observe]`: what is reported while a run goes on.

use std::path::PathBuf;
use std::time::Duration;

use rheostat_settings::declared::kind::{duration, optional, path};
use rheostat_settings::quantity::YEAR;

rheostat_settings::settings! {
    /// What is reported while a run goes on.
    #[derive(Eq)]
    pub struct ObserveConfig: Default {
        /// The time between two lines of metrics.
        interval: Duration = duration(Duration::from_millis(100)..=YEAR), default(Duration::from_secs(1));
        /// Where the control socket is, through which a running instance gets requests and commands; without one there is none.
        control: Option<PathBuf> = optional(path()), example("\"/run/rheo.sock\"");
    }
}
