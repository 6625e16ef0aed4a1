//! Points in time as nanoseconds since an epoch that the source of time chooses.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since the epoch of the clock in use: the Unix epoch for captures, the start of the
/// process for live clocks, zero for virtual ones. Arithmetic saturates, so that hostile time stamps
/// cannot overflow a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// Later than anything; a deadline that never comes.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time `ns` nanoseconds after the epoch.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// The time `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000))
    }

    /// The time `s` seconds after the epoch.
    pub const fn from_secs(s: u64) -> Time {
        Time(s.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long `earlier` lies before this; zero when it lies after.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanoseconds(duration)))
    }
}

/// A duration in whole nanoseconds: what packets add to the time, prepared once and not for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Nanos(u64);

impl From<Duration> for Nanos {
    /// Durations of more than 584 years count as so many.
    #[inline]
    fn from(duration: Duration) -> Nanos {
        Nanos(nanoseconds(duration))
    }
}

impl Add<Nanos> for Time {
    type Output = Time;

    #[inline]
    fn add(self, Nanos(nanos): Nanos) -> Time {
        Time(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    #[inline]
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanoseconds(duration)))
    }
}

/// Nanoseconds of a duration, without the 128 bits that [`Duration::as_nanos`] takes: packets wait for this.
#[inline]
const fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::from_secs(1)), Duration::ZERO);
        assert_eq!(Time::ZERO + Duration::MAX, Time::NEVER);
        assert_eq!(Time::NEVER - Duration::MAX, Time::ZERO);
        let whole = Duration::from_nanos(u64::MAX);
        assert_eq!(Time::ZERO + (whole - Duration::from_nanos(1)), Time::from_nanos(u64::MAX - 1));
        assert_eq!(Time::ZERO + whole, Time::NEVER);
        assert_eq!(Time::ZERO + Nanos::from(Duration::MAX), Time::NEVER);
        assert_eq!(
            Time::from_secs(1) + Nanos::from(Duration::from_millis(5)),
            Time::from_millis(1_005)
        );
    }

    #[test]
    fn displays_seconds_with_nanoseconds() {
        assert_eq!(Time::from_nanos(1_500_000_001).to_string(), "1.500000001s");
    }
}
