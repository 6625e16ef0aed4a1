//! What a policy would do with the packets of a capture.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_control::Config;
use rheostat_control::config::BalanceConfig;
use rheostat_control::config::device::DeviceConfig;
use rheostat_io::{CaptureReader, OpenError, ReadError, is_standard};
use rheostat_observe::explain::{Breakdown, Explanation};
use rheostat_steer::policy::{LaneLoad, Load, LoadSnapshot, ShardLoad};

use super::Error;
use crate::app::App;
use crate::assemble::{self, Layout};
use crate::chains;
use crate::interrupt::StandardInput;
use crate::run::OverrideArgs;
use crate::workers::Workers;

/// Explains what the policy of a configuration would do with the captures of its devices.
pub(super) fn explain(
    app: &App,
    config: &Path,
    overrides: &OverrideArgs,
    load: f64,
) -> Result<Explanation, Error> {
    let (config, _) = Config::load(config, &overrides.to_overrides(), &app.registry)?;
    let load = Load::from_share(load).filter(|load| *load > Load::ZERO).ok_or(Error::Load)?;
    config.check_inputs()?;
    let inputs = config.devices.iter().map(input).collect::<Result<Vec<_>, _>>()?;
    let chain = chains::without_logs(app, &config, 1)?.chain;
    let lanes = Workers::of(&config.workers)?.lanes();
    let Layout { steering, .. } = assemble::lay_out(&config, &chain)?;
    let mut breakdown = Breakdown::new(steering);
    let mut span = Span::default();
    for (device, input) in (0..).map(DeviceId).zip(inputs) {
        let Some(input) = input else { continue };
        count(device, input, &mut breakdown, &mut span)?;
    }
    let snapshot = snapshot(&breakdown, lanes, load, span.length(), &config.balance);
    let mut policy = match overrides.policy {
        Some(_) => config.policy(lanes),
        // A static policy would explain nothing.
        None => config.balance.policy.or_moving().make(&config.settings(lanes)),
    };
    let plan = policy.plan(Time::ZERO, &snapshot);
    let explanation = Explanation::of(policy.name(), &snapshot, &plan, &breakdown);
    Ok(explanation.expect("a plan fits the load it is made for").assuming(load))
}

/// The capture that a device reads; none where a port of a bridge only sends.
fn input(device: &DeviceConfig) -> Result<Option<&Path>, Error> {
    match device.facts().reads_capture {
        true => Ok(device.input()),
        false => Err(Error::NoCapture { device: device.name.clone() }),
    }
}

/// From the first packet to the last.
#[derive(Debug, Default)]
struct Span(Option<(Time, Time)>);

impl Span {
    fn include(&mut self, time: Time) {
        let (first, last) = self.0.unwrap_or((time, time));
        self.0 = Some((first.min(time), last.max(time)));
    }

    /// At least a nanosecond, so that there is a time in which the work was done.
    fn length(&self) -> Duration {
        let length = self.0.map_or(Duration::ZERO, |(first, last)| last.since(first));
        length.max(Duration::from_nanos(1))
    }
}

/// Counts the packets of a capture. What cannot be read is left out with a warning, as in a run.
fn count(
    device: DeviceId,
    input: &Path,
    breakdown: &mut Breakdown,
    span: &mut Span,
) -> Result<(), Error> {
    let path = match is_standard(input) {
        true => Path::new("standard input"),
        false => input,
    };
    let file: io::Result<Box<dyn Read>> = match is_standard(input) {
        true => StandardInput::open().map(|input| Box::new(input) as Box<dyn Read>),
        false => File::open(input).map(|file| Box::new(file) as Box<dyn Read>),
    };
    let file = file.map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    let mut reader = CaptureReader::new(file)
        .map_err(|source| OpenError::Format { path: path.to_owned(), source })?;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                span.include(record.time);
                breakdown.count(device, record.link, record.wire_len as usize, record.bytes);
            }
            Ok(None) => return Ok(()),
            Err(error @ ReadError::UnsupportedLink { .. }) => {
                err!("warning: {}: {error}", path.display());
            }
            Err(error) => {
                err!("warning: {}: {error}", path.display());
                return Ok(());
            }
        }
    }
}

/// The load if every packet costs the same, all lanes work, and each begins with its share of shards.
fn snapshot(
    breakdown: &Breakdown,
    lanes: usize,
    mean: Load,
    length: Duration,
    balance: &BalanceConfig,
) -> LoadSnapshot {
    let whole = mean.part(lanes as u64, 1);
    let all = breakdown.packets().max(1);
    let shards = breakdown.shards().into_iter().enumerate().map(|(shard, packets)| ShardLoad {
        owner: LaneId((shard % lanes) as u16),
        load: whole.part(packets, all),
    });
    let bounds = balance.bounds(lanes);
    let load = LoadSnapshot::new(vec![LaneLoad::ACTIVE; lanes], shards.collect(), bounds, length);
    load.expect("every shard has one of the lanes for its owner")
}
