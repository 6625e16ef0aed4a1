//! `rheo test CONFIG --capture FILE --against RUNNING`: packets that another configuration decides about differently.

mod captures;
mod differences;
mod inside;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rheostat_cases::{Replay, ReplayError, flow_of_frame};
use rheostat_control::{AnyMachine, Config, LoadError, Overrides};
use rheostat_observe::control::{Reply, Request};
use rheostat_steer::{Prefix, PrefixList};
use thiserror::Error;

use crate::app::App;
use crate::control::{ClientError, Target};
use crate::out;

use captures::{CaptureError, CapturedPackets};
use differences::{Compared, Differences};
use inside::NoInside;

pub(crate) use captures::CaptureArg;

/// Why nothing was compared.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{}: {source}", config.display())]
    Replay { config: PathBuf, source: ReplayError },
    #[error("{0}")]
    Capture(#[from] CaptureError),
    #[error("{0}")]
    NoInside(#[from] NoInside),
    #[error("name one configuration to compare: rheo test CONFIG --capture FILE --against RUNNING")]
    OneConfig,
    #[error(
        "--against needs packets: add --capture FILE, or --capture DEVICE=FILE for each device"
    )]
    NoCapture,
    #[error("--capture belongs to --against RUNNING: a control socket, or another configuration")]
    NoOther,
}

/// Flags of a comparison.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AgainstArgs {
    /// Put the packets of this capture (pcap or pcapng) before both configurations; DEVICE=FILE for packets that arrive at one
    /// device, any number of times.
    #[arg(long = "capture", value_name = "[DEVICE=]FILE")]
    captures: Vec<CaptureArg>,
    /// Compare with the configuration in force of a running instance, by its control socket, or with another file.
    #[arg(long, value_name = "RUNNING")]
    against: Option<PathBuf>,
    /// Hosts inside, which tell the sides of a capture apart; without it, those of the configuration.
    #[arg(long, value_name = "PREFIX")]
    inside: Vec<Prefix>,
    /// Show so many flows of each difference.
    #[arg(long, value_name = "N", default_value_t = 3)]
    examples: usize,
}

impl AgainstArgs {
    /// Whether a comparison is asked for, and not a run of cases.
    pub(crate) fn is_given(&self) -> bool {
        self.against.is_some() || !self.captures.is_empty()
    }
}

/// Compares, and prints the differences. The exit status is that of diff.
pub(crate) fn run(
    app: &App,
    files: &[PathBuf],
    args: &AgainstArgs,
    json: bool,
) -> Result<ExitCode, Error> {
    let Some(against) = &args.against else { return Err(Error::NoOther) };
    if args.captures.is_empty() {
        return Err(Error::NoCapture);
    }
    let [path] = files else { return Err(Error::OneConfig) };
    let new = load(app, path)?;
    let old = other(app, against)?;
    // Of captures that belong to devices, no address is looked at.
    let inside = match args.captures.iter().all(CaptureArg::has_device) {
        true => PrefixList::default(),
        false => inside::prefixes(&new, &args.inside)?,
    };
    let mut packets = CapturedPackets::open(&args.captures, &new, inside)?;
    let replay = |config: &Config, path: &Path| {
        let wrong = |source| Error::Replay { config: path.to_owned(), source };
        Replay::new(&app.registry, config).map_err(wrong)
    };
    let mut replays = (replay(&old, against)?, replay(&new, path)?);
    let mut differences = Differences::new(args.examples);
    while let Some(packet) = packets.next() {
        let (side, time) = (packet.side, packet.time);
        let old = replays.0.packet(side, &packet.frame, time);
        let new = replays.1.packet(side, &packet.frame, time);
        let flow = flow_of_frame(&packet.frame, side);
        differences.add(&Compared { number: packet.number, frame: &packet.frame, flow, old, new });
    }
    let skipped = packets.skipped();
    match json {
        true => out!("{}", differences.to_json(&skipped)),
        false => {
            out!("{} against {}", path.display(), against.display());
            out!("{differences}");
            skipped.iter().for_each(|line| err!("note: {line}"));
        }
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn load(app: &App, path: &Path) -> Result<Config, Error> {
    let (config, warnings) =
        Config::load_for(path, &Overrides::default(), &AnyMachine, &app.registry)?;
    if !warnings.is_empty() {
        out::report(&warnings);
    }
    Ok(config)
}

/// The configuration in force of the instance at a control socket, or that of a file.
fn other(app: &App, path: &Path) -> Result<Config, Error> {
    let is_socket = path.metadata().is_ok_and(|file| file.file_type().is_socket());
    match is_socket {
        true => running(app, path),
        false => load(app, path),
    }
}

/// The configuration in force of a running instance, which is asked for it alone.
fn running(app: &App, socket: &Path) -> Result<Config, Error> {
    let target = Target { control: Some(socket.to_owned()) };
    let reply = target.ask(&Request::Config)?;
    let Reply::Config { text } = reply else {
        unreachable!("the configuration was asked for, not {reply:?}")
    };
    let name = format!("the configuration of {}", socket.display());
    let parsed = Config::parse(&text, &name, &app.registry);
    let (config, _) = parsed.map_err(LoadError::Wrong)?;
    Ok(config)
}
