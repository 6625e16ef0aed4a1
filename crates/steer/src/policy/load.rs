//! Work as a share of one lane's time.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// Work as a share of one lane's time, in nanoseconds per second: zero for an idle lane,
/// [`Load::FULL`] for one that does nothing else. An integer, so that sums do not depend on their
/// order and there is no value that compares with nothing.
///
/// A measured lane is never above `FULL`; one that a plan would overload is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Load(u64);

impl Load {
    /// No work.
    pub const ZERO: Load = Load(0);
    /// All of one lane's time.
    pub const FULL: Load = Load(1_000_000_000);
    /// The most a single figure can be: a thousand lanes' time. Sums of ten million of these, and
    /// their squares, still fit the integers they are computed with.
    pub const MAX: Load = Load(1_000 * Load::FULL.0);

    /// A load of `ns` nanoseconds of work per second, at most [`Load::MAX`].
    pub const fn from_nanos_per_second(ns: u64) -> Load {
        Load(if ns < Load::MAX.0 { ns } else { Load::MAX.0 })
    }

    /// A load of `percent` of one lane's time, at most [`Load::MAX`].
    pub const fn from_percent(percent: u64) -> Load {
        Load::from_nanos_per_second(percent.saturating_mul(Load::FULL.0 / 100))
    }

    /// A load of `share` lanes' time; `None` unless it is a number from 0 to 1000.
    pub fn from_share(share: f64) -> Option<Load> {
        (0.0..=1000.0).contains(&share).then(|| Load((share * Load::FULL.0 as f64).round() as u64))
    }

    /// `busy` time out of `wall` time: at most [`Load::FULL`], and zero when no time has passed.
    pub fn of(busy: Duration, wall: Duration) -> Load {
        if wall.is_zero() {
            return Load::ZERO;
        }
        let busy = busy.min(wall).as_nanos();
        // At most 1e9, because busy is at most wall; exact up to 10^29 ns.
        Load((busy.saturating_mul(u128::from(Load::FULL.0)) / wall.as_nanos()) as u64)
    }

    /// Nanoseconds of work per second.
    pub const fn nanos_per_second(self) -> u64 {
        self.0
    }

    /// The load in lanes' time, for reports.
    pub fn share(self) -> f64 {
        self.0 as f64 / Load::FULL.0 as f64
    }

    /// The part `numerator / denominator` of this load, rounded down; zero when `denominator` is.
    #[must_use]
    pub fn part(self, numerator: u64, denominator: u64) -> Load {
        if denominator == 0 {
            return Load::ZERO;
        }
        let part = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Load(u64::try_from(part).unwrap_or(u64::MAX).min(Load::MAX.0))
    }

    /// This load times `by`, where [`Load::FULL`] stands for one: `mean.times(tolerance)`.
    #[must_use]
    pub fn times(self, by: Load) -> Load {
        self.part(by.0, Load::FULL.0)
    }

    /// What is left of this load without `other`; zero when `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Load) -> Load {
        Load(self.0.saturating_sub(other.0))
    }
}

impl Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Load) {
        *self = *self + other;
    }
}

impl Sum for Load {
    fn sum<I: Iterator<Item = Load>>(loads: I) -> Load {
        loads.fold(Load::ZERO, Add::add)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", 100.0 * self.share())
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_busy_time_out_of_wall_time() {
        let ms = Duration::from_millis;
        assert_eq!(Load::of(ms(80), ms(100)), Load::from_percent(80));
        assert_eq!(Load::of(ms(101), ms(100)), Load::FULL);
        assert_eq!(Load::of(ms(1), ms(0)), Load::ZERO);
        assert_eq!(Load::of(Duration::MAX, Duration::MAX), Load::FULL);
    }

    #[test]
    fn no_share_makes_a_load_that_is_not_a_number() {
        assert_eq!(Load::from_share(0.8), Some(Load::from_percent(80)));
        for share in [f64::NAN, f64::INFINITY, -0.1, 1000.1] {
            assert_eq!(Load::from_share(share), None);
        }
    }

    #[test]
    fn parts_and_sums_stay_in_range() {
        assert_eq!(Load::FULL.part(1, 3) + Load::FULL.part(2, 3), Load(999_999_999));
        assert_eq!(Load::FULL.part(1, 0), Load::ZERO);
        assert_eq!(Load::MAX.part(u64::MAX, 1), Load::MAX);
        assert_eq!(Load::from_percent(u64::MAX), Load::MAX);
        assert_eq!(Load::from_percent(50).times(Load::from_percent(2)), Load::from_percent(1));
        assert_eq!(Load::from_share(0.934).unwrap().to_string(), "93.4 %");
    }
}
