//! The commands of `rheo-lab`: those that `rheo` leaves to the laboratory.

mod advise;
mod bench;
mod choices;
#[cfg(test)]
mod help;
mod machine_costs;
mod page_file;
mod reproduce;
mod request_scenario;
mod sim;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use rheostat_app::terminal::usage;
use rheostat_measure::record::Build;

/// Why a command gave no result: the error of what it measures or simulates.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// What this program was built from, and how.
pub(crate) const BUILD: Build =
    Build { commit: env!("RHEO_COMMIT"), profile: env!("RHEO_PROFILE") };

/// The version, the commit that it was built from, the cargo profile, and the features.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("RHEO_COMMIT"),
    ", ",
    env!("RHEO_PROFILE"),
    ", ",
    env!("RHEO_FEATURES"),
    ")"
);

/// Experiments, scenarios on real lanes and in simulation, and reports of their results.
#[derive(Debug, Parser)]
#[command(
    name = "rheo-lab",
    version = VERSION,
    arg_required_else_help = true,
    after_help = "Examples:
  rheo bench balance
  rheo sim balance --cores 16
  rheo advise --service 10us --load 0.8 --cores 8
  rheo reproduce --list

rheo runs this program for its commands."
)]
struct Cli {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Simulate a scenario on any number of cores.
    Sim(Box<sim::Args>),
    /// Recommend a scheduler for a service over TCP.
    Advise(Box<advise::Args>),
    /// Measure, and compare measurements.
    Bench(Box<bench::Args>),
    /// List published claims, or measure the figures of one.
    Reproduce(reproduce::Args),
}

/// Runs the command that the program was called with.
pub fn main() -> ExitCode {
    // A file that may not grow (RLIMIT_FSIZE) is a failed write, which is reported.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    let command = match Cli::try_parse() {
        Ok(Cli { command }) => command,
        Err(error) => return usage(&error),
    };
    let outcome = match command {
        LabCommand::Sim(args) => sim::run(&args),
        LabCommand::Advise(args) => advise::run(&args),
        LabCommand::Bench(args) => bench::run(&args),
        LabCommand::Reproduce(args) => reproduce::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        err!("error: {error}");
        ExitCode::from(2)
    })
}

/// The program `rheo`: beside this one, or in a folder of PATH.
///
/// # Errors
/// When it is in none of them.
pub(crate) fn rheo() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside = own.parent().map(PathBuf::from);
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join("rheo")).find(|program| program.is_file());
    found.ok_or_else(|| {
        let text = "rheo is neither beside this program nor in PATH: build it with `cargo build --release`";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}
