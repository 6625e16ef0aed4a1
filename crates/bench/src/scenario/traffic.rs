//! The packets of a scenario.

use std::path::Path;

use rheostat_traffic::{Mix, MixConfig, Source};
use serde::Deserialize;

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
    },
}

fn longest() -> u32 {
    MixConfig::default().longest
}

fn zipf() -> f64 {
    MixConfig::default().zipf
}

impl Traffic {
    /// A source of these packets that never ends, at `packets_per_second` on average.
    ///
    /// # Errors
    /// [`BenchError`] when the traffic cannot be made.
    pub fn source(
        &self,
        packets_per_second: u64,
        seed: u64,
    ) -> Result<Box<dyn Source>, BenchError> {
        match *self {
            Traffic::Mix { flows, zipf, longest } => {
                let config = MixConfig {
                    flows,
                    zipf,
                    longest,
                    packets_per_second,
                    seed,
                    ..MixConfig::default()
                };
                Ok(Box::new(Mix::new(config)?))
            }
        }
    }

    /// Files are named as seen from `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        let _ = folder;
    }

    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        let Traffic::Mix { flows, zipf, longest } = *self;
        Mix::new(MixConfig { flows, zipf, longest, ..MixConfig::default() })
            .err()
            .map(|error| ("traffic", error.to_string()))
    }
}
