//! The commands of a program that runs functions and services: `rheo`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod active_config;
mod against;
mod app;
mod assemble;
mod attachment;
pub mod bench;
mod capture;
mod cases;
mod chains;
mod check;
mod control;
mod cut_off;
mod devices;
mod doctor;
mod error;
mod explain;
mod generate;
#[cfg(test)]
mod help_and_version;
mod http;
mod interrupt;
mod kept_file;
mod laboratory;
mod links;
mod listeners;
mod load;
mod log;
mod machine;
mod man;
mod memory;
mod mtu;
mod nat_host;
mod nat_log;
mod network;
mod new;
mod objectives;
mod output_file;
mod playground;
mod port_warning;
mod preflight;
mod profile;
mod registered_help;
mod reload;
mod run;
mod run_times;
mod serve;
pub mod terminal;
mod top;
mod trace;
mod workers;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub use app::App;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rheostat_measure::record::Build;

use error::CommandError;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> =
    rheostat_measure::allocation::COUNTING;

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

/// Scales stateful network functions over the cores of a machine.
#[derive(Debug, Parser)]
#[command(
    name = "rheo",
    version = VERSION,
    arg_required_else_help = true,
    after_help = "Examples:
  rheo run configs/demo.toml
  rheo run configs/firewall.toml --input in.pcap --output out.pcap --lanes 2 \\
    --json
  rheo check configs/firewall.toml --offline
  rheo test configs/firewall.toml replies.case
  rheo doctor
  rheo new function synlimit
  rheo status --control /run/rheo/nat.sock
  rheo reload --control /run/rheo/nat.sock
  rheo explain configs/nat.toml --input in.pcap --lanes 4
  rheo profile configs/antiddos.toml --lanes 2
  rheo gen --output mix.pcap --packets 1M --flows 64k
  rheo sim balance --cores 16
  rheo advise --service 10us --load 0.8 --cores 8
  rheo serve http --root . --device lan=tap:rheo0 --address 10.0.0.1/24 \\
    --port 80
  rheo load --address 10.0.0.1:7000 --rate 20k --connections 64
  rheo bench nf"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a chain of functions, or a service, as configured.
    Run(run::Args),
    /// Serve TCP connections in the lanes: HTTP, a store of keys and values, echo, a relay, synthetic work, and what the program
    /// registers.
    Serve(Box<serve::Args>),
    /// Measure the latency of a server over TCP, with an open loop of requests.
    Load(Box<load::Args>),
    /// Check a configuration without running it.
    Check(check::Args),
    /// Print manual pages: of commands, and of the configuration.
    Man(man::Args),
    /// Run cases (packets in, packets expected), or compare what two configurations decide about a capture.
    Test(cases::Args),
    /// Try a chain between two hosts that are network namespaces.
    Try(playground::Args),
    /// Write generated or replayed traffic to a capture, or describe it.
    Gen(Box<generate::Args>),
    /// Check kernel, NIC and privileges; print fixes.
    Doctor(doctor::Args),
    /// Write a project with a network function of its own.
    New(new::Args),
    /// Show the metrics of a running instance.
    Status(control::StatusArgs),
    /// List the connections of a running service over TCP.
    Connections(control::ConnectionsArgs),
    /// List the lanes of a running instance, with their loads and queues.
    Lanes(control::LanesArgs),
    /// List the shards of a running instance, with their lanes, loads and moves.
    Shards(control::ShardsArgs),
    /// List the neighbours of a running instance: hosts on the links of its devices.
    Neighbours(control::NeighboursArgs),
    /// List the routes of a running instance.
    Routes(control::RoutesArgs),
    /// List the rules of a running instance's functions, with their hits.
    Rules(control::RulesArgs),
    /// List or delete the flows of a running chain.
    Flows(control::FlowsArgs),
    /// List the mappings of a running NAT.
    Nat(control::NatArgs),
    /// Show or rewrite the indirection table of a running instance's device.
    Table(control::TableArgs),
    /// Show what a policy would do with the load of a running instance, or of a capture, and why.
    Explain(explain::Args),
    /// Find what limits the scaling of a chain; print fixes.
    Profile(profile::Args),
    /// List a load balancer's backends; take one out of service, or back in.
    Backends(control::BackendsArgs),
    /// Take a load balancer's backend out of service, or back in: `rheo backends set`.
    Backend(control::BackendArgs),
    /// Copy packets of a running instance into a file.
    Capture(capture::Args),
    /// Trace packets through a running instance.
    Trace(trace::Args),
    /// Put a changed configuration in force in a running instance.
    Reload(control::ReloadArgs),
    /// Drain and stop a running instance.
    Stop(control::StopArgs),
    /// Watch a running instance in the terminal.
    Top(top::Args),
    /// Confirm a run that would end by itself (--for).
    Keep(control::KeepArgs),
    /// Older word for `nat --config`.
    NatHost(nat_host::Args),
    /// Measure what a chain costs.
    Bench(Box<bench::Args>),
    /// Simulate a scenario on any number of cores (rheo-lab).
    Sim(laboratory::Args),
    /// Recommend a scheduler for a service over TCP (rheo-lab).
    Advise(laboratory::Args),
    /// List published claims, or measure the figures of one (rheo-lab).
    Reproduce(laboratory::Args),
}

/// Runs the command that the program was called with, with everything that comes with rheostat.
pub fn main() -> ExitCode {
    App::new().main()
}

impl App {
    /// Runs the command that the program was called with.
    pub fn main(self) -> ExitCode {
        main_of(&self)
    }
}

/// The command line of `app`: a subcommand of `serve` for each of its applications, and the names of registered kinds in help.
fn command_line(app: &App) -> clap::Command {
    let command = serve::with_applications(Cli::command(), &app.registry);
    registered_help::with_names(command, &app.registry)
}

fn main_of(app: &App) -> ExitCode {
    // A file that may not grow (RLIMIT_FSIZE) is a failed write, which is reported and counted; not the end of the
    // process without a summary.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    if !app.faults.is_empty() {
        app.faults.iter().for_each(|fault| err!("error: {fault}"));
        return ExitCode::from(2);
    }
    let first = std::env::args_os().next();
    let mut line = app.program.name(command_line(app), first.as_deref().map(Path::new));
    let matches = line.try_get_matches_from_mut(std::env::args_os());
    let matches = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    log::start();
    let command = match matches.map_err(|error| error.format(&mut line)) {
        Ok(Cli { command }) => command,
        Err(error) => return out::usage(&error),
    };
    match command {
        Command::Run(args) => exit(run::run(app, &args)),
        Command::Serve(args) => exit(serve::run(app, &args)),
        Command::Load(args) => exit(load::run(&args)),
        Command::Check(args) => exit(check::run(app, &args)),
        Command::Man(args) => exit(man::run(app, &args)),
        Command::Test(args) => exit(cases::run(app, &args)),
        Command::Try(args) => exit(playground::run(&args)),
        Command::Gen(args) => exit(generate::run(&args)),
        Command::Doctor(args) => exit(doctor::run(&args)),
        Command::New(args) => exit(new::run(app, &args)),
        Command::Status(args) => exit(control::status(&args)),
        Command::Connections(args) => exit(control::connections(&args)),
        Command::Lanes(args) => exit(control::lanes(&args)),
        Command::Shards(args) => exit(control::shards(&args)),
        Command::Neighbours(args) => exit(control::neighbours(&args)),
        Command::Routes(args) => exit(control::routes(&args)),
        Command::Rules(args) => exit(control::rules(&args)),
        Command::Flows(args) => exit(control::flows(&args)),
        Command::Nat(args) => exit(control::nat(app, &args)),
        Command::Table(args) => exit(control::table(&args)),
        Command::Explain(args) => exit(explain::run(app, &args)),
        Command::Profile(args) => exit(profile::run(app, &args)),
        Command::Backends(args) => exit(control::backends(&args)),
        Command::Backend(args) => exit(control::backend(&args)),
        Command::Capture(args) => exit(capture::run(&args)),
        Command::Trace(args) => exit(trace::run(&args)),
        Command::Reload(args) => exit(control::reload(&args)),
        Command::Stop(args) => exit(control::stop(&args)),
        Command::Top(args) => exit(top::run(&args)),
        Command::Keep(args) => exit(control::keep(&args)),
        Command::NatHost(args) => exit(nat_host::run(app, &args)),
        Command::Bench(args) => exit(bench::run(app, &args)),
        Command::Sim(_) | Command::Advise(_) | Command::Reproduce(_) => exit(laboratory::run()),
    }
}

/// The exit status of a command. Its error is printed.
fn exit(outcome: Result<ExitCode, impl Into<CommandError>>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        error.into().print();
        ExitCode::from(2)
    })
}
