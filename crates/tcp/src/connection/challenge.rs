//! Acknowledgements that challenge the peer, or answer what is not acceptable, are limited (RFC 5961, 7).

use std::time::Duration;

use rheostat_base::Time;

/// Ten in five seconds. The limit is each connection's own, so that nobody can learn about one from the answers of another.
const INTERVAL: Duration = Duration::from_millis(500);

/// What came of the wish to challenge the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// An acknowledgement is sent.
    Sent,
    /// None is sent: the last one was less than 500 ms ago.
    Withheld,
}

/// When the last one was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChallengeLimit {
    next: Time,
}

impl ChallengeLimit {
    /// Whether one may be sent now, which counts as having sent it.
    pub(crate) fn permits(&mut self, now: Time) -> bool {
        let permits = now >= self.next;
        if permits {
            self.next = now + INTERVAL;
        }
        permits
    }
}
