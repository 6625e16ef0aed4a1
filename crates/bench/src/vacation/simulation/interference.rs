//! Another program on the cores of some workers.

use std::time::Duration;

/// A CPU-bound program that takes turns with a worker on its core: each has it for a slice. A worker that wakes up in
/// the program's slice waits for its end; one that works when its own slice ends goes on after the next.
///
/// That is the worst a fair scheduler does. One that lets a thread preempt which has slept, as Linux does, is kinder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    /// The workers that share their cores.
    pub workers: Vec<usize>,
    /// How long each has the core, at least a nanosecond.
    pub slice: Duration,
}

impl Interference {
    /// When `work` nanoseconds of work of `worker` are done that begin at `now`, and when it can begin if there are none.
    pub(super) fn advance(&self, worker: usize, now: u64, work: u64) -> u64 {
        let Some(place) = self.workers.iter().position(|disturbed| *disturbed == worker) else {
            return now + work;
        };
        let slice = (self.slice.as_nanos() as u64).max(1);
        // The cores take turns at different times.
        let phase = slice * place as u64 / self.workers.len() as u64;
        let (mut now, mut left) = (now, work);
        loop {
            let position = (now + phase) % (2 * slice);
            if position < slice {
                now += slice - position;
                continue;
            }
            let own = 2 * slice - position;
            if left <= own {
                return now + left;
            }
            now += own;
            left -= own;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_worker_works_in_every_second_slice() {
        let shared = Interference { workers: vec![1, 3], slice: Duration::from_nanos(100) };
        assert_eq!(shared.advance(0, 5, 1_000), 1_005);
        assert_eq!(shared.advance(1, 0, 0), 100);
        assert_eq!(shared.advance(1, 50, 30), 130);
        assert_eq!(shared.advance(1, 180, 50), 330);
        assert_eq!(shared.advance(1, 100, 250), 550);
        // A quarter of a turn earlier: both are kept from their cores for a quarter of the time.
        assert_eq!(shared.advance(3, 0, 50), 100);
        assert_eq!(shared.advance(3, 100, 60), 260);
    }
}
