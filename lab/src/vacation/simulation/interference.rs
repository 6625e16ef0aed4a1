//! Another program on the cores of some workers.

use std::time::Duration;

use rand::Rng;

/// A CPU-bound program of low priority on the cores of some workers, such as a virtual machine. It leaves workers that work
/// alone, but is not preempted at once when one wakes up: each wake-up is late by a random time (dissertation, 5.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    /// The workers that share their cores.
    pub workers: Vec<usize>,
    /// The longest time by which a wake-up is late; any shorter one is as likely.
    pub longest: Duration,
}

impl Interference {
    /// By how many nanoseconds a wake-up of this worker is late.
    pub(super) fn lateness(&self, worker: usize, random: &mut impl Rng) -> u64 {
        if !self.workers.contains(&worker) {
            return 0;
        }
        random.random_range(0..=self.longest.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn wake_ups_of_disturbed_workers_are_late_by_half_of_the_longest_time_on_average() {
        let mut random = StdRng::seed_from_u64(2);
        let program = Interference { workers: vec![1, 3], longest: Duration::from_nanos(1_000) };
        assert!((0..100).all(|_| program.lateness(2, &mut random) == 0));
        let late: Vec<_> = (0..10_000).map(|_| program.lateness(3, &mut random)).collect();
        let mean = late.iter().sum::<u64>() / 10_000;
        assert!(mean.abs_diff(500) < 20 && late.iter().all(|late| *late <= 1_000), "{mean}");
    }
}
