//! What happens next.

/// Workers at most: their numbers stand in the low bits of a moment.
pub(super) const MOST_WORKERS: usize = 1 << WORKER_BITS;
const WORKER_BITS: u32 = 7;
/// After everything.
pub(super) const NEVER: u64 = u64::MAX;

/// The moment at which each worker has something to do, in picoseconds. A worker does one thing at a time, so it has one moment at
/// most, and the next of all is found by looking at each: with 8 workers that is cheaper than a heap.
#[derive(Debug)]
pub(super) struct Events {
    /// The moment and, below it, the worker; [`NEVER`] if it waits for others.
    due: Vec<u64>,
}

impl Events {
    pub(super) fn new(workers: usize) -> Events {
        assert!(workers <= MOST_WORKERS, "{workers} workers are more than an event can name");
        Events { due: vec![NEVER; workers] }
    }

    /// A worker is due at `time`, and no longer at what was set before.
    pub(super) fn set(&mut self, worker: usize, time: u64) {
        self.due[worker] = (time << WORKER_BITS) | worker as u64;
    }

    /// The moment of the next event; [`NEVER`] without one. Of equal moments the worker with the lowest number comes first.
    pub(super) fn next(&self) -> Next {
        Next(self.due.iter().copied().fold(NEVER, u64::min))
    }

    /// The worker of this event, which is due no longer.
    pub(super) fn take(&mut self, next: Next) -> usize {
        let worker = next.0 as usize & (MOST_WORKERS - 1);
        self.due[worker] = NEVER;
        worker
    }
}

/// An event: its moment and its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next(u64);

impl Next {
    /// When; at the end of time for no event.
    pub(super) fn time(self) -> u64 {
        self.0 >> WORKER_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_event_comes_first_and_a_later_setting_replaces_an_earlier_one() {
        let mut events = Events::new(3);
        events.set(0, 30);
        events.set(1, 10);
        events.set(2, 20);
        events.set(1, 25);
        let mut order = Vec::new();
        while events.next() != Next(NEVER) {
            let next = events.next();
            order.push((next.time(), events.take(next)));
        }
        assert_eq!(order, [(20, 2), (25, 1), (30, 0)]);
    }
}
