//! From the functions of a configuration to a chain, and to what goes on beside it.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use rheostat_control::Config;
use rheostat_ip::RunLimit;
use rheostat_nf::registry::{self, BuildCx, Built, PortShares, chain_of};
use rheostat_nf::{AnyChain, ChainError};
use rheostat_observe::{FunctionRules, LogError, LogMonitor, LogWriter, PortBoard};
use rheostat_state::txn::Objects;
use thiserror::Error;

use crate::app::App;
use crate::assemble::error_limit;
use crate::port_warning::PortWatch;

/// Why a chain could not be built.
#[derive(Debug, Error)]
pub(crate) enum BuildError {
    /// The functions do not make a chain together.
    #[error("these functions do not make a chain: {0}")]
    Chain(#[from] ChainError),
    /// A function cannot be built as configured.
    #[error("{0}")]
    Function(registry::BuildError),
    #[error("{0}")]
    Log(#[from] LogError),
    /// The thread that watches the ports of a NAT cannot be started.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A chain, and what goes on beside it.
#[derive(Debug)]
pub(crate) struct BuiltChain {
    pub(crate) chain: AnyChain,
    pub(crate) beside: Beside,
}

/// Whether the files that functions log to are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    Written,
    LeftAlone,
}

/// Builds the chain of a configuration, which has checked its functions, for so many lanes, under the run's limit of errors.
/// With a seed it is the same each time.
///
/// # Errors
/// [`BuildError`] when a function cannot be made as configured, or a log cannot be written.
pub(crate) fn build(
    app: &App,
    config: &Config,
    lanes: usize,
    errors: &RunLimit,
    logs: Logs,
) -> Result<BuiltChain, BuildError> {
    let seed = config.run.seed;
    let objects = seed.map_or_else(|| Objects::new(lanes), |seed| Objects::seeded(lanes, seed));
    let cx =
        BuildCx { objects: &objects, errors, seed, runs: logs == Logs::Written, predecessor: None };
    let (mut links, mut beside) = (Vec::new(), Beside::default());
    for function in &config.chain {
        let built = function.settings().build(&cx).map_err(BuildError::Function)?;
        let Built { link, log, ports, rules, control, .. } = built;
        links.extend(link.map(|link| link.listed_as(function.name())));
        let writer = log.map(|(path, lines)| LogWriter::start(&path, lines)).transpose()?;
        beside.writers.extend(writer);
        if let Some(ports) = ports {
            beside.watch(ports)?;
        }
        beside.rules.extend(rules.map(|rules| (function.name().to_owned(), rules)));
        beside.controls.extend(control);
    }
    Ok(BuiltChain { chain: chain_of(links, &app.registry.chains)?, beside })
}

/// Builds the chain of a configuration for so many lanes, to look at it.
///
/// # Errors
/// As [`build`].
pub(crate) fn without_logs(
    app: &App,
    config: &Config,
    lanes: usize,
) -> Result<BuiltChain, BuildError> {
    build(app, config, lanes, &error_limit(config), Logs::LeftAlone)
}

/// What goes on beside a run: the writers of logs, the watch on ports, and the parts of functions that commands change.
#[derive(Default)]
pub(crate) struct Beside {
    writers: Vec<LogWriter>,
    watch: Option<(PortWatch, Arc<PortBoard>)>,
    rules: Vec<FunctionRules>,
    controls: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Beside {
    fn watch(&mut self, ports: Arc<dyn PortShares>) -> Result<(), BuildError> {
        let ports = Arc::new(PortBoard::new(ports));
        self.watch = Some((PortWatch::start(ports.clone())?, ports));
        Ok(())
    }

    /// The logs that are written.
    pub(crate) fn logs(&self) -> impl Iterator<Item = LogMonitor> + '_ {
        self.writers.iter().map(LogWriter::monitor)
    }

    /// How many ports the chain's NAT has in use, if it has one.
    pub(crate) fn ports(&self) -> Option<Arc<PortBoard>> {
        self.watch.as_ref().map(|(_, ports)| ports.clone())
    }

    /// The rules of the functions, in the order of the chain.
    pub(crate) fn rules(&self) -> Vec<FunctionRules> {
        self.rules.clone()
    }

    /// The part of a function that commands change, by its type.
    pub(crate) fn control<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.controls.iter().find_map(|control| control.clone().downcast().ok())
    }

    /// Ends what goes on beside the run. What is missing in a file is in the summary.
    pub(crate) fn close(self) {
        drop(self.watch);
        for writer in self.writers {
            let _ = writer.close();
        }
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("writers", &self.writers).finish_non_exhaustive()
    }
}
