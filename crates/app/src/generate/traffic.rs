//! From options to a source that ends.

use std::path::Path;
use std::sync::Arc;

use rheostat_io::CaptureSource;
use rheostat_traffic::{
    Attack, AttackConfig, AttackKind, CaptureReel, Elephant, ElephantConfig, FlashCrowd,
    FlashCrowdConfig, Imix, ImixConfig, Limited, Mix, MixConfig, Reel, Replay, ReplayConfig,
    Source, SourceError, Stepped, Usual, Visitors, VisitorsConfig,
};

use super::options::{OptionError, Options, TrafficKind};
use super::{Args, Error};

/// Packets of endless traffic, unless a limit is given.
const PACKETS: u64 = 100_000;

/// What is to be written or described.
pub(super) struct Opened {
    pub(super) source: Box<dyn Source>,
    /// What was wrong with the capture it comes from, if it does, once it has been read.
    pub(super) warnings: Box<dyn Fn() -> Vec<String>>,
}

/// Opens the requested traffic, with its limits.
pub(super) fn open(args: &Args) -> Result<Opened, Error> {
    let options = &args.options;
    let Opened { source, warnings } = match (options.kind(), &options.input) {
        (None, Some(file)) => {
            let source = CaptureSource::open(file)?;
            let status = source.status();
            Opened { source: Box::new(source), warnings: Box::new(move || status.warnings()) }
        }
        (Some(TrafficKind::Replay), Some(file)) => replay(options, file)?,
        (Some(TrafficKind::Visitors), _) => Opened {
            source: Box::new(Visitors::new(visitors(options))?),
            warnings: Box::new(Vec::new),
        },
        (Some(kind), _) => {
            Opened { source: generated(kind, options)?, warnings: Box::new(Vec::new) }
        }
        (None, None) => return Err(OptionError::NoInput.into()),
    };
    let source: Box<dyn Source> = match options.steps.is_empty() {
        true => source,
        false => Box::new(Stepped::new(source, options.steps.clone())?),
    };
    let endless = options.kind().is_some() && options.loops.is_none() && args.duration.is_none();
    let packets = args.packets.or(endless.then_some(PACKETS));
    Ok(Opened { source: Box::new(Limited::new(source, packets, args.duration)), warnings })
}

fn replay(options: &Options, file: &Path) -> Result<Opened, Error> {
    let capture = Arc::new(CaptureReel::open(file)?);
    let reel: Arc<dyn Reel> = capture.clone();
    let usual = ReplayConfig::default();
    let config = ReplayConfig {
        packets_per_second: options.rate(),
        loops: options.loops,
        copies: options.copies.unwrap_or(usual.copies),
        longest_gap: options.longest_gap.unwrap_or(usual.longest_gap),
        seed: options.seed(),
    };
    let source = Box::new(Replay::new(&reel, &config)?);
    Ok(Opened { source, warnings: Box::new(move || capture.warnings()) })
}

fn visitors(options: &Options) -> VisitorsConfig {
    let usual = VisitorsConfig::default();
    VisitorsConfig {
        packets_per_second: options.rate(),
        at_once: options
            .visitors
            .map_or(usual.at_once, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        target: options.target.unwrap_or(usual.target),
        server: options.server,
        seed: options.seed(),
    }
}

/// Traffic that is not read from a file.
fn generated(kind: TrafficKind, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    let mix = MixConfig::default();
    // More than fit are more than are possible.
    let number = |given: Option<u64>, usual: u32| {
        given.map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let flows = number(options.flows, mix.flows);
    let ipv6_share = options.ipv6_share.unwrap_or(mix.ipv6_share);
    let zipf = options.zipf.unwrap_or(mix.zipf);
    let usual = Usual { flows, zipf, ipv6_share };
    let (packets_per_second, seed) = (options.rate(), options.seed());
    let (crowd, attack) = (FlashCrowdConfig::default(), AttackConfig::default());
    Ok(match kind {
        TrafficKind::Mix => Box::new(Mix::new(MixConfig {
            flows,
            zipf,
            longest: number(options.longest, mix.longest),
            ipv6_share,
            packets_per_second,
            seed,
            ..mix
        })?),
        TrafficKind::Imix => {
            Box::new(Imix::new(ImixConfig { packets_per_second, flows, ipv6_share, seed })?)
        }
        TrafficKind::Elephant => Box::new(Elephant::new(&ElephantConfig {
            packets_per_second,
            share: options.share.unwrap_or(ElephantConfig::default().share),
            ipv6: options.ipv6,
            usual,
            seed,
        })?),
        TrafficKind::FlashCrowd => Box::new(FlashCrowd::new(&FlashCrowdConfig {
            packets_per_second,
            factor: options.factor.unwrap_or(crowd.factor),
            at: options.at.unwrap_or(crowd.at),
            lasting: options.lasting.unwrap_or(crowd.lasting),
            every: options.every,
            visitors: number(options.visitors, crowd.visitors),
            service: options.target.unwrap_or(crowd.service),
            usual,
            seed,
        })?),
        TrafficKind::Attack => Box::new(Attack::new(&AttackConfig {
            packets_per_second,
            kind: options.attack.map_or(attack.kind, AttackKind::from),
            share: options.share.unwrap_or(attack.share),
            target: options.target.unwrap_or(attack.target),
            usual,
            seed,
        })?),
        TrafficKind::Replay | TrafficKind::Visitors => {
            unreachable!("they are made from other options")
        }
    })
}
