//! Time and egress inside a batch: what a long request must not do to others.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::Output;

/// A packet that takes longer is a long one: what was sent until then leaves, and the clock is read.
const LONG: Duration = Duration::from_micros(5);
/// Work that takes longer lets another lane look for packets: waking one takes some microseconds.
const LONG_WORK: Duration = Duration::from_micros(50);
/// For so many packets behind a long one, others are expected to be long: nothing sent waits for the next packet.
const EXPECTED: u32 = 64;

/// How fast packets are handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The time that later packets have at least, and whatever else the lane does: that at the end of the last long one. What
    /// begins afterwards in the same poll is called with an older time.
    pub(super) now: Time,
    /// When the packet at hand was begun.
    began: Time,
    /// Packets that are expected to be long.
    expected: u32,
    /// Whether what is sent for the work at hand leaves at once.
    leaves: bool,
    /// Whether the last work that was put off took long enough for another lane to look for packets.
    had_long_work: bool,
}

impl Pace {
    /// When the packet at hand was begun.
    #[inline]
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// A batch begins: when the poll did, or at the end of what came before in it.
    pub(super) fn begin(&mut self, out: &Output) {
        self.began = self.began.max(out.began());
    }

    /// A packet is done. Behind a long one, and as long as others are expected to be long, replies leave at once.
    #[inline]
    pub(super) fn end_packet(&mut self, out: &mut Output) {
        if self.note_end(out.read_clock()) {
            out.flush();
        }
    }

    /// Work that was put off is done; what is sent for it comes next.
    #[inline]
    pub(super) fn end_work(&mut self, out: &Output) {
        self.note_work_end(out.read_clock());
    }

    fn note_work_end(&mut self, now: Time) {
        self.had_long_work = now.since(self.began) > LONG_WORK;
        self.leaves = self.note_end(now);
    }

    /// Whether the last work that was put off took long.
    #[inline]
    pub(super) fn had_long_work(&self) -> bool {
        self.had_long_work
    }

    /// What is sent for such work is sent.
    #[inline]
    pub(super) fn end_settlement(&mut self, out: &mut Output) {
        if self.leaves {
            out.flush();
        }
    }

    /// A packet is done at `now`. Returns whether what was sent is to leave.
    #[inline]
    fn note_end(&mut self, now: Time) -> bool {
        let is_long = now.since(self.began) > LONG;
        self.began = now;
        if is_long {
            self.expected = EXPECTED;
            self.now = now;
        }
        let leaves = self.expected > 0;
        self.expected = self.expected.saturating_sub(1);
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: fn(u64) -> Time = |micros| Time::from_nanos(micros * 1_000);

    #[test]
    fn behind_a_long_packet_replies_leave_at_once_and_time_goes_on() {
        let mut pace = Pace { began: MICROS(100), ..Pace::default() };
        assert!(!pace.note_end(MICROS(104)) && !pace.note_end(MICROS(109)));
        assert_eq!(pace.now, Time::ZERO, "short ones go by the time at which they came");
        assert!(pace.note_end(MICROS(115)));
        assert_eq!(pace.now, MICROS(115));
        let short = (1..EXPECTED).filter(|n| pace.note_end(MICROS(115 + u64::from(*n))));
        assert_eq!(short.count() as u32, EXPECTED - 1, "the next one may be long again");
        assert_eq!(pace.now, MICROS(115));
        assert!(!pace.note_end(MICROS(115 + u64::from(EXPECTED))));
    }
    #[test]
    fn work_is_expected_to_take_as_long_as_the_last() {
        let mut pace = Pace { began: MICROS(100), ..Pace::default() };
        assert!(!pace.had_long_work());
        for (now, is_long) in [(160, true), (161, false), (240, true), (290, false)] {
            pace.note_work_end(MICROS(now));
            assert_eq!(pace.had_long_work(), is_long, "{now}");
        }
    }
}
