//! Reloads: another configuration takes the place of that of a running instance, as a whole or not at all.
//!
//! A reload reads and checks the configuration as `rheo check` does, with the flags that the instance was started with, and compares
//! it with the one in force. What cannot change in place refuses it. Then everything that can fail is made: functions, tables of
//! routes, logs. Last, all of it is put in force ([`LiveRun`]), which cannot fail, and lanes take it over at their next burst.

mod live_chain;
mod live_network;
mod live_run;
mod obstacles;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rheostat_base::LaneId;
use rheostat_control::comparison::{Change, Difference};
use rheostat_control::{Config, LoadError, Overrides, Reference};
use rheostat_observe::control::{ChangedKey, ConfigState, ReloadResult, Reloaded};
use rheostat_observe::live_page::{EventKind, EventLog};
use thiserror::Error;

pub(crate) use self::live_chain::LiveChain;
pub(crate) use self::live_network::LiveNetwork;
pub(crate) use self::live_run::{LiveBalancing, LiveRun};
use crate::active_config::ActiveConfig;
use crate::app::App;
use crate::interrupt::{HangupThread, Hangups};
use crate::machine::RunningMachine;

/// How long lanes may take to go by another configuration: their next burst, or half a second where none comes.
const APPLY: Duration = Duration::from_secs(5);
/// How often it is looked whether they do.
const GLANCE: Duration = Duration::from_micros(200);

/// The file that a run was started from, and the flags beside it.
#[derive(Clone, Debug)]
pub(crate) struct ConfigSource {
    /// The program, whose functions the file can name.
    app: App,
    /// The whole path, which holds wherever the process is then.
    path: PathBuf,
    overrides: Overrides,
}

impl ConfigSource {
    /// The file at `path`. One whose folder is not known keeps its path.
    pub(crate) fn new(app: &App, path: &Path, overrides: Overrides) -> ConfigSource {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        ConfigSource { app: app.clone(), path, overrides }
    }
}

/// A configuration that a client has sent.
#[derive(Debug)]
pub(crate) struct SentConfig {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Why a reload has not put a configuration in force on all lanes.
#[derive(Debug, Error)]
pub(crate) enum ReloadError {
    /// Nothing has changed.
    #[error("{0}")]
    Refused(String),
    /// It is in force, but not seen to be on all lanes.
    #[error(
        "the new configuration is in force, but after {} s {} may still go by the one before: is a worker stuck?",
        APPLY.as_secs(), name(.0)
    )]
    Pending(Vec<LaneId>),
}

fn name(lanes: &[LaneId]) -> String {
    let names: Vec<_> = lanes.iter().map(|lane| format!("lane {}", lane.0)).collect();
    names.join(", ")
}

/// The configuration of a running instance, which can be another one from one moment to the next.
#[derive(Debug)]
pub(crate) struct Reloader {
    source: ConfigSource,
    live: Arc<LiveRun>,
    /// The one in force. Held from the start of a reload to its end: another one waits.
    config: Mutex<Config>,
    /// The same as people read it.
    active: Arc<ActiveConfig>,
    state: Mutex<ConfigState>,
    /// Where each reload is noted.
    events: Arc<EventLog>,
}

impl Reloader {
    /// The reloader of a run of `config`, which came from `source`.
    pub(crate) fn new(
        source: ConfigSource,
        config: Config,
        live: Arc<LiveRun>,
        (active, events): (Arc<ActiveConfig>, Arc<EventLog>),
    ) -> Reloader {
        let (config, state) = (Mutex::new(config), Mutex::default());
        Reloader { source, live, config, active, state, events }
    }

    /// The text of the configuration in force. Waits for a reload that is under way.
    pub(crate) fn text(&self) -> String {
        lock(&self.config).source().to_owned()
    }

    /// What `rheo status` shows of it.
    pub(crate) fn state(&self) -> ConfigState {
        lock(&self.state).clone()
    }

    /// Puts the configuration that a client has sent in force, or the one that the instance's file has now; with `dry_run`, makes
    /// sure that it could. Waits until all lanes go by it, unless `is_over`.
    ///
    /// # Errors
    /// [`ReloadError`] when nothing has changed, or a lane has not gone on in time.
    pub(crate) fn reload(
        &self,
        sent: Option<SentConfig>,
        dry_run: bool,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Reloaded, ReloadError> {
        let start = Instant::now();
        let mut config = lock(&self.config);
        let mut generation = self.state().generation;
        let carried_out = self.carry_out(&mut config, sent, dry_run, is_over);
        drop(config);
        let (result, message) = match &carried_out {
            Ok(outcome) if outcome.changes.is_empty() => (ReloadResult::Unchanged, String::new()),
            Ok(outcome) => (ReloadResult::Applied, outcome.in_words()),
            Err(error @ ReloadError::Refused(_)) => (ReloadResult::Refused, error.to_string()),
            Err(error @ ReloadError::Pending(_)) => (ReloadResult::Pending, error.to_string()),
        };
        if !dry_run {
            let now = SystemTime::now();
            self.events.add(now, EventKind::Reload, event(result, &message));
            let mut state = lock(&self.state);
            state.generation +=
                u64::from(matches!(result, ReloadResult::Applied | ReloadResult::Pending));
            generation = state.generation;
            state.note(result, message, now);
        }
        let Outcome { file, changes, hidden, warnings } = carried_out?;
        let seconds = start.elapsed().as_secs_f64();
        let (changes, hidden) = (changed(&changes), changed(&hidden));
        Ok(Reloaded { file, generation, changes, hidden, warnings, dry_run, seconds })
    }

    /// Reads the instance's file again, and reports on standard error what has come of it: a reload that no client waits for.
    pub(crate) fn reload_and_report(&self, is_over: &dyn Fn() -> bool) {
        match self.reload(None, false, is_over) {
            Ok(reloaded) => report(&reloaded),
            Err(error) => {
                tracing::error!(target: "reload", "not reloaded: {}", error.to_string().trim_end());
            }
        }
    }

    fn carry_out(
        &self,
        config: &mut Config,
        sent: Option<SentConfig>,
        dry_run: bool,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Outcome, ReloadError> {
        let refused = ReloadError::Refused;
        let (file, loaded) = self.load(sent);
        let (next, report) = loaded.map_err(|error| refused(in_words(&error)))?;
        let warnings = if report.is_empty() { String::new() } else { report.render(false) };
        let comparison = config.compare(&next, &Reference::of(&self.source.app.registry));
        let mut fixed: Vec<_> =
            comparison.fixed.iter().map(|(what, why)| format!("{what}; it {why}")).collect();
        fixed.extend(obstacles::of(config, &next, &comparison.changes, &self.live));
        if !fixed.is_empty() {
            return Err(refused(needs_new_run(&file, &fixed, config)));
        }
        let prepared =
            self.live.prepare(&self.source.app, config, &next, dry_run).map_err(|error| {
                refused(format!(
                    "{file}: the configuration is right, but cannot be put in force: {error}"
                ))
            })?;
        let (changes, hidden) = (comparison.changes, comparison.hidden);
        let outcome = Outcome { file, changes, hidden, warnings };
        if dry_run {
            return Ok(outcome);
        }
        let pending = self.live.put_in_force(prepared, config, &next);
        let pending = pending.map_err(|error| refused(error.to_string()))?;
        self.active.replace(&next);
        *config = next;
        let start = Instant::now();
        loop {
            let lanes = self.live.pending(&pending);
            if lanes.is_empty() || is_over() {
                self.live.finish(pending);
                return Ok(outcome);
            }
            if start.elapsed() > APPLY {
                self.live.keep(pending);
                return Err(ReloadError::Pending(lanes));
            }
            thread::sleep(GLANCE);
        }
    }

    /// The name of a configuration and the configuration.
    fn load(
        &self,
        sent: Option<SentConfig>,
    ) -> (String, Result<(Config, rheostat_control::Report), LoadError>) {
        let ConfigSource { app, path, overrides } = &self.source;
        let registry = &app.registry;
        match sent {
            Some(SentConfig { name, text }) => {
                let file = Some(Path::new(&name));
                let loaded =
                    Config::parse_for(&text, &name, file, overrides, &RunningMachine, registry);
                (name, loaded.map_err(LoadError::from))
            }
            None => {
                let loaded = Config::load_for(path, overrides, &RunningMachine, registry);
                (path.display().to_string(), loaded)
            }
        }
    }
}

/// A configuration that is in force, or could be.
struct Outcome {
    file: String,
    changes: Vec<Difference>,
    hidden: Vec<Difference>,
    warnings: String,
}

impl Outcome {
    fn in_words(&self) -> String {
        let changes: Vec<_> = self.changes.iter().map(ToString::to_string).collect();
        changes.join("; ")
    }
}

/// A reload in the log of events: its first line.
fn event(result: ReloadResult, message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    match result {
        ReloadResult::Unchanged => "reloaded: nothing has changed".to_owned(),
        ReloadResult::Applied => format!("reloaded: {message}"),
        ReloadResult::Refused => format!("not reloaded: {message}"),
        ReloadResult::Pending => message.to_owned(),
    }
}

/// Logs what a reload has changed, in one line.
pub(crate) fn report(reloaded: &Reloaded) {
    let texts = |keys: &[ChangedKey]| {
        keys.iter().map(|key| key.text.as_str()).collect::<Vec<_>>().join("; ")
    };
    let Reloaded { file, generation, changes, hidden, warnings, .. } = reloaded;
    if !warnings.is_empty() {
        tracing::warn!(target: "reload", "{}", warnings.trim_end());
    }
    let hidden = match hidden.as_slice() {
        [] => String::new(),
        hidden => format!("; no effect, as flags of the command line hide them: {}", texts(hidden)),
    };
    match changes.as_slice() {
        [] => tracing::info!(target: "reload", "reloaded {file}: nothing has changed{hidden}"),
        changes => tracing::info!(
            target: "reload",
            "reloaded {file} (generation {generation}): {}{hidden}",
            texts(changes)
        ),
    }
}

fn changed(differences: &[Difference]) -> Vec<ChangedKey> {
    let of = |difference: &Difference| {
        let key = ChangedKey {
            key: difference.key.clone(),
            text: difference.to_string(),
            from: None,
            to: None,
            added: None,
            removed: None,
            moved: None,
        };
        match &difference.change {
            Change::Value { from, to } => {
                ChangedKey { from: Some(from.clone()), to: Some(to.clone()), ..key }
            }
            &Change::Items { added, removed, moved } => {
                ChangedKey { added: Some(added), removed: Some(removed), moved: Some(moved), ..key }
            }
        }
    };
    differences.iter().map(of).collect()
}

/// Why a file gave no configuration: all mistakes with their places, as `rheo check` prints them.
fn in_words(error: &LoadError) -> String {
    match error {
        LoadError::Wrong(report) => {
            let rendered = report.render(false);
            // Its first line is the report's own.
            let findings = rendered.trim().split_once('\n').map_or("", |(_, findings)| findings);
            format!("{report}\n{findings}")
        }
        LoadError::Read { path, source } => {
            let hint = match source.kind() {
                std::io::ErrorKind::PermissionDenied => format!(
                    ": the user that the run has become cannot read it; `rheo reload {path}` sends it with the rights of the caller"
                ),
                _ => String::new(),
            };
            format!("{error}{hint}")
        }
    }
}

/// The refusal of changes that take a new run.
fn needs_new_run(file: &str, fixed: &[String], config: &Config) -> String {
    let mut text = format!("{file}: a running instance cannot change");
    for line in fixed {
        let _ = write!(text, "\n  {line}");
    }
    let control = config.observe.control.as_ref();
    let control = control.map_or_else(String::new, |path| format!(" --control {}", path.display()));
    let _ = write!(
        text,
        "\nnothing has changed; end the instance and start it with the file: `rheo stop{control}`, then `rheo run {file}`"
    );
    text
}

/// Takes a lock even after a thread panicked with it: what it guards is whole at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reloads at each of `hangups`, until what is returned is dropped; a run that was `interrupted` waits for no lane.
///
/// # Errors
/// When there can be no thread.
pub(crate) fn on_hangups(
    hangups: Option<Hangups>,
    reloader: Option<Arc<Reloader>>,
    interrupted: &Arc<AtomicBool>,
) -> io::Result<Option<HangupThread>> {
    let (Some(hangups), Some(reloader)) = (hangups, reloader) else { return Ok(None) };
    let interrupted = interrupted.clone();
    // Relaxed: the flag publishes nothing.
    let is_over = move || interrupted.load(Ordering::Relaxed);
    hangups.start(move || reloader.reload_and_report(&is_over)).map(Some)
}
