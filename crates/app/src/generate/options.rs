//! Which traffic, and the options of each kind.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use rheostat_base::unit::{parse_count, parse_duration, parse_packet_rate};
use rheostat_traffic::{AttackKind, RateStep, Statistics};
use thiserror::Error;

/// Kinds of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TrafficKind {
    /// The synthetic internet mix.
    Mix,
    /// A capture at a rate of choice, in loops and copies with other hosts each.
    Replay,
    /// IP packets of 40, 576 and 1,500 bytes as 7 : 4 : 1.
    Imix,
    /// One flow that is a great part of the traffic, over the mix.
    Elephant,
    /// The mix, and for some time hundreds of times the load by new connections to one service.
    FlashCrowd,
    /// An attack over the mix.
    Attack,
    /// Connections from outside to one service, and its answers.
    Visitors,
}

/// Attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AttackName {
    /// Connection attempts from random sources.
    SynFlood,
    /// Datagrams from random sources to all ports of one host.
    UdpFlood,
    /// One host tries eight ports of 65,536 others.
    Scan,
    /// Whole connections of 256 hosts to one service.
    Service,
}

/// What traffic is made of. An option that the kind has no use for is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The kind of traffic; a capture given by --input alone is taken as it is.
    #[arg(long, value_name = "KIND")]
    pub(super) traffic: Option<TrafficKind>,
    /// The capture to replay, or to describe as it is.
    #[arg(long, value_name = "FILE")]
    pub(super) input: Option<PathBuf>,
    /// Packets per second, all together, on average [default: 1Mpps].
    #[arg(long, value_name = "RATE", value_parser = parse_packet_rate)]
    pub(super) rate: Option<u64>,
    /// Changes the rate from a time on: 2s=3 stands for three times as much after two seconds. May be repeated.
    #[arg(long = "step", value_name = "TIME=FACTOR", value_parser = step)]
    pub(super) steps: Vec<RateStep>,
    /// The seed of all random choices [default: 1].
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,
    /// Flows: of the mix under way at any time, of IMIX all [default: 64k].
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub(super) flows: Option<u64>,
    /// The share of flows over IPv6 [default: 0.1].
    #[arg(long, value_name = "SHARE")]
    pub(super) ipv6_share: Option<f64>,
    /// The exponent of the tail of flow sizes [default: 1.1].
    #[arg(long, value_name = "EXPONENT")]
    pub(super) zipf: Option<f64>,
    /// The longest flow of the mix, in packets [default: 100k].
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub(super) longest: Option<u64>,
    /// The elephant's share of the packets [default: 0.2], or the attack's [default: 0.5].
    #[arg(long, value_name = "SHARE")]
    pub(super) share: Option<f64>,
    /// The elephant uses IPv6.
    #[arg(long)]
    pub(super) ipv6: bool,
    /// The load in a surge is this many times the usual one [default: 200].
    #[arg(long, value_name = "TIMES")]
    pub(super) factor: Option<f64>,
    /// When the first surge begins [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) at: Option<Duration>,
    /// How long a surge lasts [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) lasting: Option<Duration>,
    /// From the beginning of a surge to that of the next; only one comes without it.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) every: Option<Duration>,
    /// Visits under way at a time: in a surge [default: 10k], or of visitors [default: 100].
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub(super) visitors: Option<u64>,
    /// The attack [default: syn-flood].
    #[arg(long, value_name = "ATTACK")]
    pub(super) attack: Option<AttackName>,
    /// Where a crowd or visitors [default: 198.51.100.1:443] or an attack [default: 10.255.0.1:443] go.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) target: Option<SocketAddr>,
    /// Where answers to visitors come from: the server behind a NAT [default: the target].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) server: Option<SocketAddr>,
    /// How often a capture is played; without it, up to --packets or --duration.
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub(super) loops: Option<u64>,
    /// Copies of a capture that are played in parallel [default: 1].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) copies: Option<u16>,
    /// Gaps of a capture that are longer count as this long [default: 1s when replayed, 1h when described].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) longest_gap: Option<Duration>,
}

/// Why options do not go together.
#[derive(Debug, Error)]
pub(crate) enum OptionError {
    /// The option means nothing here.
    #[error("{option} is of no use with {kind}; it is for {}", .of.join(", "))]
    Useless {
        /// The option.
        option: &'static str,
        /// The requested traffic.
        kind: String,
        /// The kinds that have it.
        of: Vec<String>,
    },
    /// There is nothing to replay.
    #[error("--traffic replay needs a capture: give --input FILE")]
    NoInput,
}

const MIXES: &[TrafficKind] =
    &[TrafficKind::Mix, TrafficKind::Elephant, TrafficKind::FlashCrowd, TrafficKind::Attack];
const FLOWING: &[TrafficKind] = &[
    TrafficKind::Mix,
    TrafficKind::Elephant,
    TrafficKind::FlashCrowd,
    TrafficKind::Attack,
    TrafficKind::Imix,
];

impl Options {
    /// The requested kind; none for a capture as it is.
    pub(super) fn kind(&self) -> Option<TrafficKind> {
        self.traffic.or(if self.input.is_some() { None } else { Some(TrafficKind::Mix) })
    }

    /// Packets per second.
    pub(super) fn rate(&self) -> u64 {
        self.rate.unwrap_or(1_000_000)
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Refuses options that the requested traffic does not use.
    pub(super) fn check(&self) -> Result<(), OptionError> {
        let kind = self.kind();
        let any = TrafficKind::value_variants();
        let given = [
            ("--input", self.input.is_some() && kind.is_some(), &[TrafficKind::Replay][..]),
            ("--rate", self.rate.is_some(), any),
            ("--step", !self.steps.is_empty(), any),
            ("--seed", self.seed.is_some(), any),
            ("--flows", self.flows.is_some(), FLOWING),
            ("--ipv6-share", self.ipv6_share.is_some(), FLOWING),
            ("--zipf", self.zipf.is_some(), MIXES),
            ("--longest", self.longest.is_some(), &[TrafficKind::Mix]),
            ("--share", self.share.is_some(), &[TrafficKind::Elephant, TrafficKind::Attack]),
            ("--ipv6", self.ipv6, &[TrafficKind::Elephant]),
            ("--factor", self.factor.is_some(), &[TrafficKind::FlashCrowd]),
            ("--at", self.at.is_some(), &[TrafficKind::FlashCrowd]),
            ("--lasting", self.lasting.is_some(), &[TrafficKind::FlashCrowd]),
            ("--every", self.every.is_some(), &[TrafficKind::FlashCrowd]),
            (
                "--visitors",
                self.visitors.is_some(),
                &[TrafficKind::FlashCrowd, TrafficKind::Visitors],
            ),
            ("--attack", self.attack.is_some(), &[TrafficKind::Attack]),
            (
                "--target",
                self.target.is_some(),
                &[TrafficKind::FlashCrowd, TrafficKind::Attack, TrafficKind::Visitors],
            ),
            ("--server", self.server.is_some(), &[TrafficKind::Visitors]),
            ("--loops", self.loops.is_some(), &[TrafficKind::Replay]),
            ("--copies", self.copies.is_some(), &[TrafficKind::Replay]),
            ("--longest-gap", self.longest_gap.is_some() && kind.is_some(), &[TrafficKind::Replay]),
        ];
        let fits = |of: &[TrafficKind]| kind.is_some_and(|kind| of.contains(&kind));
        match given.into_iter().find(|(_, given, of)| *given && !fits(of)) {
            Some((option, _, of)) => Err(OptionError::Useless {
                option,
                kind: kind.map_or("a capture as it is".into(), |kind| {
                    format!("--traffic {}", name(kind))
                }),
                of: of.iter().map(|kind| format!("--traffic {}", name(*kind))).collect(),
            }),
            None if kind == Some(TrafficKind::Replay) && self.input.is_none() => {
                Err(OptionError::NoInput)
            }
            None => Ok(()),
        }
    }

    /// Statistics for what is made.
    pub(super) fn statistics(&self) -> Statistics {
        match (self.kind(), self.longest_gap) {
            (None, Some(gap)) => Statistics::with_longest_gap(gap),
            _ => Statistics::default(),
        }
    }
}

fn name(kind: TrafficKind) -> String {
    kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl From<AttackName> for AttackKind {
    fn from(name: AttackName) -> AttackKind {
        match name {
            AttackName::SynFlood => AttackKind::SynFlood,
            AttackName::UdpFlood => AttackKind::UdpFlood,
            AttackName::Scan => AttackKind::Scan,
            AttackName::Service => AttackKind::Service,
        }
    }
}

fn step(text: &str) -> Result<RateStep, String> {
    let (at, factor) =
        text.split_once('=').ok_or("write a time and a factor: 2s=3 triples the rate after 2 s")?;
    let at = parse_duration(at).map_err(|error| error.to_string())?;
    let factor = factor.parse().map_err(|_| format!("`{factor}` is no number"))?;
    Ok(RateStep { at, factor })
}
