//! The chains that a configuration can name.

use std::io;
use std::sync::Arc;

use rheostat_control::Config;
use rheostat_functions::antiddos::AntiDdosConfig;
use rheostat_functions::bridge::BridgeConfig;
use rheostat_functions::firewall::FirewallConfig;
use rheostat_functions::lb::{HealthBoard, LbConfig};
use rheostat_functions::monitor::{MonitorFunction, MonitorLog};
use rheostat_functions::nat::{BlockError, MappingLog, NatFunction, PortUsage, SharedNat};
use rheostat_functions::policer::PolicerConfig;
use rheostat_functions::portscan::PortscanConfig;
use rheostat_functions::{
    AntiDdos, Bridge, Firewall, Lb, Monitor, Nat, Policer, Portscan, shipped,
};
use rheostat_ip::RunLimit;
use rheostat_nf::AnyChain;
use rheostat_nf::registry::ConfiguredFunction;
use rheostat_observe::{FlowLines, LogError, LogMonitor, LogWriter, PortBoard};
use rheostat_state::LayoutError;
use rheostat_state::txn::Objects;
use thiserror::Error;

use crate::assemble::{error_limit, randomness};
use crate::port_warning::PortWatch;

/// Why a chain could not be built.
#[derive(Debug, Error)]
pub(crate) enum BuildError {
    #[error("{0}")]
    Layout(#[from] LayoutError),
    #[error("{0}")]
    Blocks(#[from] BlockError),
    #[error("{0}")]
    Log(#[from] LogError),
    /// The thread that watches the ports of a NAT cannot be started.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A chain, and what goes on beside it.
pub(crate) struct BuiltChain {
    pub(crate) chain: AnyChain,
    /// Where the health of its backends is changed, if it balances load.
    pub(crate) board: Option<Arc<HealthBoard>>,
    pub(crate) log: Log,
}

impl BuiltChain {
    /// A chain beside which nothing goes on.
    fn alone(chain: AnyChain) -> BuiltChain {
        BuiltChain { chain, board: None, log: Log::default() }
    }
}

/// Whether the files that functions log to are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    Written,
    LeftAlone,
}

/// Builds the chain of these functions, which the configuration has checked, for so many lanes, under the run's limit of
/// errors. With a seed it is the same each time.
///
/// # Errors
/// [`BuildError`] when a function cannot be made as configured, or a log cannot be written.
pub(crate) fn build(
    functions: &[ConfiguredFunction],
    lanes: usize,
    seed: Option<u64>,
    errors: &RunLimit,
    logs: Logs,
) -> Result<BuiltChain, BuildError> {
    let objects = || objects_of(lanes, seed);
    let names: Vec<_> = functions.iter().map(ConfiguredFunction::name).collect();
    let built = match names[..] {
        // A router is what every chain is whose devices have addresses.
        [] | ["router"] => Some(BuiltChain::alone(shipped::empty())),
        ["firewall", "nat"] => {
            let firewall: Option<&FirewallConfig> = functions[0].get();
            let nat: Option<&NatFunction> = functions[1].get();
            let (firewall, nat) = firewall.zip(nat).expect("their settings");
            let (nat, log) = open_nat(nat, logs)?;
            let firewall = Firewall::new(firewall.clone()).limited_by(errors.clone());
            let chain = shipped::firewall_nat(firewall, nat.limited_by(errors.clone()))?;
            Some(BuiltChain { log, ..BuiltChain::alone(chain) })
        }
        [_] => build_one(&functions[0], objects, seed, errors, logs)?,
        _ => None,
    };
    Ok(built.expect("the configuration knows the chains there are"))
}

fn build_one(
    function: &ConfiguredFunction,
    objects: impl Fn() -> Objects,
    seed: Option<u64>,
    errors: &RunLimit,
    logs: Logs,
) -> Result<Option<BuiltChain>, BuildError> {
    Ok(Some(if let Some(firewall) = function.get::<FirewallConfig>() {
        let firewall = Firewall::new(firewall.clone()).limited_by(errors.clone());
        BuiltChain::alone(shipped::firewall(firewall)?)
    } else if let Some(antiddos) = function.get::<AntiDdosConfig>() {
        let objects = objects();
        let antiddos = AntiDdos::new(antiddos.clone(), &objects);
        BuiltChain::alone(shipped::antiddos(antiddos, &objects)?)
    } else if let Some(bridge) = function.get::<BridgeConfig>() {
        let objects = objects();
        let bridge = Bridge::new(bridge.clone(), &objects);
        BuiltChain::alone(shipped::bridge(bridge, &objects)?)
    } else if let Some(portscan) = function.get::<PortscanConfig>() {
        let objects = objects();
        let portscan = Portscan::new(portscan.clone(), &objects);
        BuiltChain::alone(shipped::portscan(portscan, &objects)?)
    } else if let Some(lb) = function.get::<LbConfig>() {
        let lb = Lb::new(lb.clone()).limited_by(errors.clone());
        let board = Some(lb.board());
        BuiltChain { board, ..BuiltChain::alone(shipped::lb(lb)?) }
    } else if let Some(monitor) = function.get::<MonitorFunction>() {
        let (monitor, log) = open_monitor(monitor, logs)?;
        BuiltChain { log, ..BuiltChain::alone(shipped::monitor(monitor)?) }
    } else if let Some(policer) = function.get::<PolicerConfig>() {
        BuiltChain::alone(shipped::policer(Policer::new(policer.clone()))?)
    } else if let Some(NatFunction { nat, sharing: Some(sharing), .. }) = function.get() {
        let (objects, mut rng) = (objects(), randomness(seed));
        let nat = SharedNat::new(nat.clone(), *sharing, &objects, &mut rng)?;
        BuiltChain::alone(shipped::shared_nat(nat.limited_by(errors.clone()), &objects)?)
    } else if let Some(nat) = function.get::<NatFunction>() {
        let (nat, log) = open_nat(nat, logs)?;
        BuiltChain { log, ..BuiltChain::alone(shipped::nat(nat.limited_by(errors.clone()))?) }
    } else {
        return Ok(None);
    }))
}

/// Builds the chain of a configuration for so many lanes, to look at it.
///
/// # Errors
/// As [`build`].
pub(crate) fn without_logs(config: &Config, lanes: usize) -> Result<BuiltChain, BuildError> {
    let errors = error_limit(config);
    build(&config.chain, lanes, config.run.seed, &errors, Logs::LeftAlone)
}

fn objects_of(lanes: usize, seed: Option<u64>) -> Objects {
    seed.map_or_else(|| Objects::new(lanes), |seed| Objects::seeded(lanes, seed))
}

/// The NAT of a configuration, and its log. While a run goes on, it is watched for how many ports are left.
fn open_nat(function: &NatFunction, logs: Logs) -> Result<(Nat, Log), BuildError> {
    if logs == Logs::LeftAlone {
        return Ok((Nat::new(function.nat.clone(), None)?, Log::default()));
    }
    let log = function.log.as_ref().map(|path| (path, MappingLog::new()));
    let nat = Nat::new(function.nat.clone(), log.as_ref().map(|(_, log)| log.clone()))?;
    let usage = PortUsage::new(&function.nat);
    let writer = log.map(|(path, log)| LogWriter::start(path, log)).transpose()?;
    let ports = Arc::new(PortBoard::new(usage.clone()));
    let watch = PortWatch::start(ports.clone())?;
    Ok((nat.with_usage(usage), Log { writer, watch: Some((watch, ports)) }))
}

/// The monitor of a configuration, and its log.
fn open_monitor(function: &MonitorFunction, logs: Logs) -> Result<(Monitor, Log), BuildError> {
    let config = function.monitor.clone();
    let Some(path) = function.log.as_ref().filter(|_| logs == Logs::Written) else {
        return Ok((Monitor::new(config, None), Log::default()));
    };
    let log = MonitorLog::new();
    let interval = config.top.as_ref().and_then(|top| Some((top.interval?, top.listed)));
    let writer = LogWriter::start(path, FlowLines::new(log.clone(), interval))?;
    Ok((Monitor::new(config, Some(log)), Log { writer: Some(writer), watch: None }))
}

/// What goes on beside a run: the writer of a log, if there is a log, and the watch on the ports.
#[derive(Default)]
pub(crate) struct Log {
    writer: Option<LogWriter>,
    watch: Option<(PortWatch, Arc<PortBoard>)>,
}

impl Log {
    /// The log that is written, if there is one.
    pub(crate) fn monitor(&self) -> Option<LogMonitor> {
        self.writer.as_ref().map(LogWriter::monitor)
    }

    /// How many ports the chain's NAT has in use, if it has one.
    pub(crate) fn ports(&self) -> Option<Arc<PortBoard>> {
        self.watch.as_ref().map(|(_, ports)| ports.clone())
    }

    /// Ends what goes on beside the run. What is missing in a file is in the summary.
    pub(crate) fn close(self) {
        drop(self.watch);
        let _ = self.writer.map(LogWriter::close);
    }
}
