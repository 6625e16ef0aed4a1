//! `rheo check`: checks a configuration without running it.

mod diagnostics;
mod placing;
mod port_rate;

use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_control::{AnyMachine, Config, Machine};
use rheostat_steer::{PacketSet, Protocols};

use crate::assemble;
use crate::chains::{self, Logs};
use crate::devices;
use crate::failure::Failure;
use crate::machine::ThisMachine;
use crate::memory::{MemoryLimits, MemoryPlan};
use crate::out;
use crate::run::OverrideArgs;
use crate::serve;
use placing::Placing;
use port_rate::PortRate;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo check configs/demo.toml
  rheo check configs/firewall.toml --input in.pcap --lanes 8
  rheo check configs/nat.toml --hardware-hash
  rheo check router.toml --offline --json

What is checked is whether this machine can run the configuration: interfaces, cores, memory and files too. With
--offline, only what holds on every machine is.

Exit code: 0 when the configuration can be run, 1 when a device cannot place packets by the fields of the
chain's packet set, 2 when there are mistakes. With --json, mistakes and warnings are in `diagnostics`, each with
file, line, column, message, help and severity.")]
pub(crate) struct Args {
    /// The configuration.
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
    /// Ask whether interfaces could place the packets without a program, hashing as most do: both addresses,
    /// with or without both ports.
    #[arg(long)]
    pub(crate) hardware_hash: bool,
    /// Leave out what depends on this machine: interfaces, cores, memory, and whether two names lead to one file. For
    /// a configuration that another machine is to run.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print the outcome as one line of JSON, mistakes too.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Loads a configuration and prints what it would run, or its errors.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match check(args) {
        Err(failure) if args.json => {
            let diagnostics = diagnostics::of_failure(&failure, &args.config);
            out!("{}", serde_json::json!({ "ok": false, "diagnostics": diagnostics }));
            Ok(ExitCode::from(2))
        }
        outcome => outcome,
    }
}

fn check(args: &Args) -> Result<ExitCode, Failure> {
    let machine: &dyn Machine = if args.offline { &AnyMachine } else { &ThisMachine };
    let (config, warnings) =
        Config::load_for(&args.config, &args.overrides.to_overrides(), machine)?;
    if !warnings.is_empty() && !args.json {
        out::report(&warnings);
    }
    devices::check_distinct(&config.devices)?;
    let chain = chains::build(&config.chain, 1, config.run.seed, Logs::LeftAlone)?.chain;
    let packet_set = match &config.serve {
        Some(_) => PacketSet::five_tuple().only(Protocols::TCP),
        None => chain.steering(),
    };
    if let Some(serve) = &config.serve
        && !args.offline
    {
        serve::check_root(&serve.service)?;
        serve::check_beside_kernel(&config)?;
    }
    let plan = || assemble::plan_memory(&config, &chain);
    let memory = (!args.offline).then(plan).transpose()?;
    let limits = MemoryLimits::of_this_process();
    if let Some(memory) = &memory {
        memory.check(&limits)?;
    }
    let placing = Placing::of(&config, &packet_set, args.hardware_hash);
    let feasible = placing.iter().all(Placing::is_feasible);
    let port_rate = PortRate::of(&config.chain);
    if args.json {
        let devices: Vec<_> = config.devices.iter().map(|device| &device.name).collect();
        let outcome = serde_json::json!({
            "ok": feasible,
            "warnings": warnings.findings().len(),
            "diagnostics": diagnostics::of_report(&warnings),
            "devices": devices,
            "packet_set": packet_set.to_string(),
            "port_rate": port_rate.map(PortRate::to_json),
            "placing": placing.iter().map(Placing::to_json).collect::<Vec<_>>(),
            "memory": memory.as_ref().map(MemoryPlan::to_json),
        });
        out!("{outcome}");
    } else if feasible {
        out!("{config}");
        match packet_set.is_empty() {
            true => out!("packets belong to no flow; every device spreads them"),
            false => out!("packets are placed by {packet_set}; every device can do so"),
        }
        placing.iter().for_each(|placing| out!("{placing}"));
        if let Some(memory) = &memory {
            out!("{memory}");
        }
        if let Some(rate) = &port_rate {
            out!("{rate}");
        }
    } else {
        for placing in placing.iter().filter(|placing| !placing.is_feasible()) {
            err!("{placing}");
        }
    }
    if let Some(warning) = memory.and_then(|memory| memory.warning(&limits)) {
        err!("warning: {warning}");
    }
    Ok(if feasible { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
