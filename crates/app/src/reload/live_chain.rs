//! The chain of a run, which another one can take the place of.

use std::sync::{Arc, Mutex};

use rheostat_base::LaneId;
use rheostat_control::Config;
use rheostat_functions::lb::HealthBoard;
use rheostat_ip::RunLimit;
use rheostat_nf::{AnyChain, Generation, Unlike};
use rheostat_observe::{LogWriter, OutputFiles, PortBoard, RuleBoard};

use super::lock;
use crate::app::App;
use crate::chains::{self, Beside, BuildError, BuiltChain, Logs};

/// The chain of a run, and what goes on beside it.
#[derive(Debug)]
pub(crate) struct LiveChain {
    /// The one that lanes follow.
    chain: AnyChain,
    errors: RunLimit,
    files: OutputFiles,
    rules: Arc<RuleBoard>,
    beside: Mutex<Beside>,
    /// Puts the results of health checks in force.
    health: Mutex<Option<LogWriter>>,
    /// Of chains before, while a lane may still use them.
    past: Mutex<Vec<Past>>,
}

/// What went on beside a chain that another one has replaced.
#[derive(Debug)]
pub(super) struct Past {
    beside: Beside,
    health: Option<LogWriter>,
}

/// A chain that has taken the place of another one, which lanes may still use.
#[derive(Debug)]
pub(super) struct PendingChain {
    generation: Generation,
    past: Past,
}

impl LiveChain {
    /// The chain of a run that sends errors within this limit, writes to `files`, and lists `rules`.
    pub(crate) fn new(
        built: BuiltChain,
        health: Option<LogWriter>,
        errors: RunLimit,
        (files, rules): (OutputFiles, Arc<RuleBoard>),
    ) -> LiveChain {
        let BuiltChain { chain, beside } = built;
        let (beside, health, past) = (Mutex::new(beside), Mutex::new(health), Mutex::default());
        LiveChain { chain, errors, files, rules, beside, health, past }
    }

    /// Where the health of backends is changed, if the chain has a load balancer.
    pub(crate) fn board(&self) -> Option<Arc<HealthBoard>> {
        lock(&self.beside).control()
    }

    /// How many ports the chain's NAT has in use, if it has one.
    pub(crate) fn ports(&self) -> Option<Arc<PortBoard>> {
        lock(&self.beside).ports()
    }

    /// The chain of `next`, which is not in force; with `logs`, its logs are open.
    ///
    /// # Errors
    /// [`BuildError`] when a function cannot be made as configured, or a log cannot be written.
    pub(super) fn prepare(
        &self,
        app: &App,
        next: &Config,
        logs: Logs,
    ) -> Result<BuiltChain, BuildError> {
        let beside = lock(&self.beside);
        let running = (&self.chain, &*beside);
        let next = chains::build_next(app, next, running, &self.errors, logs)?;
        self.chain.admits(&next.chain)?;
        Ok(next)
    }

    /// Opens the files of logs anew, by their names.
    ///
    /// # Errors
    /// The first file that cannot be opened; those before are.
    pub(super) fn reopen_logs(&self) -> Result<(), BuildError> {
        lock(&self.health).iter().try_for_each(LogWriter::reopen)?;
        lock(&self.beside).reopen_logs()
    }

    /// Has lanes use another chain from their next burst on, with `health` beside it in place of the one before, if it is given.
    ///
    /// # Errors
    /// [`Unlike`] when it is a chain of other functions.
    pub(super) fn put_in_force(
        &self,
        next: BuiltChain,
        health: Option<LogWriter>,
    ) -> Result<PendingChain, Unlike> {
        let generation = self.chain.replace_by(&next.chain)?;
        let mut beside = lock(&self.beside);
        let before = std::mem::replace(&mut *beside, next.beside);
        let before = beside.take_over(before);
        let mut known = lock(&self.health);
        let stopped = match health {
            Some(health) => known.replace(health),
            None => None,
        };
        let logs = beside.logs().chain(known.iter().map(LogWriter::monitor));
        self.rules.replace(beside.rules());
        self.files.replace_logs(logs.collect::<Vec<_>>());
        Ok(PendingChain { generation, past: Past { beside: before, health: stopped } })
    }

    pub(super) fn pending(&self, chain: &PendingChain) -> Vec<LaneId> {
        self.chain.pending(chain.generation)
    }

    /// No lane uses the chain before any more.
    pub(super) fn finish(&self, chain: PendingChain) {
        let mut past = std::mem::take(&mut *lock(&self.past));
        past.push(chain.past);
        past.into_iter().for_each(Past::close);
    }

    /// Keeps what goes on beside the chain before: a lane may still use it.
    pub(super) fn keep(&self, chain: PendingChain) {
        lock(&self.past).push(chain.past);
    }

    /// Ends what goes on beside the run, whose lanes have ended. What is missing in a file is in the summary.
    pub(crate) fn close(&self) {
        std::mem::take(&mut *lock(&self.past)).into_iter().for_each(Past::close);
        let _ = lock(&self.health).take().map(LogWriter::close);
        std::mem::take(&mut *lock(&self.beside)).close();
    }
}

impl Past {
    fn close(self) {
        let _ = self.health.map(LogWriter::close);
        self.beside.close();
    }
}
