//! Clocks. Only devices, workers and the command line read one; everything below takes `now`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::Time;

/// A source of the current time, shared by the workers of a run.
pub trait ClockSource: Send + Sync {
    /// The current time.
    fn now(&self) -> Time;
}

/// The machine's clock: the time-stamp counter where it is constant, the monotonic clock of the
/// operating system elsewhere. The epoch is the creation of the clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: quanta::Clock,
    start: u64,
}

/// A count of time-stamp counter ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cycles(pub u64);

impl Clock {
    /// Calibrates the counter against the operating system's clock (up to 200 ms, once per process).
    pub fn new() -> Clock {
        let source = quanta::Clock::new();
        let start = source.raw();
        Clock { source, start }
    }

    /// Reads the counter, about 10 ns.
    #[inline]
    pub fn cycles(&self) -> Cycles {
        Cycles(self.source.raw())
    }

    /// Nanoseconds between two readings of the counter.
    #[inline]
    pub fn nanos_between(&self, from: Cycles, to: Cycles) -> u64 {
        self.source.delta_as_nanos(from.0, to.0)
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

impl ClockSource for Clock {
    #[inline]
    fn now(&self) -> Time {
        Time::from_nanos(self.source.delta_as_nanos(self.start, self.source.raw()))
    }
}

/// The machine's wall clock: its epoch is 1970-01-01 UTC. It follows the corrections of the operating system, so that it may go back.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl ClockSource for WallClock {
    #[inline]
    fn now(&self) -> Time {
        // Before 1970 is a machine whose clock was never set.
        Time::ZERO + SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

/// A clock that stands still until it is moved; clones share one time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock at [`Time::ZERO`].
    pub fn new() -> VirtualClock {
        VirtualClock::default()
    }

    /// Moves the clock to `now`; a clock never goes back, so an earlier time changes nothing.
    pub fn advance_to(&self, now: Time) {
        // Relaxed: the clock publishes nothing but itself.
        self.now.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }
}

impl ClockSource for VirtualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn machine_clock_never_goes_back() {
        let clock = Clock::new();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn virtual_clock_is_shared_and_monotone() {
        let clock = VirtualClock::new();
        let twin = clock.clone();
        clock.advance_to(Time::from_secs(2));
        twin.advance_to(Time::from_secs(1));
        assert_eq!(twin.now(), Time::from_secs(2));
    }
}
