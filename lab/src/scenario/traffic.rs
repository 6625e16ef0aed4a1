//! The packets of a scenario.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rheostat_traffic::{
    Attack, AttackConfig, AttackKind, CaptureReel, Elephant, ElephantConfig, Exchanges,
    ExchangesConfig, FlashCrowd, FlashCrowdConfig, Imix, ImixConfig, Mix, MixConfig, Reel, Replay,
    ReplayConfig, Source, SourceError, Usual,
};
use serde::Deserialize;

use super::quantity;
use crate::error::BenchError;

/// Which packets arrive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Traffic {
    /// The synthetic internet mix.
    Mix {
        /// Flows under way at any time.
        flows: u32,
        /// The exponent of the tail of flow sizes.
        #[serde(default = "zipf")]
        zipf: f64,
        /// The longest flow, in packets.
        #[serde(default = "longest")]
        longest: u32,
        /// The share of flows over IPv6.
        #[serde(default = "ipv6_share")]
        ipv6_share: f64,
    },
    /// A capture in a loop, with other hosts each time.
    Replay {
        /// The capture, as seen from the folder of the scenario.
        file: PathBuf,
        /// Copies played in parallel, each by other hosts.
        #[serde(default = "copies")]
        copies: u16,
        /// Pauses of the capture that are longer count as this long.
        #[serde(default = "longest_gap", with = "quantity::duration")]
        longest_gap: Duration,
    },
    /// Packets of three sizes, in equally popular flows.
    Imix {
        /// Flows.
        flows: u32,
        /// The share of flows over IPv6.
        #[serde(default)]
        ipv6_share: f64,
    },
    /// Exchanges of datagrams that go on for ever, by Zipf's law.
    Exchanges {
        /// Flows.
        flows: u32,
        /// The exponent of Zipf's law; 0 for flows that are alike.
        zipf: f64,
        /// Packets of a flow that arrive together.
        #[serde(default = "burst")]
        burst: u32,
        /// Bytes of each frame.
        #[serde(default = "size")]
        size: usize,
        /// The share of the packets that is signalling, on a port of its own.
        #[serde(default)]
        signalling: f64,
    },
    /// One flow that is a great part of the traffic, over the mix.
    Elephant {
        /// Its share of the packets.
        share: f64,
        /// Whether it uses IPv6.
        #[serde(default)]
        ipv6: bool,
        /// Flows of the mix under way at any time.
        flows: u32,
        /// The exponent of the tail of their sizes.
        #[serde(default = "zipf")]
        zipf: f64,
        /// The share of them over IPv6.
        #[serde(default = "ipv6_share")]
        ipv6_share: f64,
    },
    /// The mix, and at times many new connections to one service.
    FlashCrowd {
        /// The load in a surge is this many times that between surges.
        factor: f64,
        /// When the first surge begins, the warm-up included.
        #[serde(with = "quantity::duration")]
        at: Duration,
        /// How long a surge lasts.
        #[serde(with = "quantity::duration")]
        lasting: Duration,
        /// From the beginning of a surge to that of the next; only one comes without it.
        #[serde(default, with = "quantity::optional_duration")]
        every: Option<Duration>,
        /// Visits under way at a time in a surge.
        #[serde(default = "visitors")]
        visitors: u32,
        /// Where the crowd goes.
        #[serde(default = "service")]
        service: SocketAddr,
        /// Flows of the mix under way at any time.
        flows: u32,
        /// The exponent of the tail of their sizes.
        #[serde(default = "zipf")]
        zipf: f64,
        /// The share of them over IPv6.
        #[serde(default = "ipv6_share")]
        ipv6_share: f64,
    },
    /// An attack over the mix.
    Attack {
        /// Which.
        attack: AttackKind,
        /// Its share of the packets.
        share: f64,
        /// The service attacked.
        #[serde(default = "target")]
        target: SocketAddr,
        /// Flows of the mix under way at any time.
        flows: u32,
        /// The exponent of the tail of their sizes.
        #[serde(default = "zipf")]
        zipf: f64,
        /// The share of them over IPv6.
        #[serde(default = "ipv6_share")]
        ipv6_share: f64,
    },
}

fn longest() -> u32 {
    MixConfig::default().longest
}

fn zipf() -> f64 {
    Usual::default().zipf
}

fn ipv6_share() -> f64 {
    Usual::default().ipv6_share
}

fn burst() -> u32 {
    ExchangesConfig::default().burst
}

fn size() -> usize {
    ExchangesConfig::default().size
}

fn copies() -> u16 {
    ReplayConfig::default().copies
}

fn longest_gap() -> Duration {
    ReplayConfig::default().longest_gap
}

fn visitors() -> u32 {
    FlashCrowdConfig::default().visitors
}

fn service() -> SocketAddr {
    FlashCrowdConfig::default().service
}

fn target() -> SocketAddr {
    AttackConfig::default().target
}

impl Traffic {
    /// A source of these packets that never ends, at `packets_per_second` on average: over a loop of a
    /// capture, over all the time from surge to surge, and between surges that do not come again.
    ///
    /// # Errors
    /// [`BenchError`] when the traffic cannot be made, or the capture not be read.
    pub fn source(
        &self,
        packets_per_second: u64,
        seed: u64,
    ) -> Result<Box<dyn Source>, BenchError> {
        match self {
            &Traffic::Replay { ref file, copies, longest_gap } => {
                let reel: Arc<dyn Reel> = Arc::new(CaptureReel::open(file)?);
                let config =
                    ReplayConfig { packets_per_second, loops: None, copies, longest_gap, seed };
                Ok(Box::new(Replay::new(&reel, &config)?))
            }
            synthetic => Ok(synthetic.generated(packets_per_second, seed)?),
        }
    }

    /// A capture, with pauses cut short as by default.
    pub(super) fn replay(file: PathBuf, copies: u16) -> Traffic {
        Traffic::Replay { file, copies, longest_gap: longest_gap() }
    }

    /// With so many times the flows. Captures have those that they have.
    pub(super) fn with_more_flows(&self, times: u16) -> Traffic {
        let mut traffic = self.clone();
        match &mut traffic {
            Traffic::Mix { flows, .. }
            | Traffic::Imix { flows, .. }
            | Traffic::Exchanges { flows, .. }
            | Traffic::Elephant { flows, .. }
            | Traffic::FlashCrowd { flows, .. }
            | Traffic::Attack { flows, .. } => *flows = flows.saturating_mul(times.into()),
            Traffic::Replay { .. } => {}
        }
        traffic
    }

    /// Whether another rate makes the same packets at other times, all in proportion.
    pub(crate) fn stretches(&self) -> bool {
        match self {
            Traffic::Mix { .. }
            | Traffic::Imix { .. }
            | Traffic::Exchanges { .. }
            | Traffic::Elephant { .. } => true,
            Traffic::FlashCrowd { .. } | Traffic::Attack { .. } | Traffic::Replay { .. } => false,
        }
    }

    /// Files are named as seen from `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Traffic::Replay { file, .. } = self {
            *file = folder.join(&*file);
        }
    }

    /// What is wrong with it. Whether a capture can be read shows when it is.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        let checked = match self {
            &Traffic::Replay { copies, longest_gap, .. } => {
                ReplayConfig { copies, longest_gap, ..ReplayConfig::default() }.check()
            }
            synthetic => synthetic.generated(1_000_000, 1).map(drop),
        };
        checked.err().map(|error| ("traffic", error.to_string()))
    }

    /// Everything but a replay, which has a file.
    fn generated(
        &self,
        packets_per_second: u64,
        seed: u64,
    ) -> Result<Box<dyn Source>, SourceError> {
        Ok(match *self {
            Traffic::Mix { flows, zipf, longest, ipv6_share } => Box::new(Mix::new(MixConfig {
                flows,
                zipf,
                longest,
                ipv6_share,
                packets_per_second,
                seed,
                ..MixConfig::default()
            })?),
            Traffic::Imix { flows, ipv6_share } => {
                Box::new(Imix::new(ImixConfig { packets_per_second, flows, ipv6_share, seed })?)
            }
            Traffic::Exchanges { flows, zipf, burst, size, signalling } => {
                Box::new(Exchanges::new(ExchangesConfig {
                    packets_per_second,
                    flows,
                    zipf,
                    burst,
                    size,
                    signalling,
                    seed,
                })?)
            }
            Traffic::Elephant { share, ipv6, flows, zipf, ipv6_share } => {
                let usual = Usual { flows, zipf, ipv6_share };
                let config = ElephantConfig { packets_per_second, share, ipv6, usual, seed };
                Box::new(Elephant::new(&config)?)
            }
            Traffic::FlashCrowd {
                factor,
                at,
                lasting,
                every,
                visitors,
                service,
                flows,
                zipf,
                ipv6_share,
            } => Box::new(FlashCrowd::new(&FlashCrowdConfig {
                packets_per_second,
                factor,
                at,
                lasting,
                every,
                visitors,
                service,
                usual: Usual { flows, zipf, ipv6_share },
                seed,
            })?),
            Traffic::Attack { attack: kind, share, target, flows, zipf, ipv6_share } => {
                let usual = Usual { flows, zipf, ipv6_share };
                let config = AttackConfig { packets_per_second, kind, share, target, usual, seed };
                Box::new(Attack::new(&config)?)
            }
            Traffic::Replay { .. } => unreachable!("a replay is not generated"),
        })
    }
}

#[cfg(test)]
mod tests;
