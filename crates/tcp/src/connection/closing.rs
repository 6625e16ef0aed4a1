//! How connections end (RFC 9293, 3.6 and 3.9.1.5).

use std::time::Duration;

use rheostat_base::Time;

use super::{CloseReason, Connection, Event, State};
use crate::deadline::Deadline;
use crate::segment::Header;
use crate::time_wait::TimeWait;

/// What the user has said about the end.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// The user wants no data any more.
    pub(super) is_detached: bool,
    /// When the peer must have closed.
    pub(super) fin_wait: Deadline,
    /// When the peer must have acknowledged everything.
    linger: Deadline,
}

impl Connection {
    /// Sends FIN behind what was written. What the peer sends can still be read (half close).
    pub fn finish(&mut self, now: Time) {
        if self.state.is_over() {
            return;
        }
        self.sender.finish();
        self.state = self.state.after_finish();
        self.settle_timer(now);
    }

    /// Finishes, and wants no more data: with unread bytes, or if more arrive, the connection is reset, so that the peer
    /// learns that they were not read (RFC 9293, 3.6.1). The peer has
    /// [`Config::fin_wait_timeout`](crate::Config::fin_wait_timeout) to close.
    pub fn close(&mut self, now: Time) {
        if self.state == State::SynSent {
            self.end(CloseReason::Aborted);
            return;
        }
        if self.receiver.unread() > 0 && !self.state.is_over() {
            self.abort();
            return;
        }
        self.closing.is_detached = true;
        self.finish(now);
        self.start_fin_wait(now);
    }

    /// Closes as [`Connection::close`] does. If the peer has not acknowledged everything within `linger`, the connection is
    /// reset; without any time it is reset at once.
    pub fn close_within(&mut self, linger: Duration, now: Time) {
        if linger.is_zero() {
            self.abort();
            return;
        }
        self.close(now);
        self.closing.linger = Deadline::at(now + linger);
    }

    /// Resets the connection.
    pub fn abort(&mut self) {
        if self.state.is_over() {
            return;
        }
        if self.state != State::SynSent {
            self.reset_peer();
        }
        self.end(CloseReason::Aborted);
    }

    pub(super) fn change_state(&mut self, state: State, now: Time) {
        if state == self.state {
            return;
        }
        match state {
            State::Closed => self.end(CloseReason::Finished),
            State::TimeWait => self.enter_time_wait(now),
            _ => self.state = state,
        }
        self.start_fin_wait(now);
    }

    fn enter_time_wait(&mut self, now: Time) {
        let is_ack_due = self.receiver.is_ack_due();
        let (expected, window) = self.receiver.acknowledge();
        let numbers = (self.sender.next(), expected, window);
        let time_wait = TimeWait::new(numbers, self.stamps, is_ack_due, self.config.time_wait, now);
        self.time_wait = Some(Box::new(time_wait));
        self.state = State::TimeWait;
        self.events.push(Event::Closed(CloseReason::Finished));
    }

    pub(super) fn start_fin_wait(&mut self, now: Time) {
        let is_waiting = self.closing.is_detached && self.state == State::FinWait2;
        if is_waiting && self.closing.fin_wait.is_none() {
            self.closing.fin_wait = Deadline::at(now + self.config.fin_wait_timeout);
        }
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.events.push(Event::Closed(reason));
    }

    pub(super) fn reset_peer(&mut self) {
        self.reset = Some(Box::new(Header {
            seq: self.sender.next(),
            ack: Some(self.receiver.next()),
            rst: true,
            ..Header::default()
        }));
    }

    /// When the peer must have acknowledged everything.
    pub(super) fn linger_deadline(&self) -> Deadline {
        let is_over = self.sender.is_finished() || self.state.is_over();
        if is_over { Deadline::NONE } else { self.closing.linger }
    }

    /// Returns whether the connection has ended.
    pub(super) fn handle_linger(&mut self, now: Time) -> bool {
        let is_over = self.linger_deadline().has_come(now);
        if is_over {
            self.reset_peer();
            self.end(CloseReason::LingerTimeout);
        }
        is_over
    }
}
