//! Time stamps: ours, the peer's latest, and protection against old segments (RFC 7323, 4 and 5).

use std::time::Duration;

use rheostat_base::Time;

use crate::options::Timestamps;
use crate::sequence::SequenceNumber;

/// After so many seconds without a segment the latest stamp says nothing (RFC 7323, 5.5).
const OUTDATED: u32 = 24 * 24 * 60 * 60;

/// The stamps of a connection that uses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// What our clock starts from, so that it does not tell how long the machine runs.
    offset: u32,
    /// What the latest segment was stamped with.
    sent: u32,
    recent: u32,
    /// When that was, in seconds.
    recent_at: u32,
}

impl Stamps {
    /// With the stamp of the peer's SYN.
    pub(crate) fn new(offset: u32, recent: u32, now: Time) -> Stamps {
        Stamps { offset, sent: Stamps::clock(offset, now), recent, recent_at: seconds(now) }
    }

    /// Our clock: milliseconds.
    pub(crate) fn clock(offset: u32, now: Time) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(offset)
    }

    /// What a segment is stamped with. Never less than the one before, which the peer would drop as old, even when the caller's
    /// clock is behind: a lane that a connection has moved to may have begun its poll earlier.
    pub(crate) fn stamp(&mut self, now: Time) -> Timestamps {
        let clock = Stamps::clock(self.offset, now);
        if SequenceNumber(clock).is_after(SequenceNumber(self.sent)) {
            self.sent = clock;
        }
        Timestamps { value: self.sent, echo: self.recent }
    }

    /// How long ago the segment was sent that this one echoes, as far as that can be true.
    pub(crate) fn round_trip(&self, stamps: Timestamps, now: Time) -> Option<Duration> {
        let elapsed = Stamps::clock(self.offset, now).wrapping_sub(stamps.echo);
        (stamps.echo != 0 && elapsed < 1 << 31).then(|| Duration::from_millis(elapsed.into()))
    }

    /// Whether the segment is older than one received before.
    pub(crate) fn is_old(&self, stamps: Timestamps, now: Time) -> bool {
        SequenceNumber(stamps.value).is_before(SequenceNumber(self.recent))
            && seconds(now).saturating_sub(self.recent_at) < OUTDATED
    }

    /// Whether the segment was sent later than all received before.
    pub(crate) fn is_earlier_than(&self, stamps: Timestamps) -> bool {
        SequenceNumber(stamps.value).is_after(SequenceNumber(self.recent))
    }

    /// Takes the stamp of an acceptable segment, unless it starts beyond what was acknowledged last.
    pub(crate) fn on_segment(
        &mut self,
        stamps: Timestamps,
        seq: SequenceNumber,
        last_ack: SequenceNumber,
        now: Time,
    ) {
        if !self.is_old(stamps, now) && !seq.is_after(last_ack) {
            self.recent = stamps.value;
            self.recent_at = seconds(now);
        }
    }
}

fn seconds(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn with_value(value: u32) -> Timestamps {
        Timestamps { value, echo: 0 }
    }

    #[test]
    fn older_stamps_are_old_until_24_days_have_passed() {
        let stamps = Stamps::new(0, 1_000, Time::ZERO);
        assert!(stamps.is_old(with_value(999), Time::from_secs(1)));
        assert!(!stamps.is_old(with_value(1_000), Time::from_secs(1)));
        assert!(!stamps.is_old(with_value(999), Time::from_secs(24 * DAY)));
    }

    #[test]
    fn a_segment_beyond_the_last_acknowledgement_does_not_set_the_echo() {
        let mut stamps = Stamps::new(0, 1, Time::ZERO);
        stamps.on_segment(with_value(5), SequenceNumber(101), SequenceNumber(100), Time::ZERO);
        assert_eq!(stamps.stamp(Time::ZERO).echo, 1);
        stamps.on_segment(with_value(6), SequenceNumber(100), SequenceNumber(100), Time::ZERO);
        assert_eq!(stamps.stamp(Time::ZERO).echo, 6);
    }

    #[test]
    fn stamps_do_not_go_back_with_the_clock() {
        let mut stamps = Stamps::new(u32::MAX - 5, 1, Time::ZERO);
        let values = [3, 10, 2, 11].map(|at| stamps.stamp(Time::from_millis(at)).value);
        assert_eq!(values, [u32::MAX - 2, 4, 4, 5]);
    }

    #[test]
    fn an_echo_from_the_future_measures_nothing() {
        let stamps = Stamps::new(7, 1, Time::ZERO);
        let now = Time::from_millis(100);
        let echo = |echo| Timestamps { value: 0, echo };
        assert_eq!(stamps.round_trip(echo(57), now), Some(Duration::from_millis(50)));
        assert_eq!(stamps.round_trip(echo(108), now), None);
    }
}
