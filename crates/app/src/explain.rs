//! `rheo explain`: what a policy would do, and why.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_control::{LoadError, MissingInput};
use rheostat_io::OpenError;
use rheostat_observe::control::{ExplainRequest, Reply, Request};
use rheostat_observe::explain::Explanation;
use thiserror::Error;

use crate::app::App;
use crate::assemble::AssembleError;
use crate::chains::BuildError;
use crate::control::{ClientError, Target};
use crate::run::OverrideArgs;
use crate::workers::WorkersError;

mod capture;

/// Why nothing was explained.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("--load must be above 0 and at most 1000: 0.7 stands for 70 % of each lane's time")]
    Load,
    #[error("{0}")]
    Input(#[from] MissingInput),
    #[error(
        "device `{device}` reads no capture, so there is nothing to explain: give --input FILE, or ask \
         a running instance, without a configuration"
    )]
    NoCapture { device: String },
    #[error("{0}")]
    Chain(#[from] BuildError),
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    #[error("{0}")]
    Workers(#[from] WorkersError),
    #[error("{0}")]
    Open(#[from] OpenError),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # the instance that runs
  rheo explain
  rheo explain --control /run/rheo/nat.sock --policy local-search --over 10s
  # a capture
  rheo explain configs/firewall.toml --input in.pcap --lanes 8
  rheo explain configs/firewall.toml --input in.pcap --lanes 8 --load 0.9 \\
    --buckets

With --input -, the capture comes through standard input; SIGINT ends it, and what has come by then is explained.

Nothing is moved. Of a running instance, the load is measured for a while, and a sample of its packets shows the
flows. A capture shows how the load is spread, not how high it is: every packet is assumed to cost the same, and
the lanes to be loaded to 70 % on average, unless --load is given.")]
pub(crate) struct Args {
    /// The configuration that places the packets of a capture; without it, a running instance is asked.
    config: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Look at the load for this long, up to 1min.
    #[arg(long, value_name = "TIME", default_value = "1s", conflicts_with = "config",
          value_parser = rheostat_base::unit::parse_duration)]
    over: Duration,
    /// Look at so many packets to distinguish flows.
    #[arg(long, value_name = "N", default_value_t = 20_000, conflicts_with = "config")]
    sample: u64,
    /// Take a capture to load lanes to this share of their time, on average.
    #[arg(long, value_name = "SHARE", default_value_t = 0.7, requires = "config")]
    load: f64,
    /// Show the share of packets of each bucket, too.
    #[arg(long)]
    buckets: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Looks, asks and prints.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let explanation = match &args.config {
        Some(config) => capture::explain(app, config, &args.overrides, args.load)?,
        None => ask(args)?,
    };
    if args.json {
        out!("{}", serde_json::to_string(&explanation).expect("metrics are always JSON"));
    } else {
        out!("{explanation}");
        if args.buckets {
            out!("{}", explanation.buckets_as_text());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(args: &Args) -> Result<Explanation, Error> {
    let over_ms = args.over.as_millis().try_into().unwrap_or(u64::MAX);
    let request = ExplainRequest {
        policy: args.overrides.policy.clone(),
        over_ms: Some(over_ms),
        sample: Some(args.sample),
    };
    match args.target.ask(&Request::Explain(request))? {
        Reply::Explanation(explanation) => Ok(*explanation),
        reply => unreachable!("an explanation was asked for, not {reply:?}"),
    }
}
