//! `[observe]`: what is reported while a run goes on.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rheostat_settings::declared::kind::{choice, duration, list, name, optional, parsed, path};
use rheostat_settings::quantity::YEAR;

use super::log::{LogFormat, LogTargets};

rheostat_settings::settings! {
    /// What is reported while a run goes on.
    #[derive(Eq)]
    pub struct ObserveConfig: Default {
        /// How important a line has to be to be logged: `off`, `error`, `warn`, `info`, `debug` or `trace`, for all targets or with exceptions.
        log: LogTargets = parsed("levels such as \"info,links=debug\"").noun("levels"), default(LogTargets::default());
        /// The form of log lines; `auto` is `journald` where systemd's journal reads standard error, and `text` otherwise.
        log_format: LogFormat = choice(LogFormat::WORDS), default(LogFormat::Auto);
        /// The time between two lines of metrics, on a terminal or in a log with `progress=debug`.
        interval: Duration = duration(Duration::from_millis(100)..=YEAR), default(Duration::from_secs(1));
        /// Where the control socket is, through which a running instance gets requests and commands; without one there is none.
        control: Option<PathBuf> = optional(path()), example("\"/run/rheo.sock\"");
        /// The address and port at which metrics and a live page are served over HTTP; without one they are not. Everyone who reaches it
        /// can read the metrics, the configuration and the addresses of the heaviest flows.
        http: Option<SocketAddr> = optional(parsed("an address and a port such as \"127.0.0.1:9464\"").noun("address and port")), example("\"127.0.0.1:9464\"");
        /// Names by which clients reach that address, beside the name of the machine and `localhost`. A request that names another
        /// host is refused, since a page of another site may have made it.
        http_names: Vec<String> = list(name()), default(Vec::new()), example("[\"router1.example\"]");
    }
}
