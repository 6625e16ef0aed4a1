//! The threshold random walk: from the outcomes of first contacts to the verdict that a host scans.
//!
//! Two hypotheses are held against each other: that a host is benign, whose first contacts mostly succeed, and
//! that it scans, so that they mostly fail. After each contact the ratio of the two likelihoods is multiplied by
//! how much better the second explains its outcome; a host above the upper threshold scans (Jung, Paxson, Berger,
//! Balakrishnan, "Fast Portscan Detection Using Sequential Hypothesis Testing", IEEE S&P 2004, section 4; the
//! thresholds are those of Wald, "Sequential Analysis", 1947).
//!
//! There the walk ends below at a verdict, too. Here it stops at 1 and goes on, as in Schechter, Jung, Berger,
//! "Fast Detection of Scanning Worm Infections", RAID 2004: a host that was good for years has no credit for the
//! day it becomes bad.

use thiserror::Error;

/// The outcome of a first contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// It was answered.
    Succeeded,
    /// It was refused, or not answered.
    Failed,
}

/// How likely things are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likelihoods {
    /// That a first contact of a benign host succeeds.
    pub benign: f64,
    /// That one of a scanner does.
    pub scanner: f64,
    /// That a benign host is taken for a scanner, at most.
    pub false_positives: f64,
    /// That a scanner is found.
    pub detection: f64,
}

impl Default for Likelihoods {
    /// What the paper uses (section 4.2): 0.8 and 0.2, 0.01 and 0.99. Four failures in a row are a scan.
    fn default() -> Likelihoods {
        Likelihoods { benign: 0.8, scanner: 0.2, false_positives: 0.01, detection: 0.99 }
    }
}

/// Likelihoods with which no walk leads to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WalkError {
    /// One of them is not between 0 and 1, both excluded.
    #[error("`{0}` is not between 0 and 1, both excluded")]
    Range(&'static str),
    /// Scanners are as successful as others.
    #[error("`benign` is not above `scanner`, so successes would tell nothing")]
    Success,
    /// Scanners are found no more often than others are taken for one.
    #[error("`detection` is not above `false_positives`, so there would be no threshold")]
    Threshold,
}

/// Units of a ratio's logarithm: 65,536 for a factor of two. Whole numbers, so that a sum of steps does not depend
/// on their order.
const UNITS: f64 = 65_536.0;

/// The walk of every host: steps and threshold of the logarithm of the likelihood ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    success: i32,
    failure: i32,
    threshold: i32,
}

impl Default for Walk {
    /// That of the paper's likelihoods.
    fn default() -> Walk {
        Walk::new(&Likelihoods::default()).expect("they tell something")
    }
}

impl Walk {
    /// The walk for these likelihoods.
    ///
    /// # Errors
    /// [`WalkError`] when it would lead nowhere.
    pub fn new(likelihoods: &Likelihoods) -> Result<Walk, WalkError> {
        let Likelihoods { benign, scanner, false_positives, detection } = *likelihoods;
        for (name, value) in [
            ("benign", benign),
            ("scanner", scanner),
            ("false_positives", false_positives),
            ("detection", detection),
        ] {
            if !(1e-6..=1.0 - 1e-6).contains(&value) {
                return Err(WalkError::Range(name));
            }
        }
        let units = |ratio: f64| (ratio.log2() * UNITS).round() as i32;
        let success = units(scanner / benign);
        let failure = units((1.0 - scanner) / (1.0 - benign));
        let threshold = units(detection / false_positives);
        match () {
            () if success >= 0 || failure <= 0 => Err(WalkError::Success),
            () if threshold <= 0 => Err(WalkError::Threshold),
            () => Ok(Walk { success, failure, threshold }),
        }
    }

    /// Where a host stands after one more first contact, if it stood at `from`. It begins at 0.
    #[inline]
    pub fn step(&self, from: i32, contact: Contact) -> i32 {
        let step = match contact {
            Contact::Succeeded => self.success,
            Contact::Failed => self.failure,
        };
        from.saturating_add(step).max(0)
    }

    /// Whether a host that stands there scans.
    #[inline]
    pub fn is_scan(&self, at: i32) -> bool {
        at >= self.threshold
    }

    /// Failures in a row after which a host that began at 0 scans.
    pub fn failures(&self) -> u32 {
        self.threshold.unsigned_abs().div_ceil(self.failure.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Contact::{Failed, Succeeded};

    fn walk(contacts: &[Contact]) -> i32 {
        let walk = Walk::default();
        contacts.iter().fold(0, |at, contact| walk.step(at, *contact))
    }

    #[test]
    fn the_numbers_of_the_paper() {
        let walk = Walk::default();
        // 0.2/0.8 and 0.8/0.2 are a quarter and four; the threshold is 99.
        assert_eq!((walk.success, walk.failure), (-2 << 16, 2 << 16));
        assert_eq!(walk.threshold, (99_f64.log2() * UNITS).round() as i32);
        assert_eq!(walk.failures(), 4);
    }

    #[test]
    fn four_failures_are_a_scan_and_success_takes_one_back() {
        let scans = |contacts: &[Contact]| Walk::default().is_scan(walk(contacts));
        assert!(scans(&[Failed; 4]) && !scans(&[Failed; 3]));
        assert!(!scans(&[Failed, Failed, Failed, Succeeded, Failed]));
        assert!(scans(&[Failed, Failed, Failed, Succeeded, Failed, Failed]));
        // A thousand successes are no credit.
        let mut contacts = vec![Succeeded; 1_000];
        contacts.extend([Failed; 4]);
        assert!(scans(&contacts));
    }

    #[test]
    fn far_up_nothing_overflows() {
        let walk = Walk::default();
        assert_eq!(walk.step(i32::MAX, Failed), i32::MAX);
        assert!(walk.step(i32::MAX, Succeeded) < i32::MAX);
    }

    #[test]
    fn likelihoods_that_tell_nothing_are_refused() {
        let refused = |change: fn(&mut Likelihoods)| {
            let mut likelihoods = Likelihoods::default();
            change(&mut likelihoods);
            Walk::new(&likelihoods).unwrap_err()
        };
        assert_eq!(refused(|l| l.benign = 1.0), WalkError::Range("benign"));
        assert_eq!(refused(|l| l.scanner = f64::NAN), WalkError::Range("scanner"));
        assert_eq!(refused(|l| l.scanner = 0.8), WalkError::Success);
        assert_eq!(refused(|l| l.detection = 0.01), WalkError::Threshold);
    }
}
