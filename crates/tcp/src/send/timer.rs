//! The timer of the sending side: retransmission while data is in flight, probes while the peer's window holds data back.

use std::time::Duration;

use rheostat_base::Time;

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
    running: Option<(Wait, Time)>,
    /// Probes sent since the window closed.
    probes: u32,
}

impl SendTimer {
    /// Waits for this, if it does not yet. `interval` says how long, by the number of probes sent.
    pub(crate) fn set(
        &mut self,
        wait: Option<Wait>,
        now: Time,
        interval: impl FnOnce(Wait, u32) -> Duration,
    ) {
        if wait != self.running.map(|(wait, _)| wait) {
            self.probes = 0;
            self.running = wait.map(|wait| (wait, now + interval(wait, 0)));
        }
    }

    /// Starts anew, as if nothing had been waited for.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }

    /// Returns what has been waited for too long.
    pub(crate) fn expired(&self, now: Time) -> Option<Wait> {
        self.running.filter(|(_, deadline)| *deadline <= now).map(|(wait, _)| wait)
    }

    /// Waits on, `interval` from now by the number of probes sent.
    pub(crate) fn again(&mut self, now: Time, interval: impl FnOnce(Wait, u32) -> Duration) {
        if let Some((wait, deadline)) = &mut self.running {
            self.probes += u32::from(*wait == Wait::Window);
            *deadline = now + interval(*wait, self.probes);
        }
    }

    pub(crate) fn waits_for(&self) -> Option<Wait> {
        self.running.map(|(wait, _)| wait)
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.running.map(|(_, deadline)| deadline)
    }
}
