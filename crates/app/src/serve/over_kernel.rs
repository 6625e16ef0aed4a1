//! A service over the kernel's sockets: a device of kind `host`.

mod instance;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rheostat_control::Config;
use rheostat_control::config::{DeviceKind, ServeConfig};
use rheostat_io::ImpairConfig;
use rheostat_kernel::identity;
use rheostat_kernel::privileges;
use rheostat_observe::SCHEMA;
use rheostat_observe::live_page::EventLog;
use rheostat_serve::host::{Host, HostConfig, HostControl, HostReport, RunningHost};
use rheostat_serve::registry::{ApplicationReport, MadeApplication, Making};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use self::instance::HostInstance;
use super::summary::value;
use super::{Error, Report, TICK, WORKERS_TIME};
use crate::active_config::ActiveConfig;
use crate::attachment::Trial;
use crate::interrupt;
use crate::listeners::Listeners;
use crate::workers::Workers;

/// Whether the service is run over the kernel's sockets.
pub(crate) fn is_over_kernel(config: &Config) -> bool {
    matches!(&config.devices[..], [device] if device.kind == DeviceKind::Host)
}

/// Serves until a signal ends the service, and reports.
///
/// # Errors
/// [`Error`] when the service cannot start.
pub(super) fn serve(
    config: &Config,
    serve: &ServeConfig,
    faults: Option<ImpairConfig>,
    report: Report,
    trial: Trial,
) -> Result<ExitCode, Error> {
    if faults.is_some() || report.times {
        return Err(Error::NotOverKernel {
            flag: if report.times { "--times" } else { "--fault" },
        });
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::set(&interrupted)?;
    let identity = identity::find(config.run.user.as_deref(), config.run.group.as_deref())?;
    if let Some(identity) = identity {
        privileges::become_later(identity);
    }
    // Before anything costly: another instance may listen there.
    let listeners = Listeners::open(&config.observe, identity)?;
    serve.application.check()?;
    let workers = Workers::of(&config.workers)?;
    let (lanes, cores) = (workers.lanes(), workers.cores().to_vec());
    let MadeApplication { program, report: part } = serve.application.make(&Making { cores })?;
    raise_descriptor_limit();
    let application = serve.application.name();
    let wrong = |source| Error::Host { application, source };
    let host = Host::bind(host_config(config, serve, lanes)).map_err(wrong)?;
    // Listeners are open; threads inherit what is left: nothing.
    privileges::give_up()?;
    privileges::check_all_threads(None)?;
    let running = program.over_kernel(host).map_err(wrong)?;
    let control = running.control();
    let instance = HostInstance {
        control: control.clone(),
        interrupted: interrupted.clone(),
        trial: trial.clone(),
        started: Instant::now(),
        config: ActiveConfig::of(config),
        events: EventLog::default(),
    };
    let observers = listeners.start(instance)?;
    for address in running.addresses() {
        out!("listening {address}");
    }
    let (duration, drain_time) = (config.run.duration, serve.drain_time);
    let ends = Ends { interrupted, trial, duration, drain_time };
    ends.wait(&running, &control);
    drop(observers);
    let summary = HostSummary::new(&running.finish(WORKERS_TIME), application, part, lanes);
    match report.json {
        true => out!("{}", serde_json::to_string(&summary).expect("names and numbers")),
        false => out!("{summary}"),
    }
    for violation in &summary.violations {
        err!("broken invariant: {violation}");
    }
    Ok(if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn host_config(config: &Config, serve: &ServeConfig, lanes: usize) -> HostConfig {
    let own = config.devices.iter().flat_map(|device| &device.addresses);
    let at = |port: u16| own.clone().map(move |own| SocketAddr::new(own.address, port));
    HostConfig {
        listen: serve.ports.iter().flat_map(|port| at(*port)).collect(),
        lanes,
        limits: serve.limits(),
        idle_timeout: serve.idle_timeout,
        request_timeout: serve.application.facts().request_timeout,
    }
}

/// Each connection has a descriptor: as many as the process may have.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With fewer, connections beyond wait in the kernel, which is counted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// What ends a service.
struct Ends {
    interrupted: Arc<AtomicBool>,
    trial: Trial,
    duration: Option<Duration>,
    drain_time: Duration,
}

impl Ends {
    /// Waits until the service is to end, and then until its connections have ended, or have had time to.
    fn wait(&self, running: &RunningHost, control: &HostControl) {
        let start = Instant::now();
        let mut drained_by: Option<Instant> = None;
        while !running.is_finished() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            let time_is_up = self.duration.is_some_and(|duration| now >= start + duration)
                || self.trial.is_over(now - start);
            match drained_by {
                None if time_is_up || self.interrupted.load(Ordering::Relaxed) => {
                    running.drain();
                    drained_by = Some(now + self.drain_time);
                }
                Some(end) if now >= end || control.connections() == 0 => return,
                _ => {}
            }
        }
    }
}

/// The summary of a service over the kernel's sockets.
#[derive(Debug, Serialize)]
struct HostSummary {
    /// The version of the fields.
    schema: u32,
    /// Connections that were accepted.
    connections: u64,
    /// Whose TCP it was.
    tcp_by: &'static str,
    lanes: usize,
    /// The counters of the service by the names that `rheo status` has.
    service: BTreeMap<&'static str, u64>,
    /// The same beside the other fields.
    #[serde(flatten)]
    totals: BTreeMap<&'static str, u64>,
    /// The application's own part, by its name.
    #[serde(flatten)]
    application: BTreeMap<&'static str, serde_json::Value>,
    #[serde(skip)]
    application_text: String,
    /// The counters of the application, by their names.
    #[serde(rename = "application", skip_serializing_if = "BTreeMap::is_empty")]
    counters: BTreeMap<&'static str, u64>,
    /// Invariants that did not hold.
    violations: Vec<String>,
}

impl HostSummary {
    fn new(
        report: &HostReport,
        name: &'static str,
        part: Option<Box<dyn ApplicationReport>>,
        lanes: usize,
    ) -> HostSummary {
        let totals = report.totals;
        let running = report.running.iter().map(|lane| {
            format!("lane {lane} is left at a call of the application that does not end")
        });
        let failed = report.failed.iter().map(|lane| format!("lane {lane} ended by a panic"));
        let (accepted, ended) = (totals.accepted, totals.ended());
        let lost = (accepted != ended && report.running.is_empty())
            .then(|| format!("{accepted} connections were accepted, and {ended} have ended"));
        HostSummary {
            schema: SCHEMA,
            connections: accepted,
            tcp_by: "kernel",
            lanes,
            service: totals.named().collect(),
            totals: totals.named().collect(),
            application: part.iter().map(|part| (name, value(&**part))).collect(),
            application_text: part.as_ref().map_or_else(String::new, |part| part.text()),
            counters: report.metrics.iter().collect(),
            violations: running.chain(failed).chain(lost).collect(),
        }
    }
}

impl fmt::Display for HostSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.totals.iter().filter(|(_, count)| **count > 0) {
            writeln!(f, "{:>24}  {count}", name.replace('_', " "))?;
        }
        f.write_str(&self.application_text)?;
        for (name, count) in &self.counters {
            writeln!(f, "{:>24}  {count}", name.replace('_', " "))?;
        }
        let lanes = self.lanes;
        writeln!(f, "{:>24}  by the kernel, in {lanes} lanes: for development", "TCP")?;
        let account = if self.violations.is_empty() { "ok" } else { "broken" };
        write!(f, "{:>24}  {account}", "account")
    }
}
