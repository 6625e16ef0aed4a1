//! A measured distribution.

use rheostat_measure::rounding::to_hundredths;
use serde::{Deserialize, Serialize};

/// How often which times were met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// How many were measured.
    pub count: u64,
    /// Of these, how many were left out because the machine stopped meanwhile: pauses are counted by themselves.
    pub interrupted: u64,
    /// Pairs of a share and the nanoseconds that so many did not exceed; both ascending.
    pub quantiles: Vec<(f64, f64)>,
    /// Some as they were measured, evenly picked, in order.
    pub raw: Vec<f64>,
}

/// The shares for which quantiles are kept.
const SHARES: [f64; 15] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Raw values kept.
const RAW: usize = 500;
/// What takes this much longer than usual was interrupted.
const INTERRUPTION: f64 = 5_000.0;

impl Distribution {
    /// What these times come to, each divided by the `per` that stands with it.
    ///
    /// # Panics
    /// Without times.
    pub fn of(times: &[(f64, f64)]) -> Distribution {
        let mut sorted: Vec<f64> = times.iter().map(|(time, _)| *time).collect();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted[sorted.len() / 2];
        let kept = times.iter().filter(|(time, _)| *time < 2.0 * usual + INTERRUPTION);
        let each: Vec<f64> = kept.map(|(time, per)| time / per).collect();
        let mut sorted = each.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
        let step = each.len().div_ceil(RAW).max(1);
        Distribution {
            count: times.len() as u64,
            interrupted: (times.len() - each.len()) as u64,
            quantiles: SHARES.iter().map(|&share| (share, to_hundredths(at(share)))).collect(),
            raw: each.iter().step_by(step).map(|&time| to_hundredths(time)).collect(),
        }
    }

    /// The nanoseconds that a share of all did not exceed; in between of those kept, in proportion.
    pub fn quantile(&self, share: f64) -> f64 {
        let above = self.quantiles.partition_point(|(kept, _)| *kept < share);
        let last = self.quantiles.len() - 1;
        let (below, above) = (above.saturating_sub(1), above.min(last));
        let ((from, low), (to, high)) = (self.quantiles[below], self.quantiles[above]);
        if to > from { low + (high - low) * ((share - from) / (to - from)) } else { high }
    }

    /// The middle.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Whether it can be drawn from.
    pub(crate) fn is_sound(&self) -> bool {
        let ascending = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        let sensible = |(share, time): &(f64, f64)| {
            (0.0..=1.0).contains(share) && time.is_finite() && (0.0..1e9).contains(time)
        };
        !self.quantiles.is_empty()
            && self.quantiles.windows(2).all(ascending)
            && self.quantiles.iter().all(sensible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_not_interrupted() {
        let mut times: Vec<(f64, f64)> = (0..=100).map(|n| (f64::from(n) * 10.0, 10.0)).collect();
        times.push((1e6, 10.0));
        let distribution = Distribution::of(&times);
        assert_eq!((distribution.count, distribution.interrupted), (102, 1));
        assert_eq!(distribution.median(), 50.0);
        assert_eq!(distribution.quantile(0.25), 25.0, "between 0.2 and 0.3");
        assert_eq!((distribution.quantile(0.0), distribution.quantile(1.0)), (0.0, 100.0));
        assert!(distribution.is_sound());
    }

    #[test]
    fn what_cannot_be_drawn_from_is_told() {
        let of = |quantiles: &[(f64, f64)]| Distribution {
            count: 1,
            interrupted: 0,
            quantiles: quantiles.to_vec(),
            raw: Vec::new(),
        };
        assert!(of(&[(0.0, 1.0), (1.0, 1.0)]).is_sound());
        for wrong in [&[][..], &[(0.0, 2.0), (1.0, 1.0)], &[(0.0, f64::NAN)], &[(1.5, 1.0)]] {
            assert!(!of(wrong).is_sound(), "{wrong:?}");
        }
    }
}
