//! `rheo nat --config`, and its older word `rheo nat-host`: whose external endpoint it is, where that follows from the configuration.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rheostat_control::{Config, LoadError, Overrides};
use rheostat_functions::nat::{BlockError, NatFunction, Pool};
use serde::Serialize;
use thiserror::Error;

use crate::app::App;
use crate::out;

/// Why no hosts were named.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error(
        "the configuration has no NAT with port blocks: set `deterministic = true` in \
         [function.nat], or look into its log"
    )]
    NoBlocks,
    #[error("{0}")]
    Blocks(#[from] BlockError),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo nat-host gateway.toml 203.0.113.1:4711
  rheo nat-host gateway.toml --json 203.0.113.1:4711 203.0.113.2:5000

The NAT of the configuration must give each host a block of ports (`deterministic = true`); otherwise, search
the log. The exit status is 1 when an endpoint belongs to no host.")]
pub(crate) struct Args {
    /// The configuration.
    config: PathBuf,
    /// External endpoints, such as 203.0.113.1:4711.
    #[arg(required = true)]
    endpoints: Vec<SocketAddrV4>,
    /// Print one line of JSON for each.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    external: SocketAddrV4,
    host: Option<std::net::Ipv4Addr>,
}

/// Looks endpoints up, and names the command that replaces this one.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    err!(
        "note: `rheo nat --config FILE --external ADDRESS:PORT` does this; nat-host goes with the next release"
    );
    print(app, &args.config, &args.endpoints, args.json)
}

/// Prints the hosts that have these endpoints by a configuration.
///
/// # Errors
/// [`Error`] when they do not follow from it.
pub(crate) fn print(
    app: &App,
    config: &Path,
    endpoints: &[SocketAddrV4],
    json: bool,
) -> Result<ExitCode, Error> {
    let (config, warnings) = Config::load(config, &Overrides::default(), &app.registry)?;
    if !warnings.is_empty() {
        out::report(&warnings);
    }
    let nat = config.function().map(|NatFunction { nat, .. }| nat);
    let nat = nat.filter(|nat| nat.deterministic);
    let pool = Pool::new(nat.ok_or(Error::NoBlocks)?)?;
    let mut all = true;
    for &external in endpoints {
        let host = pool.host_of(*external.ip(), external.port());
        all &= host.is_some();
        if json {
            let line = serde_json::to_string(&Found { external, host });
            out!("{}", line.expect("addresses are always JSON"));
        } else {
            let host = host.map_or("no host".to_owned(), |host| host.to_string());
            out!("{external}  {host}");
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
