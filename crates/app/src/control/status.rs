//! `rheo status`: the metrics of a running instance.

use std::process::ExitCode;

use rheostat_observe::control::{Reply, Request};

use super::{ClientError, Target};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo status
  rheo status --control /run/rheo/nat.sock
  rheo status --json | jq .mpps

The metrics are those of the summary at the end of a run, as far as they are known by now, with what each
device has received and sent and, of a load balancer, the health of each backend.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    if let Reply::Status(status) = args.target.ask(&Request::Status)? {
        if args.json {
            out!("{}", serde_json::to_string(&status).expect("metrics are always JSON"));
        } else {
            out!("{status}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
