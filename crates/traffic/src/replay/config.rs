//! What a replay can be told.

use std::time::Duration;

use crate::SourceError;

/// The settings of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayConfig {
    /// Packets per second of all copies together, averaged over a loop.
    pub packets_per_second: u64,
    /// How often each copy is played; without end if `None`.
    pub loops: Option<u64>,
    /// Copies played in parallel, each by other hosts.
    pub copies: u16,
    /// Pauses of the capture that are longer count as this long.
    pub longest_gap: Duration,
    /// What the hosts' names are drawn from.
    pub seed: u64,
}

impl Default for ReplayConfig {
    fn default() -> ReplayConfig {
        ReplayConfig {
            packets_per_second: 1_000_000,
            loops: None,
            copies: 1,
            longest_gap: Duration::from_secs(1),
            seed: 1,
        }
    }
}

impl ReplayConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SourceError`] for those that make no sense.
    pub fn check(&self) -> Result<(), SourceError> {
        if self.packets_per_second == 0 {
            return Err(SourceError::Rate);
        }
        if !(1..=256).contains(&self.copies) {
            return Err(SourceError::Copies(self.copies));
        }
        Ok(())
    }
}
