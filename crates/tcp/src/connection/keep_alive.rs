//! Probes of an idle peer (RFC 9293, 3.8.4).

use rheostat_base::Time;

use crate::config::KeepAlive;

/// The peer has answered none of the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerIsGone;

/// How long the peer has been silent.
#[derive(Debug)]
pub(crate) struct KeepAliveTimer {
    heard: Time,
    sent: u8,
    is_due: bool,
}

impl KeepAliveTimer {
    pub(crate) fn new(now: Time) -> KeepAliveTimer {
        KeepAliveTimer { heard: now, sent: 0, is_due: false }
    }

    /// The peer is there.
    pub(crate) fn on_heard(&mut self, now: Time) {
        *self = KeepAliveTimer::new(now);
    }

    pub(crate) fn deadline(&self, settings: &KeepAlive) -> Time {
        self.heard + settings.idle + settings.interval * u32::from(self.sent)
    }

    pub(crate) fn handle_timeout(
        &mut self,
        settings: &KeepAlive,
        now: Time,
    ) -> Result<(), PeerIsGone> {
        if now < self.deadline(settings) {
            return Ok(());
        }
        if self.sent >= settings.probes {
            return Err(PeerIsGone);
        }
        // Probes that are overdue are not made up for.
        self.heard = now - settings.idle - settings.interval * u32::from(self.sent);
        self.sent += 1;
        self.is_due = true;
        Ok(())
    }

    /// Whether a probe is to be sent now.
    pub(crate) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }
}
