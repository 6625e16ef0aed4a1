//! A capture played again and again, at another rate, by other hosts each time.
//!
//! RSS++ (Barbette, Katsikas, Maguire, Kostić, CoNEXT '19, section 5.1) forged a faster trace from a slow
//! one by playing four windows of it in parallel, with flows rewritten so that none collide, and looped it
//! (section 5.7). So it is here: each loop, and each of several copies that are played at once, gets names of
//! its own ([`Names`]).

mod capture;
mod config;
mod names;
mod recording;
mod renaming;
#[cfg(test)]
mod tests;
mod track;

use std::sync::Arc;

pub use capture::CaptureReel;
pub use config::ReplayConfig;
pub use names::Names;
pub use recording::Recording;

use crate::SourceError;
use crate::merged::Merged;
use rheostat_io::{Arrival, Source};
use track::{Measure, Track};

/// Packets that can be played from the beginning as often as wanted.
pub trait Reel: Send + Sync {
    /// The packets, from the first one on, the same each time.
    fn play(&self) -> Box<dyn Source>;
}

/// The packets of a reel, repeated.
///
/// Times are those of the capture, scaled so that the average over a loop is the rate asked for. Copies
/// start at places of the capture that lie evenly apart, so that they do not keep step.
pub struct Replay {
    tracks: Merged<Track>,
    /// Packets that will have been played in the end, if there is one.
    total: Option<u64>,
    played: u64,
}

impl Replay {
    /// Reads `reel` once to measure it, and plays it as `config` states; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense, or a reel without packets.
    pub fn new(reel: &Arc<dyn Reel>, config: &ReplayConfig) -> Result<Replay, SourceError> {
        config.check()?;
        let measure = Measure::of(&**reel, config.longest_gap);
        if measure.packets == 0 {
            return Err(SourceError::Empty);
        }
        let tracks = (0..config.copies).map(|copy| Track::new(reel.clone(), measure, config, copy));
        let total = config.loops.map(|loops| {
            loops.saturating_mul(measure.packets).saturating_mul(config.copies.into())
        });
        Ok(Replay { tracks: Merged::new(tracks), total, played: 0 })
    }
}

impl Source for Replay {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.tracks.next(frame)?;
        self.played += 1;
        Some(arrival)
    }

    fn progress(&self) -> Option<f64> {
        self.total.map(|total| self.played as f64 / total.max(1) as f64)
    }
}
