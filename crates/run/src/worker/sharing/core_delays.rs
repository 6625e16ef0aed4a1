//! How long a worker waits for its core.

use std::time::Duration;

use rheostat_base::Time;

use crate::sleep::RunDelay;

/// A sleep that is late by more than this, or a visit that takes longer, may have waited for a core. Finding out costs a system call,
/// a small part of this.
const LATE: Duration = Duration::from_micros(50);
/// How long waits for a core are added up for the warning about them.
const WINDOW: Duration = Duration::from_secs(1);

pub(super) struct CoreDelays {
    /// Read where a sleep or a visit took long.
    run_delay: RunDelay,
    /// The sum of all delays since a moment.
    sum: Duration,
    since: Time,
}

impl CoreDelays {
    /// Those of this thread, from `now` on.
    pub(super) fn new(now: Time) -> CoreDelays {
        CoreDelays { run_delay: RunDelay::of_this_thread(), sum: Duration::ZERO, since: now }
    }

    /// How long the worker waited for a core in the last `time`, which ends now.
    pub(super) fn within(&mut self, time: Duration) -> Duration {
        if time <= LATE {
            return Duration::ZERO;
        }
        let delay = self.run_delay.take().min(time);
        self.sum += delay;
        delay
    }

    /// At the end of each second: whether the worker waited for its core more than 5 % of it.
    pub(super) fn are_long(&mut self, now: Time) -> bool {
        let time = now.since(self.since);
        if time < WINDOW {
            return false;
        }
        self.since = now;
        std::mem::take(&mut self.sum) > time / 20
    }
}
