//! Time and egress inside a batch: what a long request must not do to others.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::Output;

/// A packet that takes longer is a long one: what was sent until then leaves, and the clock is read.
const LONG: Duration = Duration::from_micros(5);
/// For so many packets behind a long one, others are expected to be long: nothing sent waits for the next packet.
const EXPECTED: u32 = 64;

/// How fast packets are handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The time that later packets of the batch have at least: that at the end of the last long one.
    pub(super) now: Time,
    /// When the packet at hand was begun.
    began: Time,
    /// Packets that are expected to be long.
    expected: u32,
}

impl Pace {
    /// A batch begins.
    pub(super) fn begin(&mut self, out: &Output) {
        (self.now, self.began) = (Time::ZERO, out.read_clock());
    }

    /// A packet is done. Behind a long one, and as long as others are expected to be long, replies leave at once.
    #[inline]
    pub(super) fn end_packet(&mut self, out: &mut Output) {
        let now = out.read_clock();
        let is_long = now.since(self.began) > LONG;
        self.began = now;
        if is_long {
            self.expected = EXPECTED;
            self.now = now;
        }
        if self.expected > 0 {
            self.expected -= 1;
            out.flush();
        }
    }
}
