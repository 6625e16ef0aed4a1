//! NewReno (RFC 5681; RFC 6582).

use rheostat_base::Time;

use super::slow_start::SlowStart;
use super::{Acked, Congestion, initial_window};

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug)]
pub struct NewReno {
    mss: u32,
    window: u32,
    /// [`u32::MAX`] until a loss, or the first slow start, has set it.
    threshold: u32,
    start: SlowStart,
    /// Bytes acknowledged towards the next increase in congestion avoidance.
    acked: u32,
}

impl NewReno {
    /// With the initial window for segments of `mss` bytes.
    pub fn new(mss: u32) -> NewReno {
        NewReno {
            mss,
            window: initial_window(mss),
            threshold: u32::MAX,
            start: SlowStart::default(),
            acked: 0,
        }
    }

    fn halve(&mut self, in_flight: u32) {
        self.threshold = (in_flight / 2).max(2 * self.mss);
        self.acked = 0;
        self.start.end();
    }

    /// The first slow start leaves when delays rise (RFC 9406); later ones have the threshold.
    fn start_slowly(&mut self, acked: &Acked) {
        if self.threshold < u32::MAX {
            self.window = self.window.saturating_add(acked.bytes.min(self.mss));
            return;
        }
        let growth = self.start.on_ack(acked, self.window, self.mss);
        self.window = self.window.saturating_add(growth.bytes);
        if growth.is_over {
            self.threshold = self.window;
        }
    }
}

impl Congestion for NewReno {
    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        self.threshold
    }

    fn on_mss(&mut self, mss: u32) {
        *self = NewReno::new(mss);
    }

    fn on_segment_size(&mut self, mss: u32) {
        self.mss = mss;
        self.window = self.window.max(mss);
    }

    fn on_ack(&mut self, acked: Acked) {
        if self.window < self.threshold {
            self.start_slowly(&acked);
            return;
        }
        self.acked = self.acked.saturating_add(acked.bytes);
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window = self.window.saturating_add(self.mss);
        }
    }

    fn on_loss(&mut self, in_flight: u32, _: Time) {
        self.halve(in_flight);
        self.window = self.threshold;
    }

    fn on_timeout(&mut self, in_flight: u32, is_first: bool, _: Time) {
        if is_first {
            self.halve(in_flight);
        }
        self.window = self.mss;
    }

    fn on_idle(&mut self) {
        self.window = self.window.min(initial_window(self.mss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::SequenceNumber;

    const MSS: u32 = 1_000;

    fn acked(bytes: u32) -> Acked {
        let (una, next) = (SequenceNumber(0), SequenceNumber(0));
        Acked { bytes, now: Time::ZERO, round_trip: None, sample: None, una, next }
    }

    #[test]
    fn an_acknowledgement_adds_eight_segments_to_the_first_slow_start_and_one_to_later_ones() {
        let mut controller = NewReno::new(MSS);
        controller.on_ack(acked(20 * MSS));
        assert_eq!(controller.window(), 18 * MSS);
        controller.on_timeout(20 * MSS, true, Time::ZERO);
        controller.on_ack(acked(20 * MSS));
        assert_eq!(controller.window(), 2 * MSS);
        controller.on_ack(acked(10));
        assert_eq!(controller.window(), 2 * MSS + 10);
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_per_window() {
        let mut controller = NewReno::new(MSS);
        controller.on_loss(20 * MSS, Time::ZERO);
        assert_eq!((controller.window(), controller.threshold()), (10 * MSS, 10 * MSS));
        for _ in 0..9 {
            controller.on_ack(acked(MSS));
        }
        assert_eq!(controller.window(), 10 * MSS);
        controller.on_ack(acked(MSS));
        assert_eq!(controller.window(), 11 * MSS);
    }

    #[test]
    fn a_loss_leaves_half_of_what_is_in_flight_and_at_least_two_segments() {
        let mut controller = NewReno::new(MSS);
        controller.on_loss(3 * MSS, Time::ZERO);
        assert_eq!(controller.window(), 2 * MSS);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_repeated_ones_keep_the_threshold() {
        let mut controller = NewReno::new(MSS);
        controller.on_timeout(10 * MSS, true, Time::ZERO);
        assert_eq!((controller.window(), controller.threshold()), (MSS, 5 * MSS));
        controller.on_timeout(MSS, false, Time::ZERO);
        assert_eq!((controller.window(), controller.threshold()), (MSS, 5 * MSS));
    }

    #[test]
    fn a_restart_after_idling_has_at_most_the_initial_window() {
        let mut controller = NewReno::new(MSS);
        for _ in 0..30 {
            controller.on_ack(acked(MSS));
        }
        controller.on_idle();
        assert_eq!(controller.window(), 10 * MSS);
    }
}
