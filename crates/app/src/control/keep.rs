//! `rheo keep`: confirms a run that would end by itself.

use std::process::ExitCode;

use rheostat_observe::control::{Reply, Request};

use super::{ClientError, Target};
use crate::attachment::{Confirmation, Trial};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo run nat.toml --control /run/rheo/nat.sock --for 60s
  rheo keep --control /run/rheo/nat.sock

A run that was started with --for TIME ends after that time and gives its interfaces back, so that a mistake which cuts
one off does not last. Once it is confirmed, it goes on until it is stopped.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

/// Asks.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    if let Reply::Kept { was_pending: false } = args.target.ask(&Request::Keep)? {
        err!("the run would have gone on anyway");
    }
    Ok(ExitCode::SUCCESS)
}

/// The reply to a confirmation.
pub(crate) fn confirm(trial: &Trial) -> Reply {
    match trial.keep() {
        Confirmation::Kept => Reply::Kept { was_pending: true },
        Confirmation::Needless => Reply::Kept { was_pending: false },
        Confirmation::Late => Reply::Error {
            message: "the time was up before the confirmation came: the run is ending".to_owned(),
        },
    }
}
