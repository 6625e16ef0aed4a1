//! SYNs: what is offered, what was agreed on, and their retransmission (RFC 9293, 3.5; RFC 6298, 5).

use std::time::Duration;

use rheostat_base::Time;

use crate::config::Config;
use crate::deadline::Deadline;
use crate::options::{Options, Timestamps};
use crate::receive::shift_for;
use crate::send::{HandshakeSample, Terms};

/// Smaller segments would have no room for data beside their options.
const MIN_MSS: u16 = 88;

/// The handshake has taken too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TookTooLong;

/// What both SYNs have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) mss: u16,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// The shifts of our windows and of the peer's, if they are scaled.
    pub(crate) shifts: Option<(u8, u8)>,
}

impl Agreement {
    /// What is agreed on with a peer whose SYN has these options.
    pub(crate) fn new(config: &Config, theirs: &Options) -> Agreement {
        let mss = theirs.mss.unwrap_or(config.default_mss).min(config.mss).max(MIN_MSS);
        let shift = theirs.window_scale.filter(|_| config.window_scaling);
        Agreement {
            mss,
            sack: config.sack && theirs.sack_permitted,
            timestamps: config.timestamps && theirs.timestamps.is_some(),
            shifts: shift.map(|theirs| (shift_for(config.receive_buffer), theirs)),
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        Terms { mss: self.mss.into(), sack: self.sack }
    }
}

/// Sends SYN until it is acknowledged.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// When the last SYN was sent.
    sent: Time,
    retry: Deadline,
    gives_up: Deadline,
    /// As far as it can be counted.
    times_sent: u8,
    must_send: bool,
}

impl Handshake {
    pub(crate) fn new(config: &Config, now: Time) -> Handshake {
        Handshake {
            sent: now,
            retry: Deadline::NONE,
            gives_up: Deadline::at(now + config.connect_timeout),
            times_sent: 0,
            must_send: true,
        }
    }

    /// A handshake whose SYN with ACK was sent so many times, the last time at `sent`, as far as that is known.
    pub(crate) fn answered(sent: Time, times_sent: u8, expires: Time) -> Handshake {
        Handshake {
            sent,
            retry: Deadline::NONE,
            gives_up: Deadline::at(expires),
            times_sent,
            must_send: false,
        }
    }

    /// The options of a SYN. `agreement` has what the peer has offered, if it has sent its own, and `timestamps` what both use then;
    /// `clock` is what a SYN before that is stamped with.
    pub(crate) fn options(
        config: &Config,
        agreement: Option<&Agreement>,
        timestamps: Option<Timestamps>,
        clock: u32,
    ) -> Options {
        let offers = |ours: bool, agreed: Option<bool>| ours && agreed.unwrap_or(true);
        let scale = offers(config.window_scaling, agreement.map(|a| a.shifts.is_some()));
        let timestamps = match agreement {
            None => config.timestamps.then_some(Timestamps { value: clock, echo: 0 }),
            Some(_) => timestamps,
        };
        Options {
            mss: Some(config.mss),
            window_scale: scale.then(|| shift_for(config.receive_buffer)),
            sack_permitted: offers(config.sack, agreement.map(|a| a.sack)),
            timestamps,
            ..Options::default()
        }
    }

    /// SYN, or SYN with ACK, is to be sent now.
    pub(crate) fn must_send(&self) -> bool {
        self.must_send
    }

    /// None has been sent.
    pub(crate) fn is_first(&self) -> bool {
        self.times_sent == 0
    }

    pub(crate) fn resend(&mut self) {
        self.must_send = true;
    }

    pub(crate) fn on_sent(&mut self, config: &Config, now: Time) {
        self.must_send = false;
        self.times_sent = self.times_sent.saturating_add(1);
        self.retry = Deadline::at(now + Handshake::pause_after(self.times_sent, config));
        self.sent = now;
    }

    /// How long a SYN that was sent so many times waits for an answer before it is sent again (RFC 6298, 5.5).
    pub(crate) fn pause_after(times_sent: u8, config: &Config) -> Duration {
        let doublings = times_sent.saturating_sub(1).min(30);
        config.initial_rto.saturating_mul(1 << doublings).min(config.max_rto)
    }

    /// What the handshake says about the round trip.
    pub(crate) fn sample(&self, now: Time) -> HandshakeSample {
        match self.times_sent {
            0 => HandshakeSample::Unknown,
            1 => HandshakeSample::Measured(now.since(self.sent)),
            _ => HandshakeSample::Lost,
        }
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.retry.min(self.gives_up)
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) -> Result<(), TookTooLong> {
        if self.gives_up.has_come(now) {
            return Err(TookTooLong);
        }
        if self.retry.has_come(now) {
            self.must_send = true;
            self.retry = Deadline::NONE;
        }
        Ok(())
    }
}
