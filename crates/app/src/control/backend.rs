//! `rheo backend`: takes a load balancer's backend out of service and back in.

use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_observe::control::{HealthWord, Reply, Request};

use super::{ClientError, Target};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo backend web 10.0.0.2 draining
  rheo backend --control /run/rheo/lb.sock web 10.0.0.2:8080 down
  rheo backend web 10.0.0.2 up

`rheo status` lists services and backends. The command returns once the change is in force on every lane, after
half a second at most; if a lane has not applied it after five, the exit status is 2 and the message names the lane.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// The service, as the configuration names it.
    service: String,
    /// The backend's address; with its port (ADDRESS:PORT) where several share the address.
    backend: String,
    /// What it is from now on.
    health: Health,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Health {
    /// It takes flows.
    Up,
    /// It keeps the flows it has and gets no new ones.
    Draining,
    /// It gets nothing any more.
    Down,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    let health = match args.health {
        Health::Up => HealthWord::Up,
        Health::Draining => HealthWord::Draining,
        Health::Down => HealthWord::Down,
    };
    let (service, backend) = (args.service.clone(), args.backend.clone());
    let reply = args.target.ask(&Request::Backend { service, backend, health })?;
    match &reply {
        Reply::Backend { .. } if args.json => {
            out!("{}", serde_json::to_string(&reply).expect("a reply is always JSON"));
        }
        Reply::Backend { state, moved } => out!(
            "{} {} is {} now; {:.1} % of new flows go elsewhere than before",
            state.service,
            state.backend,
            state.health,
            moved * 100.0
        ),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}
