//! How sure a figure is, and whether two of them differ.

use rheostat_measure::confidence::{LEAST, Median};

/// The median of some runs, and between what it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReportEstimate {
    pub(super) value: f64,
    /// Between what it lies with a confidence of 95 %; of fewer than six runs, their range.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) runs: usize,
}

/// What two estimates say about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The first is clearly below the second.
    Below,
    /// The first is clearly above the second.
    Above,
    /// They may be the same.
    None,
    /// There are too few runs to say anything.
    Unknown,
}

impl ReportEstimate {
    /// Of one value per run; `None` without any. Values that are no numbers do not count.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<ReportEstimate> {
        let values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        let runs = values.len();
        (runs > 0).then(|| {
            let Median { value, low, high } = Median::of(values);
            ReportEstimate { value, low, high, runs }
        })
    }

    /// Whether this one differs from another, by more than chance alone would cause in one of twenty cases.
    pub(super) fn against(&self, other: &ReportEstimate) -> Difference {
        if !suffice(self.runs, other.runs) {
            return Difference::Unknown;
        }
        if self.high < other.low {
            Difference::Below
        } else if self.low > other.high {
            Difference::Above
        } else {
            Difference::None
        }
    }

    /// Between what it lies, where there is more than one run.
    pub(super) fn span(&self) -> Option<(f64, f64)> {
        (self.runs > 1).then_some((self.low, self.high))
    }
}

/// Whether so many runs of one and of the other suffice to show a difference by intervals that do not overlap.
///
/// From six runs on the intervals have 95 %, and those of equal medians miss each other yet more seldom than one of
/// them misses the median. The ranges of fewer runs miss each other by chance in two of all the ways in
/// which ranks can be dealt to the two (the ends of the Mann-Whitney distribution).
pub(super) fn suffice(runs: usize, others: usize) -> bool {
    if runs == 0 || others == 0 {
        return false;
    }
    if runs >= LEAST && others >= LEAST {
        return true;
    }
    let ways = (1..=others).fold(1.0, |ways, at| ways * (runs + at) as f64 / at as f64);
    2.0 / ways <= 0.05
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_tell_no_difference() {
        // 2 / C(8, 4) = 0.029, 2 / C(6, 3) = 0.1, 2 / C(7, 4) = 0.057.
        assert!(suffice(4, 4) && !suffice(3, 3) && !suffice(3, 4) && !suffice(1, 20));
        assert!(suffice(6, 6) && suffice(100, 100));
        let (a, b) = (ReportEstimate::of([1.0]).unwrap(), ReportEstimate::of([9.0]).unwrap());
        assert_eq!(a.against(&b), Difference::Unknown);
    }

    #[test]
    fn what_overlaps_may_be_the_same() {
        let of = |from: f64| ReportEstimate::of((0..6).map(|at| from + f64::from(at))).unwrap();
        assert_eq!(of(0.0).against(&of(5.0)), Difference::None, "5 is in both");
        assert_eq!(of(0.0).against(&of(5.5)), Difference::Below);
        assert_eq!(of(5.5).against(&of(0.0)), Difference::Above);
    }

    #[test]
    fn values_that_are_no_numbers_do_not_count() {
        assert_eq!(ReportEstimate::of([f64::NAN]), None);
        assert_eq!(
            ReportEstimate::of([f64::NAN, 2.0]).map(|of| (of.value, of.runs)),
            Some((2.0, 1))
        );
    }
}
