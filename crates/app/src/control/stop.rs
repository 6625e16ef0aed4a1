//! `rheo stop`: ends a running instance in good order.

use std::process::ExitCode;

use rheostat_observe::control::Request;

use super::{ClientError, Target};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo stop
  rheo stop --control /run/rheo/nat.sock

The instance takes in no more packets, lets those it has go through, prints its summary and ends. This
command returns once the instance has said that it will.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

/// Asks.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    args.target.ask(&Request::Stop)?;
    Ok(ExitCode::SUCCESS)
}
