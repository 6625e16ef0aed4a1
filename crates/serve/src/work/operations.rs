//! How many operations take a time.

/// Times with their counts of operations, as calibrated; between them, counts grow evenly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations(Vec<(u64, u64)>);

impl Operations {
    /// Of pairs of nanoseconds and operations.
    pub fn new(pairs: impl IntoIterator<Item = (u64, u64)>) -> Operations {
        let mut pairs: Vec<_> = pairs.into_iter().filter(|(nanos, _)| *nanos > 0).collect();
        pairs.sort_unstable();
        pairs.dedup_by_key(|(nanos, _)| *nanos);
        Operations(pairs)
    }

    /// The operations that take so many nanoseconds: none for none, and one at least for any time, if any was calibrated.
    pub fn of(&self, nanos: u64) -> u64 {
        let Some(&last) = self.0.last().filter(|_| nanos > 0) else { return 0 };
        let behind = self.0.partition_point(|(time, _)| *time < nanos);
        let (from, to) = match self.0.get(behind) {
            Some(&pair) if pair.0 == nanos => return pair.1,
            Some(&pair) if behind > 0 => (self.0[behind - 1], pair),
            Some(&pair) => ((0, 0), pair),
            // Beyond what was calibrated, in proportion to the longest time.
            None => ((0, 0), last),
        };
        let slope = (to.1 as f64 - from.1 as f64) / (to.0 - from.0) as f64;
        let count = from.1 as f64 + slope * (nanos as f64 - from.0 as f64);
        (count.round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_calibrated_and_lie_between_them() {
        let operations = Operations::new([(100_000, 25_000), (1_000, 240)]);
        let counts = [0, 1, 500, 1_000, 50_500, 100_000, 200_000].map(|time| operations.of(time));
        assert_eq!(counts, [0, 1, 120, 240, 12_620, 25_000, 50_000]);
        assert_eq!(Operations::default().of(1_000), 0);
        assert_eq!(Operations::new([(0, 7)]).of(1_000), 0);
    }

    #[test]
    fn a_longer_time_never_takes_fewer_operations() {
        let operations = Operations::new([(1_000, 240), (10_000, 2_500), (100_000, 24_000)]);
        let mut last = 0;
        for time in (0..200_000).step_by(37) {
            let count = operations.of(time);
            assert!(count >= last, "{time}");
            last = count;
        }
    }
}
