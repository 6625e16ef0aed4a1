//! Looks after a run until it is over: metrics, files, and the reasons to end.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rheostat_control::{Balance, Balancing, Config};
use rheostat_io::CaptureWriter;
use rheostat_observe::{LiveLine, OutputFiles};
use rheostat_run::{RunReport, Runtime, Sample};

use super::{Error, Quiet};
use crate::attachment::Trial;
use crate::interrupt::{self, Hangups};
use crate::links::WatchedLinks;
use crate::listeners::Observers;
use crate::log;
use crate::run_times::RunTimes;

/// How often the end of a run is looked for.
const TICK: Duration = Duration::from_millis(5);
/// How long packets that have arrived may take to go through once the sources are stopped.
const DRAIN: Duration = Duration::from_secs(5);

/// Looks after a run until it is over.
pub(super) struct Watch {
    times: RunTimes,
    pub(super) interrupted: Arc<AtomicBool>,
    pub(super) trial: Trial,
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Whether people read standard error.
    has_terminal: bool,
}

impl Watch {
    /// Watches for signals from now on. Of a run that `reloads`, SIGHUP without a controlling terminal is for what is returned.
    pub(super) fn new(
        config: &Config,
        quiet: Quiet,
        trial: Trial,
        reloads: bool,
    ) -> Result<(Watch, Option<Hangups>), Error> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let hangups = match reloads {
            true => interrupt::set_but_hangups(&interrupted)?,
            false => interrupt::set(&interrupted).map(|()| None)?,
        };
        let has_terminal = io::stderr().is_terminal();
        let reads_files = config.check_inputs().is_ok() && quiet == Quiet::No && has_terminal;
        let bar = reads_files.then(|| {
            let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
            ProgressBar::new(1_000)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let (times, quiet) = (RunTimes::of(config), quiet == Quiet::Yes);
        Ok((Watch { times, interrupted, trial, bar, quiet, has_terminal }, hangups))
    }

    /// The times that it goes by, which may change.
    pub(super) fn times(&self) -> RunTimes {
        self.times.clone()
    }

    /// Prints metrics until the input ends, the time is up, or the run is interrupted; then processes what has arrived.
    pub(super) fn follow(
        &self,
        mut run: Runtime,
        (server, links, standard): (Observers, WatchedLinks, Option<CaptureWriter>),
        balancing: Balancing,
        files: &OutputFiles,
        reported: &mut Vec<String>,
    ) -> Result<(RunReport, Balance, bool), Error> {
        let start = Instant::now();
        let mut stopped: Option<Instant> = None;
        let mut last = run.sample();
        let mut last_line = start;
        while !run.is_finished() {
            std::thread::sleep(TICK);
            report_incomplete(files, reported);
            let now = Instant::now();
            let time_is_up = self.times.duration().is_some_and(|duration| now >= start + duration)
                || self.trial.is_over(now - start);
            let is_told = self.interrupted.load(Ordering::Relaxed);
            // Nobody reads what is written from now on.
            let is_unread = standard.as_ref().is_some_and(|writer| writer.failure().is_some());
            let ends = time_is_up || is_told || is_unread || links.is_lost();
            if ends && stopped.is_none() {
                run.stop_sources();
                stopped = Some(now);
            }
            if stopped.is_some_and(|at| now >= at + DRAIN) {
                tracing::warn!(target: "run", "packets are still under way after {} s", DRAIN.as_secs());
                break;
            }
            let interval = self.times.interval();
            if now - last_line >= interval && !self.quiet {
                // No line is left out, and none is late by more than a look.
                last_line = (last_line + interval).max(now.checked_sub(interval).unwrap_or(now));
                let sample = run.sample();
                self.show(&last, &sample, run.progress());
                last = sample;
            }
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        // While all lanes exist, so that no client is shown half a run.
        drop(server);
        let balance = balancing.stop();
        let is_link_lost = links.is_lost();
        // Before the devices are closed: it may be opening one.
        drop(links);
        Ok((run.join()?, balance, is_link_lost))
    }

    fn show(&self, earlier: &Sample, later: &Sample, progress: Option<f64>) {
        let line = LiveLine::between(earlier, later, progress);
        match (&self.bar, progress) {
            (Some(bar), Some(share)) => {
                bar.set_position((share * 1_000.0) as u64);
                bar.set_message(line.to_string());
            }
            _ if self.has_terminal && !line.is_idle() => log::show(&line.to_string()),
            _ => tracing::debug!(target: "progress", "{line}"),
        }
    }
}

/// Reports, once for each file, that something is missing in it.
fn report_incomplete(files: &OutputFiles, reported: &mut Vec<String>) {
    for file in files.incomplete() {
        if !reported.contains(&file.file) {
            tracing::error!(
                target: "files",
                "{}: {}; the file ends there, what comes from now on is missing in it, and the run goes on",
                file.file,
                file.error
            );
            reported.push(file.file);
        }
    }
}
