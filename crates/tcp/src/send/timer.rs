//! The timer of the sending side: retransmission while data is in flight, probes while the peer's window holds data back.

use std::time::Duration;

use rheostat_base::Time;

use crate::deadline::Deadline;

/// What the timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// An acknowledgement of data in flight.
    Acknowledgement,
    /// Room in the peer's window (RFC 9293, 3.8.6.1), or more than a little of it (3.8.6.2.1).
    Window,
}

/// At most one wait at a time.
#[derive(Debug, Default)]
pub(crate) struct SendTimer {
    deadline: Deadline,
    wait: Option<Wait>,
    /// Probes sent since the window closed, as far as they can be counted.
    probes: u8,
}

impl SendTimer {
    /// Waits for this, if it does not yet. `interval` says how long, by the number of probes sent.
    pub(crate) fn set(
        &mut self,
        wait: Option<Wait>,
        now: Time,
        interval: impl FnOnce(Wait, u8) -> Duration,
    ) {
        if wait != self.wait {
            let deadline = wait.map(|wait| Deadline::at(now + interval(wait, 0)));
            *self = SendTimer { deadline: deadline.unwrap_or_default(), wait, probes: 0 };
        }
    }

    /// Starts anew, as if nothing had been waited for.
    pub(crate) fn stop(&mut self) {
        (self.deadline, self.wait) = (Deadline::NONE, None);
    }

    /// Returns what has been waited for too long.
    pub(crate) fn expired(&self, now: Time) -> Option<Wait> {
        self.wait.filter(|_| self.deadline.has_come(now))
    }

    /// Waits on, `interval` from now by the number of probes sent.
    pub(crate) fn again(&mut self, now: Time, interval: impl FnOnce(Wait, u8) -> Duration) {
        if let Some(wait) = self.wait {
            self.probes = self.probes.saturating_add(u8::from(wait == Wait::Window));
            self.deadline = Deadline::at(now + interval(wait, self.probes));
        }
    }

    pub(crate) fn waits_for(&self) -> Option<Wait> {
        self.wait
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }
}
