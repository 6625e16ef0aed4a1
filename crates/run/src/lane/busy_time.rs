//! How much of the wall clock a lane works.

use rheostat_base::Time;

use crate::account::LaneCounters;

/// The times of a lane's polls, noted by the worker that has the lane. Lanes that share a worker, and workers that share
/// a lane, change nothing about it: time belongs to the poll that took it, and what lies between polls is idle.
#[derive(Debug, Default)]
pub(super) struct BusyTime {
    /// When the first poll began.
    began: Option<Time>,
    /// When the last one ended.
    until: Time,
}

impl BusyTime {
    /// Notes a poll from `from` to `to`, which found work or not. Of two workers on two cores, one clock may be some
    /// nanoseconds behind the other: what an earlier poll has taken is not counted again.
    #[inline]
    pub(super) fn note(&mut self, counters: &LaneCounters, (from, to): (Time, Time), worked: bool) {
        let began = *self.began.get_or_insert(from);
        let from = from.max(self.until);
        let to = to.max(from);
        self.until = to;
        if worked {
            counters.busy_polls.increment();
            counters.busy_ns.add(to.as_nanos() - from.as_nanos());
        }
        counters.total_ns.set(to.as_nanos() - began.as_nanos());
    }

    /// The lane is polled no more: what has passed since the last poll is idle time.
    pub(super) fn close(&mut self, counters: &LaneCounters, now: Time) {
        if self.began.is_some() {
            self.note(counters, (now, now), false);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const NS: fn(u64) -> Time = Time::from_nanos;

    proptest! {
        /// Whichever workers poll a lane, and however far their clocks are apart, every nanosecond of a poll is counted
        /// once, and load is that over the wall clock.
        #[test]
        fn time_is_neither_lost_nor_counted_twice_when_a_lane_changes_hands(
            polls in proptest::collection::vec((0_u64..40, 0_u64..30, any::<bool>(), 0_u64..6), 1..60),
        ) {
            let (counters, mut busy) = (LaneCounters::default(), BusyTime::default());
            let (mut clock, mut taken, mut worked_ns) = (100, BTreeSet::new(), 0);
            let mut first = None;
            for (pause, length, worked, behind) in polls {
                clock += pause;
                // The clock of this worker is some nanoseconds behind.
                let from = clock - behind;
                let to = from + length;
                let first = *first.get_or_insert(from);
                let new = (from..to).filter(|ns| *ns >= first && taken.insert(*ns)).count() as u64;
                worked_ns += if worked { new } else { 0 };
                // Time without polls, before what was taken last, stays idle.
                taken.extend(first..to);
                clock = to.max(clock);
                busy.note(&counters, (NS(from), NS(to)), worked);
                prop_assert_eq!(counters.busy_ns.get(), worked_ns);
                prop_assert!(counters.busy_ns.get() <= counters.total_ns.get());
            }
            let first = first.expect("at least one poll");
            busy.close(&counters, NS(clock + 1_000));
            prop_assert_eq!(counters.total_ns.get(), clock + 1_000 - first);
            prop_assert_eq!(counters.busy_ns.get(), worked_ns);
        }
    }

    #[test]
    fn a_lane_that_was_never_polled_has_no_time() {
        let (counters, mut busy) = (LaneCounters::default(), BusyTime::default());
        busy.close(&counters, NS(5));
        assert_eq!((counters.total_ns.get(), counters.busy_ns.get()), (0, 0));
    }
}
