//! How often answers may be given (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4 (f)).

use rheostat_base::Time;

/// A token bucket, exact to the nanosecond: it is kept as the time at which it was last empty.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// Nanoseconds per answer.
    interval: u64,
    /// Nanoseconds by which answers may run ahead.
    burst: u64,
    /// When the bucket would be full again, plus the burst.
    next: u64,
}

impl RateLimit {
    /// Allows `per_second` answers, and `burst` of them at once. Zero answers per second allow none.
    pub fn new(per_second: u32, burst: u32) -> RateLimit {
        let (interval, burst) = RateLimit::times(per_second, burst);
        RateLimit { interval, burst, next: 0 }
    }

    /// Allows `per_second` answers, and `burst` of them at once, from now on. Those given count.
    pub fn set(&mut self, per_second: u32, burst: u32) {
        (self.interval, self.burst) = RateLimit::times(per_second, burst);
    }

    /// One of `parts` equal parts of such a limit, of at least one answer at once.
    pub(crate) fn part(per_second: u32, burst: u32, parts: usize) -> RateLimit {
        let parts = parts.max(1) as u64;
        let (whole, _) = RateLimit::times(per_second, burst);
        let at_once = (u64::from(burst) / parts).max(1);
        let interval = whole.saturating_mul(parts);
        RateLimit { interval, burst: interval.saturating_mul(at_once - 1), next: 0 }
    }

    /// Nanoseconds per answer, and by which answers may run ahead.
    pub(crate) fn times(per_second: u32, burst: u32) -> (u64, u64) {
        let interval = 1_000_000_000_u64.checked_div(per_second.into()).unwrap_or(u64::MAX);
        (interval, interval.saturating_mul(u64::from(burst.max(1)) - 1))
    }

    /// Whether an answer may be given at `now`; counts it if so.
    pub fn allow(&mut self, now: Time) -> bool {
        let allowed = self.permits(now);
        if allowed {
            self.next = self.next.max(now.as_nanos()).saturating_add(self.interval);
        }
        allowed
    }

    /// Whether an answer may be given at `now`, without counting it.
    pub(crate) fn permits(&self, now: Time) -> bool {
        self.interval != u64::MAX && self.next.saturating_sub(now.as_nanos()) <= self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut limit = RateLimit::new(10, 5);
        let second = |s: f64| Time::from_nanos((s * 1e9) as u64);
        let granted = (0..20).filter(|_| limit.allow(second(1.0))).count();
        assert_eq!(granted, 5);
        assert!(!limit.allow(second(1.05)));
        assert!(limit.allow(second(1.1)));
        let over_a_minute = (0..6_000).filter(|i| limit.allow(second(2.0 + f64::from(*i) / 100.0)));
        assert!((595..=606).contains(&over_a_minute.count()));
        assert!(!RateLimit::new(0, 5).allow(second(1.0)));
    }
}
