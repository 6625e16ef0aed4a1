//! `rheo backends`: a load balancer's backends, and how they are taken out of service and back in.

use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_observe::control::{
    BackendLine, HealthWord, ListRequest, Listing, Page, Reply, Request,
};

use super::instance::Instance;
use super::listing::{self, ListingArgs};
use super::{ClientError, Target};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo backends --control /run/rheo/lb.sock
  rheo backends --sort flows,desc --watch
  rheo backends set web 10.0.0.2 draining

`flows` counts the flows that a backend got since the start. `set_by` names the origin of its health: the configuration, an
operator, or its checks, which find it dead.
With --json, an array: {place, service, backend, vip, protocol, health, set_by, weight, flows, check}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Take a backend out of service, or back in.
    Set(Change),
}

/// Another health of a backend.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo backends set web 10.0.0.2 draining
  rheo backends set --control /run/rheo/lb.sock web 10.0.0.2:8080 down
  rheo backends set web 10.0.0.2 up

`rheo backends` lists services and backends. The command returns once the change is in force on every lane, after half a second
at most; if a lane has not applied it after five, the exit status is 2 and the message names the lane.")]
pub(crate) struct Change {
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

/// `rheo backend`, which `rheo backends set` replaces.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct OldArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    change: Change,
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
    match &args.action {
        Some(Action::Set(change)) => set(args.listing.target(), change),
        None => listing::print::<BackendLine>(&args.listing, Listing::Backends, None),
    }
}

/// Does what `rheo backends set` does, with a note.
pub(crate) fn run_old(args: &OldArgs) -> Result<ExitCode, ClientError> {
    err!("note: `rheo backend` is `rheo backends set` now; the next release has only that");
    set(&args.target, &args.change)
}

fn set(target: &Target, change: &Change) -> Result<ExitCode, ClientError> {
    let health = match change.health {
        Health::Up => HealthWord::Up,
        Health::Draining => HealthWord::Draining,
        Health::Down => HealthWord::Down,
    };
    let (service, backend) = (change.service.clone(), change.backend.clone());
    let reply = target.ask(&Request::Backend { service, backend, health })?;
    match &reply {
        Reply::Backend { .. } if change.json => {
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

impl Instance {
    /// A page of the backends.
    pub(super) fn page_of_backends(
        &self,
        request: &ListRequest,
    ) -> Result<Page<BackendLine>, String> {
        let board = self.live.board().ok_or_else(|| self.without_backends())?;
        listing::select(request, BackendLine::of(&board))
    }
}
