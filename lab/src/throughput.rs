//! The highest rate at which no packet is lost (RFC 2544, section 26.1, "throughput"; called NDR, non-drop
//! rate, by testers of software), or no more than a given share (PDR, partial drop rate).

use serde::{Deserialize, Serialize};

/// Looks for the highest rate with an acceptable loss by bisection, between a rate that is below it and one
/// that is above. It measures nothing itself: ask for the next rate, try it, and say what was lost.
///
/// A machine that others disturb loses packets at rates that it can do. So a rate fails only if several
/// trials of it fail; it passes with the first that does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The share of packets that may be lost: 0 for the NDR.
    allowed: f64,
    /// The highest rate that passed, or the lower end.
    low: f64,
    /// The lowest rate that failed, or the upper end.
    high: f64,
    /// A rate below this counts as none.
    least: f64,
    /// The search ends when the ends are this close, as a share of the upper one.
    precision: f64,
    /// Trials that a rate may fail.
    attempts: u32,
    failed: u32,
    trials: u32,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LosslessRate {
    /// The highest rate that passed, in packets per second; zero if none did.
    pub rate: f64,
    /// The lowest rate that failed; the upper end of the search if none did.
    pub above: f64,
    /// Trials it took.
    pub trials: u32,
}

impl Search {
    /// Searches from zero to `most` packets per second for the highest rate with a loss of at most
    /// `allowed`, to within `precision`,
    /// giving up below a thousandth of `most`. A rate fails when `attempts` trials of it do.
    ///
    /// # Panics
    /// Unless `most` and `precision` are positive and there are `attempts`.
    pub fn new(allowed: f64, most: f64, precision: f64, attempts: u32) -> Search {
        assert!(most > 0.0 && precision > 0.0 && attempts > 0);
        let least = most / 1_000.0;
        Search { allowed, low: 0.0, high: most, least, precision, attempts, failed: 0, trials: 0 }
    }

    /// The rate to try next; `None` when it is found.
    pub fn next(&self) -> Option<f64> {
        let close = self.high - self.low <= self.precision * self.high;
        let hopeless = self.high < self.least;
        (!close && !hopeless).then(|| (self.low + self.high) / 2.0)
    }

    /// Notes that a trial of [`Search::next`] lost this share of its packets.
    pub fn note(&mut self, lost: f64) {
        let Some(rate) = self.next() else { return };
        self.trials += 1;
        if lost <= self.allowed {
            self.low = rate;
            self.failed = 0;
            return;
        }
        self.failed += 1;
        if self.failed == self.attempts {
            self.high = rate;
            self.failed = 0;
        }
    }

    /// The result so far.
    pub fn result(&self) -> LosslessRate {
        LosslessRate { rate: self.low, above: self.high, trials: self.trials }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn search(mut search: Search, mut lost: impl FnMut(f64) -> f64) -> LosslessRate {
        while let Some(rate) = search.next() {
            search.note(lost(rate));
        }
        search.result()
    }

    proptest! {
        #[test]
        fn the_rate_is_found_within_the_precision(limit in 1e5_f64..1e7, allowed in 0.0_f64..0.01) {
            let overload = |rate: f64| (1.0 - limit / rate).max(0.0);
            let found = search(Search::new(allowed, 2e7, 0.01, 1), overload);
            // Where the loss is just what is allowed.
            let edge = limit / (1.0 - allowed);
            prop_assert!(found.rate <= edge * 1.000_001 && edge <= found.above * 1.000_001, "{:?}", found);
            prop_assert!(found.above - found.rate <= 0.01 * found.above);
        }
    }

    #[test]
    fn a_disturbance_does_not_fail_a_rate_that_passes_when_tried_again() {
        let disturbed = |attempts| {
            let mut trials = 0;
            search(Search::new(0.0, 128.0, 0.01, attempts), |rate| {
                trials += 1;
                // Every second trial is disturbed.
                if rate > 100.0 || trials % 2 == 1 { 0.1 } else { 0.0 }
            })
        };
        assert!((99.0..=100.0).contains(&disturbed(2).rate), "{:?}", disturbed(2));
        assert!(disturbed(1).rate < 90.0, "a single attempt is misled");
    }

    #[test]
    fn a_system_that_always_loses_has_no_such_rate() {
        let found = search(Search::new(0.0, 1_000.0, 0.1, 1), |_| 0.5);
        assert_eq!(found.rate, 0.0);
        assert!(found.above > 0.0 && found.trials < 12);
    }
}
