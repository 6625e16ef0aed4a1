//! A source whose rate changes by steps.

use std::time::Duration;

use rheostat_base::Time;

use crate::SourceError;
use rheostat_io::{Arrival, Source};

/// From a moment on, the rate is another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// When, after zero on the clock of what comes out.
    pub at: Duration,
    /// By what the source's own rate is multiplied from then on. Nothing arrives under a factor of zero.
    pub factor: f64,
}

/// A source on a clock that runs faster and slower: packet by packet the same, only their times are
/// others.
///
/// Between steps, time is stretched evenly, so a Poisson process stays one. What the source sends up to its
/// time `s` has been sent at the time `t` at which the integral of the factor from zero to `t` is `s`: a step
/// cuts through a gap where it lies, and the loop stays open. The factor is 1 up to the first step.
#[derive(Debug)]
pub struct Stepped<S> {
    source: S,
    /// What is still to come, the last one first.
    steps: Vec<RateStep>,
    /// Since when the factor holds: on the clock of what comes out and on the source's, in nanoseconds.
    since: (f64, f64),
    factor: f64,
    last: Time,
}

impl<S: Source> Stepped<S> {
    /// `source` with these steps.
    ///
    /// # Errors
    /// [`SourceError::Order`] unless each step lies after the one before, [`SourceError::Step`] for a factor
    /// that is negative or no number.
    pub fn new(source: S, mut steps: Vec<RateStep>) -> Result<Stepped<S>, SourceError> {
        if let Some(at) = steps.windows(2).position(|pair| pair[1].at <= pair[0].at) {
            return Err(SourceError::Order(at + 1));
        }
        if let Some(step) = steps.iter().find(|s| !(s.factor.is_finite() && s.factor >= 0.0)) {
            return Err(SourceError::Step(step.factor));
        }
        steps.reverse();
        Ok(Stepped { source, steps, since: (0.0, 0.0), factor: 1.0, last: Time::ZERO })
    }

    /// When what the source sends at its time `sent` comes out; `None` when that is never.
    fn place(&mut self, sent: f64) -> Option<f64> {
        while let Some(step) = self.steps.last() {
            let at = step.at.as_nanos() as f64;
            let reached = self.since.1 + (at - self.since.0) * self.factor;
            if sent < reached {
                break;
            }
            self.since = (at, reached);
            self.factor = step.factor;
            self.steps.pop();
        }
        (self.factor > 0.0).then(|| self.since.0 + (sent - self.since.1) / self.factor)
    }
}

impl<S: Source> Source for Stepped<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.source.next(frame)?;
        // Stamps that go back go back no further than to the step before.
        let sent = (arrival.time.as_nanos() as f64).max(self.since.1);
        let time = Time::from_nanos(self.place(sent)? as u64);
        self.last = self.last.max(time);
        Some(Arrival { time: self.last, ..arrival })
    }

    fn is_fed(&self) -> bool {
        self.source.is_fed()
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests;
