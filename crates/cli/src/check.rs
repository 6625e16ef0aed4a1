//! `rheo check`: checks a configuration without running it.

mod placing;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_control::Config;
use rheostat_nf::Chain;
use rheostat_state::StateLayout;
use rheostat_steer::PacketSet;

use crate::chains::{self, Logs, WithChain};
use crate::failure::Failure;
use crate::run::OverrideArgs;
use placing::Placing;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo check configs/demo.toml
  rheo check configs/firewall.toml --input in.pcap --lanes 8
  rheo check configs/nat.toml --hardware-hash

Exit code: 0 when the configuration can be run, 1 when a device cannot place packets by the fields of the
chain's packet set, 2 when there are mistakes.")]
pub(crate) struct Args {
    /// The configuration.
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
    /// Ask whether interfaces could place the packets without a program, hashing as most do: both addresses,
    /// with or without both ports.
    #[arg(long)]
    pub(crate) hardware_hash: bool,
    /// Print the outcome as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Loads a configuration and says what it would run.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (config, warnings) = Config::load(&args.config, &args.overrides.to_overrides())?;
    if !warnings.is_empty() {
        eprint!("{}", warnings.render(io::stderr().is_terminal()));
    }
    let packet_set = chains::build(&config.chain, 1, config.run.seed, Logs::LeftAlone, PlacedBy)?;
    let placing = Placing::of(&config, &packet_set, args.hardware_hash);
    let feasible = placing.iter().all(Placing::is_feasible);
    if args.json {
        let devices: Vec<_> = config.devices.iter().map(|device| &device.name).collect();
        let outcome = serde_json::json!({
            "ok": feasible,
            "warnings": warnings.findings().len(),
            "devices": devices,
            "packet_set": packet_set.to_string(),
            "placing": placing.iter().map(Placing::to_json).collect::<Vec<_>>(),
        });
        out!("{outcome}");
    } else if feasible {
        out!("{config}");
        match packet_set.is_empty() {
            true => out!("packets belong to no flow; every device spreads them"),
            false => out!("packets are placed by {packet_set}; every device can do so"),
        }
        placing.iter().for_each(|placing| out!("{placing}"));
    } else {
        for placing in placing.iter().filter(|placing| !placing.is_feasible()) {
            eprintln!("{placing}");
        }
    }
    Ok(if feasible { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks a chain for the fields by which its packets are placed.
struct PlacedBy;

impl WithChain for PlacedBy {
    type Output = PacketSet;

    fn with<C: Chain>(self, chain: C, _: StateLayout) -> Result<PacketSet, Failure> {
        Ok(chain.steering())
    }
}
