//! A connection that a SYN has begun to open, as a listener keeps it until the peer acknowledges: SYN-RECEIVED in a few bytes
//! (RFC 4987, 3.4).

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use crate::config::Config;
use crate::connection::{
    Agreement, Challenge, ChallengeLimit, Connection, Handshake, Ignored, acceptance,
};
use crate::initial::Initial;
use crate::options::{Options, Timestamps};
use crate::receive::Stamps;
use crate::segment::{Header, Segment, SendReason};
use crate::sequence::SequenceNumber;

/// SYNs with ACK that one SYN causes at most. A SYN that arrives again is answered beyond that.
const ANSWERS: u8 = 5;

/// A handshake that waits for the peer's acknowledgement. It has no buffers; the connection is made when the handshake completes.
///
/// Its owner sends what [`HalfOpen::answer`] returns at first, passes it every segment of the connection, and calls
/// [`HalfOpen::handle_timeout`] when [`HalfOpen::next_deadline`] has come. A segment costs constant time. A forged SYN costs these
/// bytes until the handshake times out, and five segments.
#[derive(Clone, Copy, Debug)]
pub struct HalfOpen {
    expires: Time,
    /// When SYN with ACK was sent last.
    sent: Time,
    limit: ChallengeLimit,
    initial: Initial,
    /// The number of the peer's SYN, and its time stamp.
    theirs: SequenceNumber,
    stamp: u32,
    agreement: Agreement,
    /// The window of the peer's SYN.
    window: u16,
    times_sent: u8,
}

// An entry of a service adds the connection's key, which takes 48 bytes, and 16 more.
const _: () = assert!(size_of::<HalfOpen>() <= 64);

/// What a half-open connection does with a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HalfOpenOutcome {
    /// The segment completes the handshake: it is for the connection that [`HalfOpen::establish`] makes.
    Completes,
    /// The peer has reset the connection, which is over.
    Reset,
    /// The segment acknowledges something else. It is to be answered with a reset (RFC 9293, 3.10.7.4).
    Refuses,
    /// The handshake goes on.
    Waits {
        /// Why the segment was ignored; none for the SYN that arrives again.
        ignored: Option<Ignored>,
        /// Whether the peer is challenged, where it would be but for the limit.
        challenge: Option<Challenge>,
        /// The segment to answer with.
        answer: Option<(Header, SendReason)>,
    },
}

/// What is due for a half-open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HalfOpenTimeout {
    /// Nothing.
    Nothing,
    /// SYN with ACK is sent again.
    Resends(Header),
    /// The handshake has taken too long and is over.
    Expired,
}

impl HalfOpen {
    /// Begins the handshake that a SYN requests, to be completed within `timeout`. `None` for a segment that is no such SYN.
    pub fn accept(
        config: &Config,
        initial: Initial,
        syn: &Segment<'_>,
        timeout: Duration,
        now: Time,
    ) -> Option<HalfOpen> {
        let header = &syn.header;
        let opens = header.syn && header.ack.is_none() && !header.rst && !header.fin;
        opens.then(|| HalfOpen {
            expires: now + timeout,
            times_sent: 0,
            ..HalfOpen::of(header, initial, Agreement::new(config, &header.options), now)
        })
    }

    /// The handshake of a peer whose SYN was this one, with what was agreed on. Nothing has been sent, as far as is known.
    pub(crate) fn of(syn: &Header, initial: Initial, agreement: Agreement, now: Time) -> HalfOpen {
        HalfOpen {
            expires: now,
            sent: now,
            limit: ChallengeLimit::default(),
            initial,
            theirs: syn.seq,
            stamp: syn.options.timestamps.map_or(0, |stamps| stamps.value),
            agreement,
            window: syn.window,
            times_sent: 0,
        }
    }

    /// SYN with ACK, which counts as sent.
    pub fn answer(&mut self, config: &Config, now: Time) -> (Header, SendReason) {
        let reason = match self.times_sent {
            0 => SendReason::Handshake,
            _ => SendReason::HandshakeAgain,
        };
        self.times_sent = self.times_sent.saturating_add(1);
        self.sent = now;
        (self.syn_ack(config, Stamps::clock(self.initial.stamp_offset, now)), reason)
    }

    /// SYN with ACK, stamped with `clock` where stamps are agreed on.
    pub(crate) fn syn_ack(&self, config: &Config, clock: u32) -> Header {
        let stamps = self.agreement.timestamps;
        let stamps = stamps.then_some(Timestamps { value: clock, echo: self.stamp });
        Header {
            seq: self.initial.sequence,
            ack: Some(self.theirs + 1),
            syn: true,
            window: config.window_of_syn(),
            options: Handshake::options(config, Some(&self.agreement), stamps, clock),
            ..Header::default()
        }
    }

    /// Handles a segment of this connection whose checksum is right, in the order of RFC 9293, 3.10.7.4.
    pub fn handle_segment(
        &mut self,
        segment: &Segment<'_>,
        config: &Config,
        now: Time,
    ) -> HalfOpenOutcome {
        let header = &segment.header;
        let (expected, next) = (self.theirs + 1, self.initial.sequence + 1);
        if header.syn && !header.rst && header.seq == self.theirs {
            return match header.ack {
                Some(ack) if ack == next => HalfOpenOutcome::Completes,
                Some(_) => ignored(Ignored::StraySyn),
                None => {
                    let answer = Some(self.answer(config, now));
                    HalfOpenOutcome::Waits { ignored: None, challenge: None, answer }
                }
            };
        }
        if self.agreement.timestamps && !header.rst {
            let Some(stamps) = header.options.timestamps else { return ignored(Ignored::NoStamp) };
            if SequenceNumber(stamps.value).is_before(SequenceNumber(self.stamp)) {
                return self.challenge(Ignored::OldStamp, config, now);
            }
        }
        let (window, mss) = (config.window_of_syn().into(), config.mss.into());
        let is_in_window = acceptance::is_in_window(segment.range(), expected, window, mss);
        match header.ack {
            _ if header.rst && !is_in_window => ignored(Ignored::ResetElsewhere),
            _ if !is_in_window => self.challenge(Ignored::OutsideWindow, config, now),
            _ if header.rst && header.seq == expected => HalfOpenOutcome::Reset,
            _ if header.rst => self.challenge(Ignored::ResetElsewhere, config, now),
            _ if header.syn => self.challenge(Ignored::StraySyn, config, now),
            None => ignored(Ignored::NoAcknowledgement),
            Some(ack) if ack == next => HalfOpenOutcome::Completes,
            Some(_) => HalfOpenOutcome::Refuses,
        }
    }

    /// An acknowledgement that lets the peer prove what it has sent (RFC 5961), unless one left a moment ago.
    fn challenge(&mut self, why: Ignored, config: &Config, now: Time) -> HalfOpenOutcome {
        let is_sent = self.limit.permits(self.initial.stamp_offset, now);
        let stamps = self.agreement.timestamps.then(|| Timestamps {
            value: Stamps::clock(self.initial.stamp_offset, now),
            echo: self.stamp,
        });
        let header = Header {
            seq: self.initial.sequence + 1,
            ack: Some(self.theirs + 1),
            window: config.window_of_syn(),
            options: Options { timestamps: stamps, ..Options::default() },
            ..Header::default()
        };
        HalfOpenOutcome::Waits {
            ignored: Some(why),
            challenge: Some(if is_sent { Challenge::Sent } else { Challenge::Withheld }),
            answer: is_sent.then_some((header, SendReason::Challenge)),
        }
    }

    /// When to call [`HalfOpen::handle_timeout`].
    pub fn next_deadline(&self, config: &Config) -> Time {
        if self.times_sent >= ANSWERS { self.expires } else { self.retry(config).min(self.expires) }
    }

    /// Does what is due now. Calls before the deadline do nothing.
    pub fn handle_timeout(&mut self, config: &Config, now: Time) -> HalfOpenTimeout {
        if now >= self.expires {
            HalfOpenTimeout::Expired
        } else if now >= self.next_deadline(config) {
            HalfOpenTimeout::Resends(self.answer(config, now).0)
        } else {
            HalfOpenTimeout::Nothing
        }
    }

    /// When SYN with ACK is sent again, unless enough have been (RFC 6298, 5.5).
    fn retry(&self, config: &Config) -> Time {
        self.sent + Handshake::pause_after(self.times_sent, config)
    }

    /// Whether SYN with ACK was sent more than once: the peer has not acknowledged the first within the retransmission timeout, or
    /// has asked again.
    pub fn was_answered_twice(&self) -> bool {
        self.times_sent > 1
    }

    /// When SYN with ACK was sent last.
    pub fn sent_at(&self) -> Time {
        self.sent
    }

    /// The reset that tells the peer that nothing comes of it.
    pub fn reset(&self) -> Header {
        Header {
            seq: self.initial.sequence + 1,
            ack: Some(self.theirs + 1),
            rst: true,
            ..Header::default()
        }
    }

    /// The connection, in SYN-RECEIVED, for the segment that [completes](HalfOpenOutcome::Completes) the handshake.
    pub fn establish(&self, config: Arc<Config>, now: Time) -> Connection {
        let Agreement { mss, sack, timestamps, shifts } = self.agreement;
        let options = Options {
            mss: Some(mss),
            window_scale: shifts.map(|(_, theirs)| theirs),
            sack_permitted: sack,
            timestamps: timestamps.then_some(Timestamps { value: self.stamp, echo: 0 }),
            ..Options::default()
        };
        let syn = Header {
            seq: self.theirs,
            syn: true,
            window: self.window,
            options,
            ..Header::default()
        };
        let handshake = Handshake::answered(self.sent, self.times_sent, self.expires);
        Connection::answering(config, self.initial, &syn, handshake, now)
    }
}

fn ignored(why: Ignored) -> HalfOpenOutcome {
    HalfOpenOutcome::Waits { ignored: Some(why), challenge: None, answer: None }
}
