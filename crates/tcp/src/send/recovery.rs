//! Where a sender stands in repairing losses (RFC 6675, 5; RFC 6582, 3.2).

use super::scoreboard::DUPLICATES;
use crate::sequence::SequenceNumber;

/// Repairs end when everything that was in flight at their start is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryPhase {
    /// Nothing is being repaired.
    Open,
    /// A loss was found by acknowledgements.
    Fast {
        /// The end of what was in flight.
        until: SequenceNumber,
    },
    /// The retransmission timer has expired.
    Timeout {
        /// The end of what was in flight.
        until: SequenceNumber,
    },
}

/// The phase, and duplicate acknowledgements since the last that was not one.
#[derive(Debug)]
pub(crate) struct Recovery {
    phase: RecoveryPhase,
    duplicates: u32,
    /// Expiries of the timer since the last acknowledgement of new data.
    timeouts: u32,
    /// The first segment is to be sent again at once, whatever the congestion window says.
    pub(super) must_resend_first: bool,
}

impl Recovery {
    pub(crate) fn new() -> Recovery {
        Recovery {
            phase: RecoveryPhase::Open,
            duplicates: 0,
            timeouts: 0,
            must_resend_first: false,
        }
    }

    pub(crate) fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// Segments that have left the network as far as duplicates tell, which is what counts without SACK.
    pub(crate) fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Counts a duplicate. Returns whether it, or `is_lost`, begins a fast recovery.
    pub(crate) fn on_duplicate(&mut self, is_lost: bool, in_flight_end: SequenceNumber) -> bool {
        if matches!(self.phase, RecoveryPhase::Timeout { .. }) {
            return false;
        }
        self.duplicates += 1;
        let begins =
            self.phase == RecoveryPhase::Open && (self.duplicates >= DUPLICATES || is_lost);
        if begins {
            self.phase = RecoveryPhase::Fast { until: in_flight_end };
            self.must_resend_first = true;
        }
        begins
    }

    /// New data was acknowledged up to `una`, in so many segments. Returns whether a repair goes on: the acknowledgement was
    /// a partial one.
    pub(crate) fn on_ack(&mut self, una: SequenceNumber, segments: u32) -> bool {
        self.timeouts = 0;
        match self.phase {
            RecoveryPhase::Fast { until } if una.is_before(until) => {
                // One of the segments was the one sent again, the others have been counted as duplicates.
                self.duplicates = self.duplicates.saturating_sub(segments.saturating_sub(1));
                return true;
            }
            RecoveryPhase::Timeout { until } if una.is_before(until) => {}
            _ => self.phase = RecoveryPhase::Open,
        }
        self.duplicates = 0;
        self.must_resend_first = false;
        false
    }

    /// The retransmission timer has expired. Returns whether for the first time since new data was acknowledged.
    pub(crate) fn on_timeout(&mut self, in_flight_end: SequenceNumber) -> bool {
        self.phase = RecoveryPhase::Timeout { until: in_flight_end };
        self.duplicates = 0;
        self.must_resend_first = false;
        self.timeouts += 1;
        self.timeouts == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: SequenceNumber = SequenceNumber(1_000);

    #[test]
    fn the_third_duplicate_begins_a_recovery_and_further_ones_do_not() {
        let mut recovery = Recovery::new();
        let begins: Vec<bool> = (0..5).map(|_| recovery.on_duplicate(false, END)).collect();
        assert_eq!(begins, [false, false, true, false, false]);
    }

    #[test]
    fn a_partial_acknowledgement_keeps_the_recovery_and_a_full_one_ends_it() {
        let mut recovery = Recovery::new();
        assert!(recovery.on_duplicate(true, END));
        assert!(recovery.on_ack(END - 1, 1));
        assert!(!recovery.on_ack(END, 1));
        assert_eq!(recovery.phase(), RecoveryPhase::Open);
    }

    #[test]
    fn duplicates_after_a_timeout_begin_no_recovery_until_all_is_acknowledged() {
        let mut recovery = Recovery::new();
        recovery.on_timeout(END);
        assert!((0..5).all(|_| !recovery.on_duplicate(true, END)));
        assert!(!recovery.on_ack(END - 1, 1));
        assert_eq!(recovery.phase(), RecoveryPhase::Timeout { until: END });
        assert!(!recovery.on_ack(END, 1));
        assert!(recovery.on_duplicate(true, END + 5));
    }
}
