//! From options to a source that ends.

use std::path::Path;
use std::sync::Arc;

use rheostat_bench::scenario::Traffic;
use rheostat_io::CaptureSource;
use rheostat_traffic::{
    AttackConfig, AttackKind, CaptureReel, ElephantConfig, FlashCrowdConfig, Limited, MixConfig,
    Reel, Replay, ReplayConfig, Source, Stepped, Visitors, VisitorsConfig,
};

use super::Args;
use super::options::{Kind, OptionError, Options};
use crate::failure::Failure;

/// Packets of endless traffic, unless a limit is given.
const PACKETS: u64 = 100_000;

/// What is to be written or described.
pub(super) struct Opened {
    pub(super) source: Box<dyn Source>,
    /// What was wrong with the capture it comes from, if it does, once it has been read.
    pub(super) warnings: Box<dyn Fn() -> Vec<String>>,
}

/// Opens the requested traffic, with its limits.
pub(super) fn open(args: &Args) -> Result<Opened, Failure> {
    let options = &args.options;
    let Opened { source, warnings } = match (options.kind(), &options.input) {
        (None, Some(file)) => {
            let source = CaptureSource::open(file)?;
            let status = source.status();
            Opened { source: Box::new(source), warnings: Box::new(move || status.warnings()) }
        }
        (Some(Kind::Replay), Some(file)) => replay(options, file)?,
        (Some(Kind::Visitors), _) => Opened {
            source: Box::new(Visitors::new(visitors(options))?),
            warnings: Box::new(Vec::new),
        },
        (Some(kind), _) => {
            let source = generated(kind, options).source(options.rate(), options.seed())?;
            Opened { source, warnings: Box::new(Vec::new) }
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

fn replay(options: &Options, file: &Path) -> Result<Opened, Failure> {
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

/// Traffic that is not read from a file, in the terms of scenarios.
fn generated(kind: Kind, options: &Options) -> Traffic {
    let usual = MixConfig::default();
    // More than fit are more than are possible.
    let number = |given: Option<u64>, usual: u32| {
        given.map_or(usual, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let flows = number(options.flows, usual.flows);
    let ipv6_share = options.ipv6_share.unwrap_or(usual.ipv6_share);
    let zipf = options.zipf.unwrap_or(usual.zipf);
    let (crowd, attack) = (FlashCrowdConfig::default(), AttackConfig::default());
    match kind {
        Kind::Mix => {
            let most = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            let longest = options.longest.map_or(usual.longest, most);
            Traffic::Mix { flows, zipf, longest, ipv6_share }
        }
        Kind::Imix => Traffic::Imix { flows, ipv6_share },
        Kind::Elephant => Traffic::Elephant {
            share: options.share.unwrap_or(ElephantConfig::default().share),
            ipv6: options.ipv6,
            flows,
            zipf,
            ipv6_share,
        },
        Kind::FlashCrowd => Traffic::FlashCrowd {
            factor: options.factor.unwrap_or(crowd.factor),
            at: options.at.unwrap_or(crowd.at),
            lasting: options.lasting.unwrap_or(crowd.lasting),
            every: options.every,
            visitors: number(options.visitors, crowd.visitors),
            service: options.target.unwrap_or(crowd.service),
            flows,
            zipf,
            ipv6_share,
        },
        Kind::Attack => Traffic::Attack {
            attack: options.attack.map_or(attack.kind, AttackKind::from),
            share: options.share.unwrap_or(attack.share),
            target: options.target.unwrap_or(attack.target),
            flows,
            zipf,
            ipv6_share,
        },
        Kind::Replay | Kind::Visitors => unreachable!("they are in no scenario"),
    }
}
