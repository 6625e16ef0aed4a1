//! How often each size of a value was met, within about three percent of the value.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values below this have a bin each; above, each doubling is divided into half as many.
const FINE: u64 = 64;
/// Doublings above, up to the largest value.
const DOUBLINGS: usize = 64 - FINE.trailing_zeros() as usize;
const BINS: usize = FINE as usize + DOUBLINGS * (FINE as usize / 2);

/// A histogram of values of any size, in 15 kilobytes. One thread at a time records, any may read.
pub struct Histogram {
    bins: Box<[AtomicU64; BINS]>,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram { bins: Box::new([const { AtomicU64::new(0) }; BINS]) }
    }

    /// Counts one value. Only the owner of the histogram may call this.
    #[inline]
    pub fn record(&self, value: u64) {
        let bin = &self.bins[bin_of(value)];
        // Relaxed: as in `Counter`, nothing is ordered by a count, and there is one writer.
        bin.store(bin.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Adds everything that another histogram has counted.
    pub fn add(&self, other: &Histogram) {
        for (mine, theirs) in self.bins.iter().zip(other.bins.iter()) {
            let sum = mine.load(Ordering::Relaxed) + theirs.load(Ordering::Relaxed);
            mine.store(sum, Ordering::Relaxed);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.load(Ordering::Relaxed)).sum()
    }

    /// The bins that have values: the largest value of each, and how many it has, ascending.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.bins.iter().map(|bin| bin.load(Ordering::Relaxed));
        counts.enumerate().filter(|(_, count)| *count > 0).map(|(bin, count)| (last_of(bin), count))
    }

    /// The value that a share `q` of all values do not exceed, `q` between 0 and 1, rounded up to the
    /// end of its bin; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * q).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        self.bins
            .iter()
            .position(|bin| {
                seen += bin.load(Ordering::Relaxed);
                seen >= rank
            })
            .map(last_of)
    }
}

fn bin_of(value: u64) -> usize {
    if value < FINE {
        return value as usize;
    }
    let half = FINE as usize / 2;
    let doubling = (value / FINE).ilog2() as usize;
    // The bits behind the leading one, as many as there are bins in a doubling.
    let offset = (value >> (doubling + 1)) as usize - half;
    FINE as usize + doubling * half + offset
}

/// The largest value of a bin.
fn last_of(bin: usize) -> u64 {
    let Some(above) = bin.checked_sub(FINE as usize) else { return bin as u64 };
    let half = FINE as usize / 2;
    let (doubling, offset) = (above / half, above % half);
    let next = ((half + offset + 1) as u128) << (doubling + 1);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Clone for Histogram {
    fn clone(&self) -> Histogram {
        let copy = Histogram::new();
        copy.add(self);
        copy
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("most", &self.quantile(1.0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_without_gaps_to_the_largest_value() {
        let mut first = 0;
        for bin in 0..BINS {
            let last = last_of(bin);
            assert_eq!((bin_of(first), bin_of(last)), (bin, bin));
            assert!(last - first <= first / 32, "{first} to {last} is too wide");
            if last < u64::MAX {
                first = last + 1;
            }
        }
        assert_eq!(last_of(BINS - 1), u64::MAX);
    }

    #[test]
    fn quantiles_are_ranks_within_a_bin() {
        let histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        for value in 1..=1_000 {
            histogram.record(value);
        }
        let within = |q, exact: u64| {
            let found = histogram.quantile(q).unwrap();
            assert!((exact..=exact + exact / 32).contains(&found), "{q}: {found}, not {exact}");
        };
        within(0.0, 1);
        within(0.5, 500);
        within(0.99, 990);
        within(1.0, 1_000);
    }

    #[test]
    fn histograms_add_up() {
        let (sum, other) = (Histogram::new(), Histogram::new());
        sum.record(3);
        other.record(3);
        other.record(u64::MAX);
        sum.add(&other);
        assert_eq!((sum.count(), sum.quantile(1.0)), (3, Some(u64::MAX)));
    }
}
