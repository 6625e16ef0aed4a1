//! Which segments and acknowledgements are acceptable (RFC 9293, 3.10.7.4; RFC 5961, 5).

use crate::sequence::{SequenceNumber, SequenceRange};

/// Whether a segment with these numbers has any in the window. Of one that begins at a closed window, and of one without data, it
/// is the acknowledgement that counts. The latter may lie at the end of the window, or as far behind a small one as a segment
/// reaches: the peer numbers it behind what it has sent, also if that was a probe, or found no memory here.
pub(crate) fn is_in_window(
    segment: SequenceRange,
    next: SequenceNumber,
    window: u32,
    mss: u32,
) -> bool {
    if segment.start == next {
        return true;
    }
    let window = SequenceRange::of_len(next, window);
    if segment.is_empty() {
        let most = window.len().max(mss);
        return segment.start.is_after(next) && segment.start.since(next) <= most;
    }
    !segment.intersection(window).is_empty()
}

/// Whether an acknowledgement is of something that was sent, and no older than a window of the peer.
pub(crate) fn is_plausible_ack(
    ack: SequenceNumber,
    una: SequenceNumber,
    next: SequenceNumber,
    largest_window: u32,
) -> bool {
    !ack.is_after(next) && !ack.is_before(una - largest_window)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: SequenceNumber = SequenceNumber(1_000);

    fn accepts(start: u32, len: u32, window: u32) -> bool {
        is_in_window(SequenceRange::of_len(SequenceNumber(start), len), NEXT, window, 100)
    }

    #[test]
    fn an_open_window_accepts_segments_that_overlap_it() {
        assert!(accepts(1_000, 0, 200) && accepts(1_200, 0, 200) && accepts(1_100, 0, 10));
        assert!(!accepts(999, 0, 200) && !accepts(1_201, 0, 200) && !accepts(1_101, 0, 10));
        assert!(accepts(990, 11, 10) && accepts(1_009, 50, 10));
        assert!(!accepts(990, 10, 10) && !accepts(1_010, 1, 10));
        assert!(!accepts(1_000 + (1 << 31) - 10, 50, 10));
    }

    #[test]
    fn a_closed_window_accepts_what_begins_at_it_or_behind_a_probe() {
        assert!(accepts(1_000, 0, 0) && accepts(1_000, 1, 0));
        assert!(!accepts(999, 1, 0) && !accepts(1_001, 1, 0));
        assert!(accepts(1_001, 0, 0) && accepts(1_100, 0, 0), "behind a probe");
        assert!(!accepts(1_101, 0, 0) && !accepts(999, 0, 0));
    }

    #[test]
    fn an_acknowledgement_of_something_never_sent_or_long_past_is_implausible() {
        let is_plausible = |ack| is_plausible_ack(SequenceNumber(ack), NEXT, NEXT + 50, 100);
        assert!(is_plausible(900) && is_plausible(1_000) && is_plausible(1_050));
        assert!(!is_plausible(899) && !is_plausible(1_051));
    }
}
