//! What a flash crowd can be told.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::SourceError;
use crate::usual::{Usual, check_rate};

/// The settings of a flash crowd.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashCrowdConfig {
    /// Packets per second in the long run. Of a surge that does not come again, the long run knows nothing:
    /// then this is the usual load.
    pub packets_per_second: u64,
    /// The load in a surge is this many times the usual one.
    pub factor: f64,
    /// When the first surge begins.
    pub at: Duration,
    /// How long a surge lasts.
    pub lasting: Duration,
    /// From the beginning of a surge to that of the next; only one comes if `None`.
    pub every: Option<Duration>,
    /// Visits under way at a time in a surge, up to 10 million. The more, the longer each takes.
    pub visitors: u32,
    /// Where the crowd goes. Visitors come from 10.0.0.0/8 or fd00::/8.
    pub service: SocketAddr,
    /// What goes on all the time.
    pub usual: Usual,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for FlashCrowdConfig {
    fn default() -> FlashCrowdConfig {
        FlashCrowdConfig {
            packets_per_second: 10_000,
            factor: 200.0,
            at: Duration::from_secs(1),
            lasting: Duration::from_secs(2),
            every: None,
            visitors: 10_000,
            // TEST-NET-2 (RFC 5737).
            service: SocketAddr::from((Ipv4Addr::new(198, 51, 100, 1), 443)),
            usual: Usual::default(),
            seed: 1,
        }
    }
}

impl FlashCrowdConfig {
    /// Packets per second between surges.
    pub fn usual_rate(&self) -> f64 {
        let share = self.every.map_or(0.0, |every| self.lasting.div_duration_f64(every));
        self.packets_per_second as f64 / (1.0 + (self.factor - 1.0) * share)
    }

    pub(super) fn check(&self) -> Result<(), SourceError> {
        check_rate(self.packets_per_second)?;
        if !(self.factor > 1.0 && self.factor <= 100_000.0) {
            return Err(SourceError::Factor(self.factor));
        }
        if !(1..=10_000_000).contains(&self.visitors) {
            return Err(SourceError::Flows(self.visitors));
        }
        let (lasting, every) = (self.lasting, self.every.unwrap_or(Duration::MAX));
        if lasting.is_zero() || lasting >= every {
            return Err(SourceError::Surge { lasting, every });
        }
        Ok(())
    }
}
