//! The usual traffic beneath something special.

use crate::{Mix, MixConfig, SourceError};

/// The mix that goes on while an elephant, a crowd or an attacker is there as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Usual {
    /// Flows under way at any time.
    pub flows: u32,
    /// The exponent of the tail of flow sizes.
    pub zipf: f64,
    /// The share of flows that use IPv6.
    pub ipv6_share: f64,
}

impl Default for Usual {
    fn default() -> Usual {
        let MixConfig { flows, zipf, ipv6_share, .. } = MixConfig::default();
        Usual { flows, zipf, ipv6_share }
    }
}

/// Numbers of flows from here on have other endpoints than those of the mix.
pub(crate) const NUMBERS: u64 = 1 << 37;

impl Usual {
    /// The mix at this rate.
    pub(crate) fn mix(&self, per_second: f64, seed: u64) -> Result<Mix, SourceError> {
        let Usual { flows, zipf, ipv6_share } = *self;
        let packets_per_second = (per_second.round() as u64).max(1);
        let config =
            MixConfig { flows, zipf, ipv6_share, packets_per_second, seed, ..MixConfig::default() };
        Ok(Mix::new(config)?)
    }
}

/// Checks what several sources have in common: the rate.
pub(crate) fn check_rate(packets_per_second: u64) -> Result<(), SourceError> {
    if packets_per_second == 0 { Err(SourceError::Rate) } else { Ok(()) }
}

/// Checks that `value` is a part of the whole, and neither nothing nor all of it.
pub(crate) fn check_share(what: &'static str, value: f64) -> Result<(), SourceError> {
    let inside = value > 0.0 && value < 1.0;
    if inside { Ok(()) } else { Err(SourceError::Share { what, value }) }
}
