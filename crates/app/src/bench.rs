//! `rheo bench`: what a chain costs, and comparisons. The other benchmarks are in the laboratory.

mod ab;
mod chain;
mod functions;
mod nf;
mod options;
mod rows;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

pub use chain::chain;
pub use options::{SEED, flows, given, lanes, moves};
pub use rows::Rows;

pub use crate::serve::operations_of_roots;

use crate::app::App;
use crate::error::CommandError;
use crate::laboratory;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "All other benchmarks, such as `rheo bench balance`, are commands of rheo-lab,
which stands beside this program or in PATH: `rheo-lab bench --help` lists them."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Measure what chains of network functions cost per packet, packets from memory.
    Nf(Box<nf::Args>),
    /// Run two benchmark commands in turn and print their ratios.
    Ab(ab::Args),
    /// A benchmark of the laboratory.
    #[command(external_subcommand)]
    Laboratory(
        #[expect(dead_code, reason = "the arguments of the process are passed on")] Vec<OsString>,
    ),
}

/// Measures or compares.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CommandError> {
    Ok(match &args.scenario {
        Scenario::Nf(args) => nf::run(app, args)?,
        Scenario::Ab(args) => ab::run(args)?,
        Scenario::Laboratory(_) => laboratory::run()?,
    })
}
