//! What of the data in flight has arrived, is lost, or was sent again (RFC 6675).

use crate::sequence::{SequenceNumber, SequenceRange};

/// So many ranges, or more than one fewer full segments, above a byte say that it is lost (DupThresh).
pub(crate) const DUPLICATES: u32 = 3;
/// Ranges that are noted at most. Blocks that would start another one are ignored.
const MAX_RANGES: usize = 128;

/// Ranges that the peer has acknowledged selectively, disjoint and in order. All work is linear in their number.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    sacked: Vec<SequenceRange>,
    /// Everything before this that is not acknowledged was sent again (HighRxt).
    resent: SequenceNumber,
    /// Everything before this that is not acknowledged is lost, whatever the ranges say.
    lost: SequenceNumber,
    /// The end of the recovery that has had its rescue (RescueRxt).
    rescued: Option<SequenceNumber>,
}

impl Scoreboard {
    pub(crate) fn new(una: SequenceNumber) -> Scoreboard {
        Scoreboard { sacked: Vec::new(), resent: una, lost: una, rescued: None }
    }

    /// Notes a block about data in flight, and returns whether it tells anything new. Blocks about other data, and reports of
    /// duplicates among them, do not (RFC 2883, 4).
    pub(crate) fn add(&mut self, block: SequenceRange, in_flight: SequenceRange) -> bool {
        if !in_flight.contains(block) || self.unsacked(block) == 0 {
            return false;
        }
        let first = self.sacked.partition_point(|range| range.end.is_before(block.start));
        let touching = self.sacked[first..].iter().take_while(|range| range.touches(block)).count();
        if touching == 0 && self.sacked.len() == MAX_RANGES {
            return false;
        }
        let mut joined = block;
        for range in self.sacked.drain(first..first + touching) {
            joined.start = joined.start.min(range.start);
            joined.end = joined.end.max(range.end);
        }
        self.sacked.insert(first, joined);
        true
    }

    /// Everything before `una` is acknowledged.
    pub(crate) fn on_ack(&mut self, una: SequenceNumber) {
        self.sacked.retain_mut(|range| {
            range.start = range.start.max(una);
            !range.is_empty()
        });
        self.resent = self.resent.max(una);
        self.lost = self.lost.max(una);
    }

    /// The first segment is lost. Repairs start with it.
    pub(crate) fn on_loss(&mut self, in_flight: SequenceRange, mss: u32) {
        self.lost = self.lost.max(in_flight.end.min(in_flight.start + mss));
        self.resent = in_flight.start;
        self.rescued = None;
    }

    /// All data in flight is lost, also what the peer has said it holds: it may have dropped it (RFC 2018, 8).
    pub(crate) fn on_timeout(&mut self, in_flight: SequenceRange) {
        self.sacked.clear();
        self.lost = in_flight.end;
        self.resent = in_flight.start;
        self.rescued = None;
    }

    /// A segment that begins at `from` was too big for the path, and so may be all behind it: lost, unless it has arrived.
    pub(crate) fn on_too_big(&mut self, in_flight: SequenceRange, from: SequenceNumber) {
        self.lost = in_flight.end;
        self.resent = from.max(in_flight.start);
    }

    pub(crate) fn on_retransmitted(&mut self, end: SequenceNumber) {
        self.resent = self.resent.max(end);
    }

    /// Everything before this that is not acknowledged is lost (IsLost).
    pub(crate) fn lost_before(&self, mss: u32) -> SequenceNumber {
        let mut bytes = 0;
        for (ranges, range) in (1..).zip(self.sacked.iter().rev()) {
            bytes += range.len();
            if ranges >= DUPLICATES || bytes > (DUPLICATES - 1) * mss {
                return self.lost.max(range.start);
            }
        }
        self.lost
    }

    /// The next range to send again: lost, and not sent again yet (NextSeg, rule 1).
    pub(crate) fn next_lost(&self, in_flight: SequenceRange, mss: u32) -> Option<SequenceRange> {
        self.first_unsacked(in_flight, self.lost_before(mss))
    }

    /// The next range that may be sent again when there is nothing better to send: below one that has arrived (NextSeg, rule 3).
    pub(crate) fn next_hole(&self, in_flight: SequenceRange) -> Option<SequenceRange> {
        self.first_unsacked(in_flight, self.sacked.last()?.start)
    }

    /// The end of what is in flight, at most `max` numbers, once in a recovery that ends at `until`: without it, a loss at the end
    /// is found by the timer alone (NextSeg, rule 4).
    pub(crate) fn rescue(
        &self,
        in_flight: SequenceRange,
        until: SequenceNumber,
        max: u32,
    ) -> Option<SequenceRange> {
        if self.rescued == Some(until) {
            return None;
        }
        let mut last = in_flight;
        for range in self.sacked.iter().rev().take_while(|range| range.end == in_flight.end) {
            last.end = range.start;
        }
        let below = self.sacked.iter().rev().find(|range| range.start.is_before(last.end));
        last.start = below.map_or(last.start, |range| last.start.max(range.end));
        let len = last.len().min(max);
        let range = SequenceRange::of_len(last.end - len, len);
        (!range.is_empty()).then_some(range)
    }

    /// The rescue leaves. It does not count as sent again: what is before it may still be (RFC 6675, 4).
    pub(crate) fn on_rescued(&mut self, until: SequenceNumber) {
        self.rescued = Some(until);
    }

    /// Bytes that are thought to be in the network (SetPipe).
    pub(crate) fn pipe(&self, in_flight: SequenceRange, mss: u32) -> u32 {
        let lost = self.lost_before(mss).max(in_flight.start).min(in_flight.end);
        let original = SequenceRange { start: lost, end: in_flight.end };
        let again = SequenceRange { start: in_flight.start, end: self.resent.min(in_flight.end) };
        self.unsacked(original) + self.unsacked(again)
    }

    /// Whether ranges are disjoint, in order and in flight, and what was sent again and is lost was in flight, too.
    pub(super) fn is_sound(&self, in_flight: SequenceRange) -> bool {
        let is_inside = |number: SequenceNumber| {
            !number.is_before(in_flight.start) && !number.is_after(in_flight.end)
        };
        self.sacked.is_sorted_by(|range, next| range.end.is_before(next.start))
            && self.sacked.iter().all(|range| !range.is_empty() && in_flight.contains(*range))
            && self.sacked.len() <= MAX_RANGES
            && is_inside(self.resent)
            && is_inside(self.lost)
    }

    fn first_unsacked(
        &self,
        in_flight: SequenceRange,
        before: SequenceNumber,
    ) -> Option<SequenceRange> {
        let mut start = self.resent.max(in_flight.start);
        let mut end = before.min(in_flight.end);
        for range in &self.sacked {
            if range.start.is_after(start) {
                end = end.min(range.start);
                break;
            }
            start = start.max(range.end);
        }
        let range = SequenceRange { start, end };
        (!range.is_empty()).then_some(range)
    }

    fn unsacked(&self, range: SequenceRange) -> u32 {
        let sacked: u32 = self.sacked.iter().map(|sacked| sacked.intersection(range).len()).sum();
        range.len() - sacked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 10;

    /// The numbers of segments `segments`, which have ten bytes each.
    fn range(segments: std::ops::Range<u32>) -> SequenceRange {
        SequenceRange::of_len(
            SequenceNumber(segments.start * MSS),
            (segments.end - segments.start) * MSS,
        )
    }

    /// Ten segments in flight, of which these have arrived.
    fn with_sacked(segments: &[u32]) -> Scoreboard {
        let mut board = Scoreboard::new(SequenceNumber(0));
        for segment in segments {
            assert!(board.add(range(*segment..segment + 1), range(0..10)));
        }
        board
    }

    #[test]
    fn two_ranges_above_a_byte_do_not_make_it_lost_and_three_do() {
        assert_eq!(with_sacked(&[2, 4]).lost_before(MSS), SequenceNumber(0));
        assert_eq!(with_sacked(&[2, 4, 6]).lost_before(MSS), SequenceNumber(20));
    }

    #[test]
    fn more_than_two_segments_above_a_byte_make_it_lost() {
        assert_eq!(with_sacked(&[2, 3]).lost_before(MSS), SequenceNumber(0));
        assert_eq!(with_sacked(&[2, 3, 4]).lost_before(MSS), SequenceNumber(20));
    }

    #[test]
    fn holes_are_sent_again_in_order_and_once() {
        let mut board = with_sacked(&[1, 3, 4, 5]);
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(0..1)));
        board.on_retransmitted(SequenceNumber(10));
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(2..3)));
        board.on_retransmitted(SequenceNumber(30));
        assert_eq!(board.next_lost(range(0..10), MSS), None);
    }

    #[test]
    fn the_pipe_has_what_is_neither_lost_nor_received_and_what_was_sent_again() {
        let mut board = with_sacked(&[1, 3, 4, 5]);
        // Lost: 0 and 2. In the network: 6 to 9.
        assert_eq!(board.pipe(range(0..10), MSS), 4 * MSS);
        board.on_retransmitted(SequenceNumber(10));
        assert_eq!(board.pipe(range(0..10), MSS), 5 * MSS);
    }

    #[test]
    fn the_rescue_is_the_end_of_what_has_not_arrived_and_comes_once() {
        let until = SequenceNumber(100);
        let mut board = with_sacked(&[1, 2, 3, 5]);
        assert_eq!(board.rescue(range(0..10), until, MSS), Some(range(9..10)));
        assert_eq!(board.rescue(range(0..10), until, 1_000), Some(range(6..10)));
        board.on_rescued(until);
        assert_eq!(board.rescue(range(0..10), until, MSS), None);
        // The holes are still sent again from the first on.
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(0..1)));
        assert_eq!(with_sacked(&[8, 9]).rescue(range(0..10), until, MSS), Some(range(7..8)));
        assert_eq!(with_sacked(&[0, 1]).rescue(range(0..2), until, MSS), None);
    }

    #[test]
    fn from_a_segment_that_was_too_big_on_all_that_has_not_arrived_is_lost() {
        let mut board = with_sacked(&[6]);
        board.on_too_big(range(0..10), SequenceNumber(40));
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(4..6)));
        // In the network: what was sent before it.
        assert_eq!(board.pipe(range(0..10), MSS), 4 * MSS);
    }

    #[test]
    fn a_timeout_forgets_what_the_peer_may_have_dropped() {
        let mut board = with_sacked(&[1, 3, 4, 5]);
        board.on_timeout(range(0..10));
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(0..10)));
        assert_eq!(board.pipe(range(0..10), MSS), 0);
    }

    #[test]
    fn blocks_about_data_not_in_flight_tell_nothing() {
        let mut board = with_sacked(&[4]);
        assert!(!board.add(range(9..12), range(0..10)));
        assert!(!board.add(range(0..2), range(1..10)));
        let around =
            SequenceRange { start: SequenceNumber((1 << 31) - 1), end: SequenceNumber(0) - 5 };
        assert!(!around.is_empty() && !board.add(around, range(0..10)));
        assert!(!board.add(range(4..5), range(0..10)));
        assert_eq!(board.sacked, [range(4..5)]);
    }

    #[test]
    fn ranges_are_bounded() {
        let mut board = Scoreboard::new(SequenceNumber(0));
        let all = range(0..1_000);
        let noted = (0..500).filter(|i| board.add(range(2 * i..2 * i + 1), all)).count();
        assert_eq!((noted, board.sacked.len()), (MAX_RANGES, MAX_RANGES));
    }
}
