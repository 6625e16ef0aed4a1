//! Whether SYN cookies may be on their way back.

use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::Time;
use rheostat_tcp::syn_cookies::COOKIE_LIFETIME;

/// Until when an acknowledgement may bring a cookie of this process back: beyond, none is looked for, so that none can be guessed.
///
/// Relaxed: it publishes nothing. The lane that sent a cookie sees its own store, and another lane sees it long before the peer's
/// answer.
#[derive(Debug, Default)]
pub(crate) struct CookiesUnderWay {
    /// In seconds, so that a flood of SYNs writes it once a second.
    until: AtomicU64,
}

impl CookiesUnderWay {
    /// A cookie is sent.
    pub(crate) fn note(&self, now: Time) {
        let until = seconds(now) + COOKIE_LIFETIME.as_secs();
        if self.until.load(Ordering::Relaxed) < until {
            self.until.fetch_max(until, Ordering::Relaxed);
        }
    }

    pub(crate) fn are_under_way(&self, now: Time) -> bool {
        seconds(now) <= self.until.load(Ordering::Relaxed)
    }
}

fn seconds(time: Time) -> u64 {
    time.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_under_way_from_the_first_for_as_long_as_the_last_may_be_good() {
        let cookies = CookiesUnderWay::default();
        assert!(!cookies.are_under_way(Time::from_secs(5)));
        cookies.note(Time::from_secs(10));
        cookies.note(Time::from_secs(20));
        cookies.note(Time::from_secs(15));
        assert!(cookies.are_under_way(Time::from_secs(140)));
        assert!(!cookies.are_under_way(Time::from_secs(141)));
    }
}
