//! Closing with a limit of time (RFC 9293, 3.9.1.5; `SO_LINGER` elsewhere).

use std::time::Duration;

use rheostat_base::Time;

use super::{CloseReason, Connection};

impl Connection {
    /// Closes as [`Connection::close`] does. If the peer has not acknowledged everything within `linger`, the connection is
    /// reset; without any time it is reset at once.
    pub fn close_within(&mut self, linger: Duration, now: Time) {
        if linger.is_zero() {
            self.abort();
            return;
        }
        self.close(now);
        self.linger = Some(now + linger);
    }

    /// When the peer must have acknowledged everything.
    pub(super) fn linger_deadline(&self) -> Option<Time> {
        self.linger.filter(|_| !self.sender.is_finished() && !self.state.is_over())
    }

    /// Returns whether the connection has ended.
    pub(super) fn handle_linger(&mut self, now: Time) -> bool {
        let is_over = self.linger_deadline().is_some_and(|deadline| deadline <= now);
        if is_over {
            self.reset_peer();
            self.end(CloseReason::LingerTimeout);
        }
        is_over
    }
}
