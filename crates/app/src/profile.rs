//! `rheo profile`: what keeps a chain from scaling, and what to do about it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_control::config::DeviceConfig;
use rheostat_control::overrides::KindOverride;
use rheostat_control::{Config, DeviceOverride, LoadError, Overrides};
use rheostat_observe::control::{ProfileRequest, Reply, Request};
use rheostat_observe::profile::{Observed, ScalingProfile};
use thiserror::Error;

use crate::app::App;
use crate::attachment::AttachmentArgs;
use crate::control::{ClientError, Target};
use crate::machine::ThisMachine;
use crate::out;
use crate::run::{self, Finished, OverrideArgs, Quiet};

/// Why nothing was profiled.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("a profile is of a chain, and this configuration has a service: `rheo run` runs it")]
    Service,
    #[error("{0}")]
    Run(#[from] run::Error),
}

/// How long a chain is profiled that would run without end.
const LONG_ENOUGH: Duration = Duration::from_secs(5);
/// Packets per second that are generated for a device that would read a capture, where there is none.
const RATE: u64 = 2_000_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo profile configs/antiddos.toml --lanes 2
  rheo profile configs/bridge.toml --input in.pcap --lanes 8 --json
  # the instance that runs
  rheo profile
  rheo profile --control /run/rheo/nat.sock --over 10s

With a configuration, the chain runs as `rheo run` would run it, for 5 s unless the input or --duration ends it,
and the cause of every abort is noted; a device that reads a capture gets generated packets where none is
given. Of a running instance, which notes the cause of one abort in 256, conflicts from now on are reported.

A rate to expect holds for the same lanes, as if every attempt took as long: see docs/profiler.md.")]
pub(crate) struct Args {
    /// The configuration to run; without it, a running instance is profiled.
    config: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Look at a running instance for this long, up to 1min.
    #[arg(long, value_name = "TIME", default_value = "2s", conflicts_with = "config",
          value_parser = rheostat_base::unit::parse_duration)]
    over: Duration,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs or asks, and prints.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let (profile, sound) = match &args.config {
        Some(path) => of_run(app, load(app, path, args.overrides.to_overrides())?)?,
        None => (ask(args)?, true),
    };
    if args.json {
        out!("{}", serde_json::to_string(&profile).expect("metrics are always JSON"));
    } else {
        out!("{profile}");
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ask(args: &Args) -> Result<ScalingProfile, Error> {
    let over_ms = args.over.as_millis().try_into().unwrap_or(u64::MAX);
    match args.target.ask(&Request::Profile(ProfileRequest { over_ms: Some(over_ms) }))? {
        Reply::Profile(profile) => Ok(*profile),
        reply => unreachable!("a profile was asked for, not {reply:?}"),
    }
}

/// The configuration, with generated packets where it names no captures, and an end.
fn load(app: &App, path: &std::path::Path, mut overrides: Overrides) -> Result<Config, Error> {
    overrides.usual_duration = Some(LONG_ENOUGH);
    let (mut config, mut warnings) =
        Config::load_for(path, &overrides, &ThisMachine, &app.registry)?;
    if config.serve.is_some() {
        return Err(Error::Service);
    }
    if config.check_inputs().is_err() {
        let is_unnamed =
            |device: &&DeviceConfig| device.facts().reads_capture && device.input().is_none();
        let unnamed = config.devices.iter().filter(is_unnamed);
        overrides.devices.extend(unnamed.map(|device| DeviceOverride {
            name: device.name.clone(),
            kind: KindOverride::Sim(RATE),
        }));
        (config, warnings) = Config::load_for(path, &overrides, &ThisMachine, &app.registry)?;
    }
    if !warnings.is_empty() {
        out::report(&warnings);
    }
    Ok(config)
}

/// Runs the chain; the profile, and whether all invariants held and all files are complete.
fn of_run(app: &App, config: Config) -> Result<(ScalingProfile, bool), Error> {
    let functions: Vec<_> =
        config.chain.iter().map(|function| function.name().to_owned()).collect();
    let finished =
        run::carry_out(app, config, Quiet::Yes, Some(1), &AttachmentArgs::default(), None)?;
    let is_complete = finished.incomplete().is_empty();
    let Finished { report, objects, .. } = finished;
    for violation in &report.violations {
        err!("broken invariant: {violation}");
    }
    let shared = objects.map(|objects| (objects.infos(), objects.profile()));
    let profile = ScalingProfile::of(&Observed {
        functions: &functions,
        seconds: report.last.seconds,
        lanes: &report.last.lanes,
        shared: shared.as_ref().map(|(infos, profile)| (infos.as_slice(), profile)),
    });
    Ok((profile, report.violations.is_empty() && is_complete))
}
