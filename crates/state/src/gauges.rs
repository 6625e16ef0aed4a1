//! Values that shards add up for the metrics of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values that all lanes add to and any thread reads. A change takes one atomic addition to a line that lanes
/// share, so a shard gathers its changes and publishes them a few times a second.
#[derive(Clone, Debug)]
pub struct Gauges(Arc<[AtomicU64]>);

impl Gauges {
    /// `count` values of zero.
    pub fn new(count: usize) -> Gauges {
        Gauges((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds to the value at `place`, or takes from it; nothing happens to one that is not there.
    pub fn add(&self, place: usize, change: i64) {
        if let Some(value) = self.0.get(place) {
            // Relaxed: a value stands for itself.
            value.fetch_add(change as u64, Ordering::Relaxed);
        }
    }

    /// Replaces the value at `place`, which only one shard writes; nothing happens to one that is not there.
    pub fn set(&self, place: usize, value: u64) {
        if let Some(gauge) = self.0.get(place) {
            // Relaxed: a value stands for itself.
            gauge.store(value, Ordering::Relaxed);
        }
    }

    /// The value at `place`; zero if it is not there.
    pub fn get(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_the_sum_of_what_was_added() {
        let gauges = Gauges::new(2);
        let other = gauges.clone();
        gauges.add(1, 5);
        other.add(1, -2);
        other.add(2, 7);
        assert_eq!([0, 1, 2].map(|place| gauges.get(place)), [0, 3, 0]);
        other.set(1, 9);
        other.set(2, 9);
        assert_eq!([0, 1, 2].map(|place| gauges.get(place)), [0, 9, 0]);
    }
}
