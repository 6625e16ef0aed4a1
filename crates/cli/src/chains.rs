//! The chains that a configuration can name. Each is compiled as a whole, so that packets pass it
//! without virtual calls.

use std::sync::Arc;

use rheostat_control::config::FunctionConfig;
use rheostat_control::config::monitor::MonitorFunction;
use rheostat_control::config::nat::NatFunction;
use rheostat_nf::function::lb::HealthBoard;
use rheostat_nf::function::monitor::MonitorLog;
use rheostat_nf::function::nat::{MappingLog, PortUsage, SharedNat};
use rheostat_nf::function::{AntiDdos, Bridge, Firewall, Lb, Monitor, Nat, Policer, Portscan};
use rheostat_nf::{Chain, Empty, Shared, Stage, Then};
use rheostat_observe::{FlowLines, LogMonitor, LogWriter, PortBoard};
use rheostat_state::StateLayout;
use rheostat_state::txn::Objects;

use crate::assemble::randomness;
use crate::failure::Failure;
use crate::port_warning::PortWatch;

/// What is to be done with a chain once its type is known.
pub(crate) trait WithChain {
    type Output;

    /// Told, before the chain, where the health of its backends is changed, if it balances load.
    fn balances(&mut self, _board: Arc<HealthBoard>) {}

    /// Told, before the chain, how many ports its NAT has in use, if it has one.
    fn watches(&mut self, _ports: Arc<PortBoard>) {}

    /// Told, before the chain, of a log that is written, if there is one.
    fn logs_to(&mut self, _log: LogMonitor) {}

    fn with<C: Chain>(self, chain: C, layout: StateLayout) -> Result<Self::Output, Failure>;
}

/// Whether the files that functions log to are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    Written,
    LeftAlone,
}

/// Builds the chain of these functions, which the configuration has checked, for so many lanes, and passes it on. With
/// a seed it is the same each time.
pub(crate) fn build<W: WithChain>(
    functions: &[FunctionConfig],
    lanes: usize,
    seed: Option<u64>,
    logs: Logs,
    mut work: W,
) -> Result<W::Output, Failure> {
    let mut layout = StateLayout::new();
    match functions {
        // A router is what every chain is whose devices have addresses.
        [] | [FunctionConfig::Router] => work.with(Empty, layout),
        [FunctionConfig::Firewall(firewall)] => {
            let chain = Stage::new(Firewall::new(firewall.clone()), &mut layout)?;
            work.with(chain, layout)
        }
        [FunctionConfig::AntiDdos(antiddos)] => {
            let objects = objects_of(lanes, seed);
            let antiddos = AntiDdos::new(antiddos.clone(), &objects);
            work.with(Shared::new(antiddos, &objects, &mut layout)?, layout)
        }
        [FunctionConfig::Bridge(bridge)] => {
            let objects = objects_of(lanes, seed);
            let bridge = Bridge::new(bridge.clone(), &objects);
            work.with(Shared::new(bridge, &objects, &mut layout)?, layout)
        }
        [FunctionConfig::Portscan(portscan)] => {
            let objects = objects_of(lanes, seed);
            let portscan = Portscan::new(portscan.clone(), &objects);
            work.with(Shared::new(portscan, &objects, &mut layout)?, layout)
        }
        [FunctionConfig::Lb(lb)] => {
            let lb = Lb::new(lb.clone());
            work.balances(lb.board());
            let chain = Stage::new(lb, &mut layout)?;
            work.with(chain, layout)
        }
        [FunctionConfig::Monitor(monitor)] => {
            let (monitor, log) = open_monitor(monitor, logs)?;
            log.tell(&mut work);
            let output = work.with(Stage::new(monitor, &mut layout)?, layout)?;
            log.close();
            Ok(output)
        }
        [FunctionConfig::Nat(NatFunction { nat, sharing: Some(sharing), .. })] => {
            let objects = objects_of(lanes, seed);
            let mut rng = randomness(seed);
            let nat = SharedNat::new(nat.clone(), *sharing, &objects, &mut rng)?;
            work.with(Shared::new(nat, &objects, &mut layout)?, layout)
        }
        [FunctionConfig::Nat(nat)] => {
            let (nat, log) = open(nat, logs)?;
            log.tell(&mut work);
            let output = work.with(Stage::new(nat, &mut layout)?, layout)?;
            log.close();
            Ok(output)
        }
        [FunctionConfig::Policer(policer)] => {
            let chain = Stage::new(Policer::new(policer.clone()), &mut layout)?;
            work.with(chain, layout)
        }
        [FunctionConfig::Firewall(firewall), FunctionConfig::Nat(nat)] => {
            let (nat, log) = open(nat, logs)?;
            log.tell(&mut work);
            let firewall = Stage::new(Firewall::new(firewall.clone()), &mut layout)?;
            let output = work.with(Then(firewall, Stage::new(nat, &mut layout)?), layout)?;
            log.close();
            Ok(output)
        }
        _ => unreachable!("the configuration knows the chains there are"),
    }
}

fn objects_of(lanes: usize, seed: Option<u64>) -> Objects {
    seed.map_or_else(|| Objects::new(lanes), |seed| Objects::seeded(lanes, seed))
}

/// The NAT of a configuration, and its log. While a run goes on, it is watched for how many ports are left.
fn open(function: &NatFunction, logs: Logs) -> Result<(Nat, Log), Failure> {
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
fn open_monitor(function: &MonitorFunction, logs: Logs) -> Result<(Monitor, Log), Failure> {
    let config = function.monitor.clone();
    let Some(path) = function.log.as_ref().filter(|_| logs == Logs::Written) else {
        return Ok((Monitor::new(config, None), Log::default()));
    };
    let log = MonitorLog::new();
    let interval = config.top.as_ref().and_then(|top| Some((top.interval?, top.listed)));
    let writer = LogWriter::start(path, FlowLines::new(log.clone(), interval))?;
    Ok((Monitor::new(config, Some(log)), Log { writer: Some(writer), watch: None }))
}

/// What goes on beside a run: the writer of a log, if there is a log, and who watches the ports.
#[derive(Default)]
struct Log {
    writer: Option<LogWriter>,
    watch: Option<(PortWatch, Arc<PortBoard>)>,
}

impl Log {
    /// Ends what goes on beside the run. What is missing in a file is in the summary.
    fn close(self) {
        drop(self.watch);
        let _ = self.writer.map(LogWriter::close);
    }

    fn tell(&self, work: &mut impl WithChain) {
        if let Some(log) = &self.writer {
            work.logs_to(log.monitor());
        }
        if let Some((_, ports)) = &self.watch {
            work.watches(ports.clone());
        }
    }
}
