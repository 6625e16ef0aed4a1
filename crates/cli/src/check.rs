//! `rheo check`: checks a configuration without running it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_control::Config;
use rheostat_nf::Chain;
use rheostat_state::StateLayout;
use rheostat_steer::{HashCapabilities, PacketSet};

use crate::chains::{self, Logs, WithChain};
use crate::failure::Failure;
use crate::run::OverrideArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo check configs/demo.toml
  rheo check configs/firewall.toml --input in.pcap --lanes 8")]
pub(crate) struct Args {
    /// The configuration.
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
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
    let packet_set = chains::build(&config.chain, Logs::LeftAlone, PlacedBy)?;
    // Both kinds of device of this build hash in software.
    let capabilities = HashCapabilities::software();
    for device in &config.devices {
        packet_set.feasible(&capabilities).map_err(|infeasible| Failure::Infeasible {
            device: device.name.clone(),
            infeasible,
        })?;
    }
    if args.json {
        let devices: Vec<_> = config.devices.iter().map(|device| &device.name).collect();
        let outcome = serde_json::json!({
            "ok": true,
            "warnings": warnings.findings().len(),
            "devices": devices,
            "packet_set": packet_set.to_string(),
        });
        out!("{outcome}");
    } else {
        out!("{config}");
        out!("packets are placed by {packet_set}; every device can do so");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks a chain for the fields by which its packets are placed.
struct PlacedBy;

impl WithChain for PlacedBy {
    type Output = PacketSet;

    fn with<C: Chain>(self, chain: C, _: StateLayout) -> Result<PacketSet, Failure> {
        Ok(chain.steering())
    }
}
