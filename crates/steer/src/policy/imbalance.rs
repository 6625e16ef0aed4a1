//! How unevenly lanes are loaded.

use std::fmt;
use std::iter::Sum;

use super::Load;

/// A sum of squared loads, in (nanoseconds per second)². The squared imbalance of lanes is the sum
/// over them of (load − mean)², what RSS++ minimises (RSS++ 3.1, the first term of its objective).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SquaredLoad(u128);

impl SquaredLoad {
    /// None.
    pub const ZERO: SquaredLoad = SquaredLoad(0);
    /// More than any lanes can have.
    pub const MAX: SquaredLoad = SquaredLoad(u128::MAX);

    /// One lane's contribution: the square of its distance from the mean.
    pub fn distance(load: Load, mean: Load) -> SquaredLoad {
        let distance = load.nanos_per_second().abs_diff(mean.nanos_per_second());
        SquaredLoad(u128::from(distance).pow(2))
    }

    /// The product of a load and a share of one, where [`Load::FULL`] stands for one: one hundredth
    /// of a full lane squared is `of(Load::FULL, Load::from_percent(1))`.
    pub const fn of(load: Load, share: Load) -> SquaredLoad {
        SquaredLoad(load.nanos_per_second() as u128 * share.nanos_per_second() as u128)
    }

    /// The square of a load or of a distance.
    pub(super) fn square(nanos_per_second: u64) -> SquaredLoad {
        SquaredLoad(u128::from(nanos_per_second).pow(2))
    }

    /// From (nanoseconds per second)².
    pub(super) fn from_square(square: u128) -> SquaredLoad {
        SquaredLoad(square)
    }

    /// How much there is of it beyond `other`.
    pub(super) fn beyond(self, other: SquaredLoad) -> SquaredLoad {
        SquaredLoad(self.0.saturating_sub(other.0))
    }

    /// The mean of two.
    pub(super) fn mean(self, other: SquaredLoad) -> SquaredLoad {
        SquaredLoad(self.0 / 2 + other.0 / 2)
    }

    /// In (nanoseconds per second)².
    pub(super) fn get(self) -> u128 {
        self.0
    }

    /// In lanes squared, for reports.
    pub fn share(self) -> f64 {
        self.0 as f64 / (Load::FULL.nanos_per_second() as f64).powi(2)
    }
}

impl Sum for SquaredLoad {
    fn sum<I: Iterator<Item = SquaredLoad>>(squares: I) -> SquaredLoad {
        SquaredLoad(squares.fold(0, |sum, square| sum.saturating_add(square.0)))
    }
}

impl fmt::Display for SquaredLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3e}", self.share())
    }
}

impl fmt::Debug for SquaredLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The measures of imbalance over the active lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imbalance {
    /// Sum over lanes of the squared distance from the mean.
    pub squared: SquaredLoad,
    /// The most loaded lane over the least loaded (RSS++, Figure 12); `None` while that one is
    /// idle.
    pub max_over_min: Option<f64>,
    /// The most loaded lane over the mean; 1 when all are idle.
    pub max_over_mean: f64,
}

impl Imbalance {
    /// The imbalance of lanes with these loads.
    pub fn of(loads: &[Load]) -> Imbalance {
        let mean = mean(loads);
        let highest = loads.iter().copied().max().unwrap_or_default();
        let lowest = loads.iter().copied().min().unwrap_or_default();
        let ratio = |below: Load| (below > Load::ZERO).then(|| highest.share() / below.share());
        Imbalance {
            squared: loads.iter().map(|load| SquaredLoad::distance(*load, mean)).sum(),
            max_over_min: ratio(lowest),
            max_over_mean: ratio(mean).unwrap_or(1.0),
        }
    }
}

/// The mean of loads, rounded down; zero of none.
pub(super) fn mean(loads: &[Load]) -> Load {
    loads.iter().copied().sum::<Load>().part(1, loads.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_of_the_definition() {
        let loads = [90, 50, 10].map(Load::from_percent);
        let imbalance = Imbalance::of(&loads);
        assert_eq!(imbalance.squared, SquaredLoad::of(Load::FULL, Load::from_percent(32)));
        assert_eq!(imbalance.max_over_min, Some(9.0));
        assert_eq!(imbalance.max_over_mean, 1.8);
    }

    #[test]
    fn idle_lanes_are_balanced() {
        let imbalance = Imbalance::of(&[Load::ZERO; 3]);
        assert_eq!(imbalance.squared, SquaredLoad::default());
        assert_eq!((imbalance.max_over_min, imbalance.max_over_mean), (None, 1.0));
        assert_eq!(Imbalance::of(&[]).max_over_mean, 1.0);
    }
}
