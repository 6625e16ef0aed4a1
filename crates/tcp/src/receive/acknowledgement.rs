//! When an acknowledgement is due (RFC 9293, 3.8.6.3; RFC 5681, 4.2).

use std::time::Duration;

use rheostat_base::Time;

use crate::deadline::Deadline;

/// The smallest size that counts as a full-sized segment.
const FULL_SIZE: u32 = 536;

/// At once, after a delay, or not at all.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
    deadline: Deadline,
    /// Bytes received since the last acknowledgement.
    pending: u32,
    /// The largest segment so far: peers put options into what their segments may hold.
    largest: u32,
    is_due: bool,
}

impl Acknowledgement {
    pub(crate) fn new() -> Acknowledgement {
        Acknowledgement { deadline: Deadline::NONE, pending: 0, largest: FULL_SIZE, is_due: false }
    }

    /// Data has arrived in order: acknowledged with the next segment, at the latest after `delay` or two full-sized segments.
    pub(crate) fn on_data(&mut self, bytes: u32, delay: Duration, now: Time) {
        self.largest = self.largest.max(bytes);
        self.pending += bytes;
        if self.pending >= 2 * self.largest {
            self.is_due = true;
        } else if self.deadline.is_none() {
            self.deadline = Deadline::at(now + delay);
        }
    }

    pub(crate) fn on_immediate(&mut self) {
        self.is_due = true;
    }

    /// A segment with an acknowledgement leaves.
    pub(crate) fn on_sent(&mut self) {
        self.is_due = false;
        self.deadline = Deadline::NONE;
        self.pending = 0;
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.deadline.has_come(now) {
            self.is_due = true;
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    pub(crate) fn deadline(&self) -> Deadline {
        if self.is_due { Deadline::NONE } else { self.deadline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(40);

    #[test]
    fn every_second_full_sized_segment_is_acknowledged_at_once() {
        let mut acknowledgement = Acknowledgement::new();
        acknowledgement.on_data(1_448, DELAY, Time::ZERO);
        assert!(!acknowledgement.is_due());
        acknowledgement.on_data(1_448, DELAY, Time::ZERO);
        assert!(acknowledgement.is_due());
        acknowledgement.on_sent();
        assert!(!acknowledgement.is_due() && acknowledgement.deadline().is_none());
    }

    #[test]
    fn a_small_segment_is_acknowledged_after_the_delay() {
        let mut acknowledgement = Acknowledgement::new();
        acknowledgement.on_data(1, DELAY, Time::from_millis(5));
        acknowledgement.on_data(1, DELAY, Time::from_millis(30));
        assert_eq!(acknowledgement.deadline().time(), Some(Time::from_millis(45)));
        acknowledgement.handle_timeout(Time::from_millis(44));
        assert!(!acknowledgement.is_due());
        acknowledgement.handle_timeout(Time::from_millis(45));
        assert!(acknowledgement.is_due());
    }
}
