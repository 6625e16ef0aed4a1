//! What a mix can be told.

use std::time::Duration;

use thiserror::Error;

/// The settings of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct MixConfig {
    /// Flows under way at any time, up to 10 million (a flow takes 36 bytes, and 4 to 8 for the
    /// wheel).
    pub flows: u32,
    /// Packets per second, all flows together.
    pub packets_per_second: u64,
    /// The share of flows that use IPv6.
    pub ipv6_share: f64,
    /// The exponent of the power law that flows of more than 30 packets follow; more than 0.
    pub zipf: f64,
    /// The longest flow, in packets.
    pub longest: u32,
    /// Whether only clients send, at the whole rate, for servers that answer as [`crate::EchoServer`] does. Of flows that
    /// servers open, nothing is sent.
    pub clients_only: bool,
    /// The seed of all random choices.
    pub seed: u64,
    /// Ends the mix after this many packets.
    pub packets: Option<u64>,
    /// Ends the mix after this long.
    pub duration: Option<Duration>,
}

/// Why there is no such mix.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum MixError {
    /// No flows, or more than memory should hold.
    #[error("{0} concurrent flows: 1 to 10000000 are possible")]
    Flows(u32),
    /// No packets would ever come.
    #[error("a rate of 0 packets per second")]
    Rate,
    /// Not a share.
    #[error("an IPv6 share of {0}: it lies between 0 and 1")]
    Ipv6Share(f64),
    /// Not a usable exponent.
    #[error("a Zipf exponent of {0}: it lies above 0 and at most at 10")]
    Zipf(f64),
    /// Too short for the tail to exist.
    #[error("a longest flow of {0} packets: at least 31 are needed for the tail")]
    Longest(u32),
}

impl Default for MixConfig {
    fn default() -> MixConfig {
        MixConfig {
            flows: 65_536,
            packets_per_second: 1_000_000,
            ipv6_share: 0.1,
            zipf: 1.1,
            longest: 100_000,
            clients_only: false,
            seed: 1,
            packets: None,
            duration: None,
        }
    }
}

impl MixConfig {
    pub(super) fn check(&self) -> Result<(), MixError> {
        if self.flows == 0 || self.flows > 10_000_000 {
            return Err(MixError::Flows(self.flows));
        }
        if self.packets_per_second == 0 {
            return Err(MixError::Rate);
        }
        if !(0.0..=1.0).contains(&self.ipv6_share) {
            return Err(MixError::Ipv6Share(self.ipv6_share));
        }
        if !(self.zipf > 0.0 && self.zipf <= 10.0) {
            return Err(MixError::Zipf(self.zipf));
        }
        if self.longest < 31 {
            return Err(MixError::Longest(self.longest));
        }
        Ok(())
    }
}
