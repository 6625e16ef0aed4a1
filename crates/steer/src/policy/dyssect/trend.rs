//! Where the load is going.

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::Time;

use super::super::Load;

/// Totals that a trend is drawn through.
const KEPT: usize = 4;
/// The load is expected to grow at most by one half within a period.
const MOST: f64 = 1.5;
/// A growth of less than a part in so many is noise.
const NOISE: f64 = 1.0 / 50.0;

/// The last totals of the load, and the line through them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trend(VecDeque<(Time, Load)>);

impl Trend {
    /// The total load at `now`.
    pub(super) fn note(&mut self, now: Time, total: Load) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now, total));
    }

    /// By what the last total is to be multiplied to have that after another `ahead`: 1 unless it has been growing all the
    /// time, at most [`MOST`].
    pub(super) fn growth(&self, ahead: Duration) -> f64 {
        let pairs = self.0.iter().zip(self.0.iter().skip(1));
        if self.0.len() < 3 || pairs.clone().any(|((_, then), (_, now))| now <= then) {
            return 1.0;
        }
        let (Some(&(first, from)), Some(&(last, to))) = (self.0.front(), self.0.back()) else {
            return 1.0;
        };
        let past = last.since(first).as_secs_f64();
        if past <= 0.0 || to == Load::ZERO {
            return 1.0;
        }
        let slope = (to.share() - from.share()) / past;
        let growth = 1.0 + slope * ahead.as_secs_f64() / to.share();
        if growth < 1.0 + NOISE { 1.0 } else { growth.min(MOST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(percents: &[u64]) -> f64 {
        let mut trend = Trend::default();
        for (second, percent) in (0..).zip(percents) {
            trend.note(Time::from_secs(second), Load::from_percent(*percent));
        }
        trend.growth(Duration::from_secs(1))
    }

    #[test]
    fn a_load_that_keeps_growing_is_expected_to_grow_on() {
        assert!((growth(&[100, 150, 200]) - 1.25).abs() < 1e-9);
        assert!(
            (growth(&[900, 100, 150, 200, 250]) - 1.2).abs() < 1e-9,
            "only the last ones count"
        );
        let mut steep = Trend::default();
        (1..4).for_each(|at| steep.note(Time::from_secs(at), Load::from_percent(9 * at)));
        assert_eq!(steep.growth(Duration::from_secs(9)), MOST);
    }

    #[test]
    fn nothing_is_expected_of_a_load_that_falls_or_fluctuates() {
        for percents in [&[][..], &[0, 0, 0], &[100, 150], &[200, 150, 100], &[100, 150, 140, 190]]
        {
            assert_eq!(growth(percents), 1.0, "{percents:?}");
        }
        assert_eq!(growth(&[1_000, 1_003, 1_006]), 1.0, "so little is noise");
    }
}
