//! From the functions of a configuration to a chain, and to what goes on beside it.

use std::any::Any;
use std::fmt;
use std::io;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use rheostat_control::Config;
use rheostat_ip::RunLimit;
use rheostat_nf::registry::{self, BuildCx, Built, Handed, PortShares, chain_of, next_chain_of};
use rheostat_nf::{AnyChain, ChainError, Link, Unlike};
use rheostat_observe::{FunctionRules, Lines, LogError, LogMonitor, LogWriter, PortBoard};
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
    /// The chain cannot take the place of the one that runs.
    #[error("{0}")]
    Unlike(#[from] Unlike),
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
    let mut parts = Parts::default();
    for function in &config.chain {
        let built = function.settings().build(&cx).map_err(BuildError::Function)?;
        parts.add(function.name(), built, LogWriter::start)?;
    }
    let Parts { links, functions, ports } = parts;
    let mut beside = Beside { functions, watch: None, objects: Some(objects.clone()) };
    if let Some(ports) = ports {
        beside.watch(ports)?;
    }
    Ok(BuiltChain { chain: chain_of(links, &app.registry.chains)?, beside })
}

/// Builds the chain of `config` that can take the place of a running one, whose functions hand over what lives on.
///
/// # Errors
/// As [`build`].
pub(crate) fn build_next(
    app: &App,
    config: &Config,
    (chain, beside): (&AnyChain, &Beside),
    errors: &RunLimit,
    logs: Logs,
) -> Result<BuiltChain, BuildError> {
    let (seed, runs) = (config.run.seed, logs == Logs::Written);
    let objects = beside.objects.clone().unwrap_or_else(|| Objects::new(1));
    let mut parts = Parts::default();
    let handed = beside.functions.iter().map(|function| function.handed.as_ref());
    for (function, predecessor) in config.chain.iter().zip(handed.chain(iter::repeat(None))) {
        let cx = BuildCx { objects: &objects, errors, seed, runs, predecessor };
        let built = function.settings().build(&cx).map_err(BuildError::Function)?;
        parts.add(function.name(), built, LogWriter::append)?;
    }
    let Parts { links, functions, ports } = parts;
    let mut next = Beside { functions, watch: None, objects: Some(objects) };
    if let Some(ports) = ports.filter(|_| runs) {
        next.watch(ports)?;
    }
    Ok(BuiltChain { chain: next_chain_of(chain, links, &app.registry.chains)?, beside: next })
}

/// What the functions of a chain come to.
#[derive(Default)]
struct Parts {
    links: Vec<Box<dyn Link>>,
    functions: Vec<BesideFunction>,
    ports: Option<Arc<dyn PortShares>>,
}

impl Parts {
    /// Adds a function, whose log `write` starts.
    fn add(
        &mut self,
        name: &'static str,
        built: Built,
        write: impl FnOnce(&Path, Box<dyn Lines>) -> Result<LogWriter, LogError>,
    ) -> Result<(), BuildError> {
        let Built { link, log, ports, rules, control, handed, .. } = built;
        self.links.extend(link.map(|link| link.listed_as(name)));
        let writer = log.map(|(path, lines)| write(&path, lines)).transpose()?;
        let rules = rules.map(|rules| (name.to_owned(), rules));
        self.functions.push(BesideFunction { handed, writer, rules, control });
        self.ports = ports.or(self.ports.take());
        Ok(())
    }
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

/// What goes on beside a run: the writers of logs, the watch on ports, and the parts of functions that commands change, or that live on
/// in the functions that take their place.
#[derive(Default)]
pub(crate) struct Beside {
    /// In the order of the chain.
    functions: Vec<BesideFunction>,
    watch: Option<(PortWatch, Arc<PortBoard>)>,
    /// The objects that functions share, if they share any.
    objects: Option<Objects>,
}

/// What goes on beside one function.
#[derive(Default)]
struct BesideFunction {
    handed: Option<Handed>,
    writer: Option<LogWriter>,
    rules: Option<FunctionRules>,
    control: Option<Arc<dyn Any + Send + Sync>>,
}

impl Beside {
    fn watch(&mut self, ports: Arc<dyn PortShares>) -> Result<(), BuildError> {
        let ports = Arc::new(PortBoard::new(ports));
        self.watch = Some((PortWatch::start(ports.clone())?, ports));
        Ok(())
    }

    /// The logs that are written.
    pub(crate) fn logs(&self) -> impl Iterator<Item = LogMonitor> + '_ {
        self.writers().map(LogWriter::monitor)
    }

    fn writers(&self) -> impl Iterator<Item = &LogWriter> {
        self.functions.iter().filter_map(|function| function.writer.as_ref())
    }

    /// Opens the files of all logs anew, by their names.
    ///
    /// # Errors
    /// The first that cannot be opened; those before are.
    pub(crate) fn reopen_logs(&self) -> Result<(), BuildError> {
        Ok(self.writers().try_for_each(LogWriter::reopen)?)
    }

    /// Takes over what goes on as it was `before`: the writers of logs that functions go on with. Returns the rest.
    pub(crate) fn take_over(&mut self, mut before: Beside) -> Beside {
        for (function, before) in self.functions.iter_mut().zip(&mut before.functions) {
            if function.writer.is_none() {
                function.writer = before.writer.take();
            }
        }
        before
    }

    /// How many ports the chain's NAT has in use, if it has one.
    pub(crate) fn ports(&self) -> Option<Arc<PortBoard>> {
        self.watch.as_ref().map(|(_, ports)| ports.clone())
    }

    /// The rules of the functions, in the order of the chain.
    pub(crate) fn rules(&self) -> Vec<FunctionRules> {
        self.functions.iter().filter_map(|function| function.rules.clone()).collect()
    }

    /// The part of a function that commands change, by its type.
    pub(crate) fn control<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let mut controls = self.functions.iter().filter_map(|function| function.control.as_ref());
        controls.find_map(|control| control.clone().downcast().ok())
    }

    /// Ends what goes on beside the run. What is missing in a file is in the summary.
    pub(crate) fn close(self) {
        drop(self.watch);
        for writer in self.functions.into_iter().filter_map(|function| function.writer) {
            let _ = writer.close();
        }
    }
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writers: Vec<_> = self.writers().collect();
        f.debug_struct("Beside").field("writers", &writers).finish_non_exhaustive()
    }
}
