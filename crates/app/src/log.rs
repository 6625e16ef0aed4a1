//! The log of a running instance: events of `tracing` as lines on standard error. Commands print to their users by `out!` and
//! `err!`.
//!
//! No event comes from the path of packets. A reader of standard error that stalls costs a line at most [`PATIENCE`] and no run
//! its end: the line is lost, and counted in the next one.
//!
//! [`PATIENCE`]: output::PATIENCE

mod event;
mod output;

use std::env;
use std::io::{self, IsTerminal};
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use rheostat_control::config::log::{LogLevel, LogTargetsError};
use rheostat_control::config::{LogFormat, LogTargets, ObserveConfig};
use rustix::fs::fstat;
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use event::LogEvent;
use output::LogOutput;

/// The levels of a run for which no flag states any.
const VARIABLE: &str = "RHEO_LOG";

/// `RHEO_LOG` does not state levels.
#[derive(Debug, Error)]
#[error("{VARIABLE}: {0}")]
pub(crate) struct WrongVariable(#[from] LogTargetsError);

/// Flags of commands that log.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LogArgs {
    /// Log lines of this level and above: off, error, warn, info, debug or trace; with exceptions, info,links=debug. In place of
    /// RHEO_LOG and of `observe.log`.
    #[arg(long, value_name = "LEVELS")]
    log: Option<LogTargets>,
    /// The form of log lines: auto, text, json or journald.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

impl LogArgs {
    /// The levels that stand above those of the configuration: the flag's, or those of `RHEO_LOG`.
    ///
    /// # Errors
    /// [`WrongVariable`] where the variable counts and is wrong.
    pub(crate) fn targets(&self) -> Result<Option<LogTargets>, WrongVariable> {
        match (&self.log, env::var(VARIABLE)) {
            (Some(targets), _) => Ok(Some(targets.clone())),
            (None, Ok(text)) if !text.is_empty() => Ok(Some(text.parse()?)),
            (None, _) => Ok(None),
        }
    }

    /// The form that the flag states.
    pub(crate) fn format(&self) -> Option<LogFormat> {
        self.log_format
    }
}

/// Where events go; none before [`start`].
static LOG: OnceLock<RheoLog> = OnceLock::new();

struct RheoLog {
    settings: RwLock<LogSettings>,
    output: LogOutput,
}

#[derive(Clone, Debug, Default)]
struct LogSettings {
    targets: LogTargets,
    format: LogFormat,
}

/// Lets events of this process become lines, at the default levels until [`configure`].
pub(crate) fn start() {
    let format = resolved(LogFormat::Auto);
    let settings = RwLock::new(LogSettings { format, ..LogSettings::default() });
    if LOG.set(RheoLog { settings, output: LogOutput::default() }).is_ok() {
        // Refused where the program has a subscriber of its own, which then has the events.
        let _ = tracing::subscriber::set_global_default(LogSubscriber);
    }
}

/// Puts the levels and the form of a configuration in force, whose flags and variables are in it already. May be called again
/// at any time, from any thread.
pub(crate) fn configure(observe: &ObserveConfig) {
    if let Some(log) = LOG.get() {
        let (targets, format) = (observe.log.clone(), resolved(observe.log_format));
        *log.settings.write().unwrap_or_else(PoisonError::into_inner) =
            LogSettings { targets, format };
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Prints a line for a terminal, unless it does not take it: then the line is left out.
pub(crate) fn show(line: &str) {
    if let Some(log) = LOG.get() {
        log.output.show(line);
    }
}

fn resolved(format: LogFormat) -> LogFormat {
    match format {
        LogFormat::Auto if is_journal() => LogFormat::Journald,
        LogFormat::Auto => LogFormat::Text,
        stated => stated,
    }
}

/// Whether systemd's journal reads standard error: `JOURNAL_STREAM` has its device and inode.
fn is_journal() -> bool {
    let Ok(stream) = env::var("JOURNAL_STREAM") else { return false };
    fstat(io::stderr()).is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
}

fn level_of(metadata: &Metadata<'_>) -> LogLevel {
    match *metadata.level() {
        tracing::Level::ERROR => LogLevel::Error,
        tracing::Level::WARN => LogLevel::Warn,
        tracing::Level::INFO => LogLevel::Info,
        tracing::Level::DEBUG => LogLevel::Debug,
        tracing::Level::TRACE => LogLevel::Trace,
    }
}

fn with_settings<T>(read: impl FnOnce(&RheoLog, &LogSettings) -> T) -> Option<T> {
    let log = LOG.get()?;
    let settings = log.settings.read().unwrap_or_else(PoisonError::into_inner);
    Some(read(log, &settings))
}

/// Takes events; spans are not logged.
struct LogSubscriber;

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_logged = |settings: &LogSettings| {
            metadata.is_event() && level_of(metadata) <= settings.targets.level(metadata.target())
        };
        with_settings(|_, settings| is_logged(settings)).unwrap_or(false)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        with_settings(|_, settings| match settings.targets.most() {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let event = LogEvent::new(level_of(metadata), metadata.target(), event);
        let now = SystemTime::now();
        let format = with_settings(|_, settings| settings.format).unwrap_or_default();
        if let Some(log) = LOG.get() {
            let time = (!io::stderr().is_terminal()).then_some(now);
            log.output.write(|lost| event.line(format, now, time, lost));
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
