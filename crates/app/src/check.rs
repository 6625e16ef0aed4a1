//! `rheo check`: checks a configuration without running it.

mod diagnostics;
mod explain;
mod placing;
mod port_rate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rheostat_control::{AnyMachine, Config, LoadError, Machine, Reference, Report};
use rheostat_serve::registry::ApplicationError;
use rheostat_steer::{PacketSet, Protocols};
use thiserror::Error;

use crate::app::App;
use crate::chains::{self, BuildError};
use crate::machine::ThisMachine;
use crate::network::{self, WiringError};
use crate::out;
use crate::preflight::{Preflight, PreflightError, preflight};
use crate::run::OverrideArgs;
use crate::serve::{self, PlacingError};
use crate::workers::{Workers, WorkersError};
use explain::UnknownKey;
use placing::Placing;
use port_rate::PortRate;

/// Why a configuration cannot be run.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    Placing(#[from] PlacingError),
    #[error("{0}")]
    Chain(#[from] BuildError),
    #[error("{0}")]
    Network(#[from] WiringError),
    #[error("{0}")]
    Preflight(#[from] PreflightError),
    #[error("{0}")]
    Application(#[from] ApplicationError),
    #[error("{0}")]
    Workers(#[from] WorkersError),
    #[error("{0}")]
    Explain(#[from] UnknownKey),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo check configs/demo.toml
  rheo check configs/firewall.toml --input in.pcap --lanes 8
  rheo check configs/nat.toml --offline --hardware-hash
  rheo check router.toml --offline --json
  rheo check --explain workers.lanes
  rheo check --explain function.nat

The check is the one that `rheo run` begins with: interfaces, addresses, cores, memory, users, files and the control
socket of this machine too. What the kernel decides only when a device opens is left to the run, such as privileges.
With --offline, only what holds on every machine is checked, and inputs may be missing.

Exit code: 0 when the configuration can be run, 1 when a device cannot place packets by the fields of the
chain's packet set, 2 when there are mistakes. With --json, mistakes and warnings are in `diagnostics`, each with
file, line, column, message, help and severity.")]
pub(crate) struct Args {
    /// The configuration.
    #[arg(required_unless_present = "explain")]
    pub(crate) config: Option<PathBuf>,
    /// Explain a setting in place of a check: its type, unit, bounds, default and an example; the keys of a section.
    #[arg(long, value_name = "KEY", conflicts_with = "config")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
    /// Ask whether interfaces could place the packets without a program, hashing as most do: both addresses,
    /// with or without both ports.
    #[arg(long)]
    pub(crate) hardware_hash: bool,
    /// Leave out what depends on this machine: interfaces, cores, memory, users and files. For a configuration that another
    /// machine is to run, or one whose inputs the command line of the run names.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print the outcome as one line of JSON, mistakes too.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Loads a configuration and prints what it would run, or its errors.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let Some(file) = &args.config else {
        return explain(app, args.explain.as_deref().unwrap_or_default(), args.json);
    };
    match check(app, file, args) {
        Err(error) if args.json => {
            let diagnostics = diagnostics::of_error(&error, file);
            out!("{}", serde_json::json!({ "ok": false, "diagnostics": diagnostics }));
            Ok(ExitCode::from(2))
        }
        outcome => outcome,
    }
}

/// Explains a setting, or a section.
fn explain(app: &App, key: &str, is_json: bool) -> Result<ExitCode, Error> {
    match explain::explain(&Reference::of(&app.registry), key, is_json) {
        Ok(text) => {
            out!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        Err(unknown) if is_json => {
            out!("{}", explain::unknown_to_json(&unknown));
            Ok(ExitCode::from(2))
        }
        Err(unknown) => Err(unknown.into()),
    }
}

fn check(app: &App, file: &Path, args: &Args) -> Result<ExitCode, Error> {
    let machine: &dyn Machine = if args.offline { &AnyMachine } else { &ThisMachine };
    let (config, warnings) =
        Config::load_for(file, &args.overrides.to_overrides(), machine, &app.registry)?;
    if !warnings.is_empty() && !args.json {
        out::report(&warnings);
    }
    if serve::is_over_kernel(&config) {
        return check_over_kernel(&config, &warnings, args);
    }
    let placed = match &config.serve {
        Some(serve) if !args.offline => Some(serve::place(&config, serve)?),
        _ => None,
    };
    let workers = placed.as_ref().map_or(&config.workers, |placed| &placed.workers);
    let chain = chains::without_logs(app, &config, 1)?.chain;
    let packet_set = match &config.serve {
        Some(_) => PacketSet::five_tuple().only(Protocols::TCP),
        None => chain.spec().steering(),
    };
    let preflight = match args.offline {
        true => {
            network::plan(&config, 0, &|_| Ok(None))?;
            None
        }
        false => Some(preflight(&config, &Workers::of(workers)?, &chain)?),
    };
    let placing = Placing::of(&config, &packet_set, args.hardware_hash);
    let feasible = placing.iter().all(Placing::is_feasible);
    let port_rate = PortRate::of(&config);
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
            "memory": preflight.as_ref().map(|preflight| preflight.memory.to_json()),
        });
        out!("{outcome}");
    } else if feasible {
        out!("{}", config.described_with(workers));
        match packet_set.is_empty() {
            true => out!("packets belong to no flow; every device spreads them"),
            false => out!("packets are placed by {packet_set}; every device can do so"),
        }
        placing.iter().for_each(|placing| out!("{placing}"));
        if let Some(Preflight { memory, .. }) = &preflight {
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
    if let Some(Preflight { warnings, running, cut_off, .. }) = &preflight {
        let running = running.as_ref().map(ToString::to_string);
        let cut_off = cut_off.as_ref().map(ToString::to_string);
        warnings
            .iter()
            .chain(&running)
            .chain(&cut_off)
            .for_each(|warning| err!("warning: {warning}"));
    }
    Ok(if feasible { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks a service over the kernel's sockets, which has no packets to place.
fn check_over_kernel(config: &Config, warnings: &Report, args: &Args) -> Result<ExitCode, Error> {
    if !args.offline
        && let Some(serve) = &config.serve
    {
        serve.application.check()?;
        Workers::of(&config.workers)?;
    }
    if args.json {
        let devices: Vec<_> = config.devices.iter().map(|device| &device.name).collect();
        let outcome = serde_json::json!({
            "ok": true,
            "warnings": warnings.findings().len(),
            "diagnostics": diagnostics::of_report(warnings),
            "devices": devices,
            "packet_set": "",
            "port_rate": null,
            "placing": [],
            "memory": null,
        });
        out!("{outcome}");
    } else {
        out!("{config}");
        out!("TCP is the kernel's, which spreads connections over lanes");
    }
    Ok(ExitCode::SUCCESS)
}
