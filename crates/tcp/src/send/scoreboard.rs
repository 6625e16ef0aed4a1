//! What of the data in flight has arrived, is lost, or was sent again (RFC 6675).

use crate::sequence::{SequenceNumber, SequenceRange};

/// So many ranges, or more than one fewer full segments, above a byte say that it is lost (DupThresh).
pub(crate) const DUPLICATES: u32 = 3;
/// Ranges that are noted at most. Blocks that would start another one are ignored.
const MAX_RANGES: usize = 128;

/// What is noted of data in flight. Of most connections, most of the time, that is nothing, and takes no memory: nothing has
/// arrived beyond a gap, nothing is lost, and nothing was sent again.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    notes: Option<Box<Notes>>,
}

/// Ranges that the peer has acknowledged selectively, disjoint and in order. All work is linear in their number.
#[derive(Debug)]
struct Notes {
    sacked: Vec<SequenceRange>,
    /// Everything before this that is not acknowledged was sent again (HighRxt).
    resent: SequenceNumber,
    /// Everything before this that is not acknowledged is lost, whatever the ranges say.
    lost: SequenceNumber,
    /// The end of the recovery that has had its rescue (RescueRxt).
    rescued: Option<SequenceNumber>,
}

impl Scoreboard {
    /// Notes a block about data in flight, and returns whether it tells anything new. Blocks about other data, and reports of
    /// duplicates among them, do not (RFC 2883, 4).
    pub(crate) fn add(&mut self, block: SequenceRange, in_flight: SequenceRange) -> bool {
        if !in_flight.contains(block) || block.is_empty() {
            return false;
        }
        self.noted(in_flight).add(block)
    }

    /// Everything before `una` is acknowledged.
    pub(crate) fn on_ack(&mut self, una: SequenceNumber) {
        if let Some(notes) = &mut self.notes {
            notes.on_ack(una);
            if notes.are_over(una) {
                self.notes = None;
            }
        }
    }

    /// The first segment is lost. Repairs start with it.
    pub(crate) fn on_loss(&mut self, in_flight: SequenceRange, mss: u32) {
        let notes = self.noted(in_flight);
        notes.lost = notes.lost.max(in_flight.end.min(in_flight.start + mss));
        notes.resent = in_flight.start;
        notes.rescued = None;
    }

    /// All data in flight is lost, also what the peer has said it holds: it may have dropped it (RFC 2018, 8).
    pub(crate) fn on_timeout(&mut self, in_flight: SequenceRange) {
        let notes = self.noted(in_flight);
        notes.sacked.clear();
        notes.lost = in_flight.end;
        notes.resent = in_flight.start;
        notes.rescued = None;
    }

    /// A segment that begins at `from` was too big for the path, and so may be all behind it: lost, unless it has arrived.
    pub(crate) fn on_too_big(&mut self, in_flight: SequenceRange, from: SequenceNumber) {
        let notes = self.noted(in_flight);
        notes.lost = in_flight.end;
        notes.resent = from.max(in_flight.start);
    }

    pub(crate) fn on_retransmitted(&mut self, in_flight: SequenceRange, end: SequenceNumber) {
        let notes = self.noted(in_flight);
        notes.resent = notes.resent.max(end);
    }

    /// The number before which everything that is neither acknowledged nor among the ranges is lost (IsLost).
    pub(crate) fn lost_before(&self, in_flight: SequenceRange, mss: u32) -> SequenceNumber {
        self.notes.as_ref().map_or(in_flight.start, |notes| notes.lost_before(mss))
    }

    /// The next range to send again: lost, and not sent again yet (NextSeg, rule 1).
    pub(crate) fn next_lost(&self, in_flight: SequenceRange, mss: u32) -> Option<SequenceRange> {
        let notes = self.notes.as_ref()?;
        notes.first_unsacked(in_flight, notes.lost_before(mss))
    }

    /// The next range that may be sent again when there is nothing better to send: below one that has arrived (NextSeg, rule 3).
    pub(crate) fn next_hole(&self, in_flight: SequenceRange) -> Option<SequenceRange> {
        let notes = self.notes.as_ref()?;
        notes.first_unsacked(in_flight, notes.sacked.last()?.start)
    }

    /// The end of what is in flight, at most `max` numbers, once in a recovery that ends at `until`: without it, a loss at the end
    /// is found by the timer alone (NextSeg, rule 4). Nothing when that end was sent again in this recovery already, which the rule as
    /// written sends twice in a row.
    pub(crate) fn rescue(
        &self,
        in_flight: SequenceRange,
        until: SequenceNumber,
        max: u32,
    ) -> Option<SequenceRange> {
        let nothing = Notes::new(in_flight.start);
        self.notes.as_deref().unwrap_or(&nothing).rescue(in_flight, until, max)
    }

    /// The rescue leaves. It does not count as sent again: what is before it may still be (RFC 6675, 4).
    pub(crate) fn on_rescued(&mut self, in_flight: SequenceRange, until: SequenceNumber) {
        self.noted(in_flight).rescued = Some(until);
    }

    /// Bytes that are thought to be in the network (SetPipe).
    pub(crate) fn pipe(&self, in_flight: SequenceRange, mss: u32) -> u32 {
        self.notes.as_ref().map_or(in_flight.len(), |notes| notes.pipe(in_flight, mss))
    }

    /// Whether ranges are disjoint, in order and in flight, and what was sent again and is lost was in flight, too.
    pub(super) fn is_sound(&self, in_flight: SequenceRange) -> bool {
        self.notes.as_ref().is_none_or(|notes| notes.are_sound(in_flight))
    }

    fn noted(&mut self, in_flight: SequenceRange) -> &mut Notes {
        self.notes.get_or_insert_with(|| Box::new(Notes::new(in_flight.start)))
    }
}

impl Notes {
    fn new(una: SequenceNumber) -> Notes {
        Notes { sacked: Vec::new(), resent: una, lost: una, rescued: None }
    }

    /// Adds a block of data in flight. Returns whether there was anything new, and room for it.
    fn add(&mut self, block: SequenceRange) -> bool {
        if self.unsacked(block) == 0 {
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

    fn on_ack(&mut self, una: SequenceNumber) {
        self.sacked.retain_mut(|range| {
            range.start = range.start.max(una);
            !range.is_empty()
        });
        self.resent = self.resent.max(una);
        self.lost = self.lost.max(una);
    }

    /// Whether they say no more than that everything before `una` is acknowledged. The rescue is noted until its recovery ends.
    fn are_over(&self, una: SequenceNumber) -> bool {
        self.sacked.is_empty()
            && (self.resent, self.lost) == (una, una)
            && self.rescued.is_none_or(|until| !until.is_after(una))
    }

    fn lost_before(&self, mss: u32) -> SequenceNumber {
        let mut bytes = 0;
        for (ranges, range) in (1..).zip(self.sacked.iter().rev()) {
            bytes += range.len();
            if ranges >= DUPLICATES || bytes > (DUPLICATES - 1) * mss {
                return self.lost.max(range.start);
            }
        }
        self.lost
    }

    fn rescue(
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
        (!range.is_empty() && range.end.is_after(self.resent)).then_some(range)
    }

    fn pipe(&self, in_flight: SequenceRange, mss: u32) -> u32 {
        let lost = self.lost_before(mss).max(in_flight.start).min(in_flight.end);
        let original = SequenceRange { start: lost, end: in_flight.end };
        let again = SequenceRange { start: in_flight.start, end: self.resent.min(in_flight.end) };
        self.unsacked(original) + self.unsacked(again)
    }

    fn are_sound(&self, in_flight: SequenceRange) -> bool {
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
        let mut board = Scoreboard::default();
        for segment in segments {
            assert!(board.add(range(*segment..segment + 1), range(0..10)));
        }
        board
    }

    #[test]
    fn two_ranges_above_a_byte_do_not_make_it_lost_and_three_do() {
        assert_eq!(with_sacked(&[2, 4]).lost_before(range(0..10), MSS), SequenceNumber(0));
        assert_eq!(with_sacked(&[2, 4, 6]).lost_before(range(0..10), MSS), SequenceNumber(20));
    }

    #[test]
    fn more_than_two_segments_above_a_byte_make_it_lost() {
        assert_eq!(with_sacked(&[2, 3]).lost_before(range(0..10), MSS), SequenceNumber(0));
        assert_eq!(with_sacked(&[2, 3, 4]).lost_before(range(0..10), MSS), SequenceNumber(20));
    }

    #[test]
    fn holes_are_sent_again_in_order_and_once() {
        let mut board = with_sacked(&[1, 3, 4, 5]);
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(0..1)));
        board.on_retransmitted(range(0..10), SequenceNumber(10));
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(2..3)));
        board.on_retransmitted(range(0..10), SequenceNumber(30));
        assert_eq!(board.next_lost(range(0..10), MSS), None);
    }

    #[test]
    fn the_pipe_has_what_is_neither_lost_nor_received_and_what_was_sent_again() {
        let mut board = with_sacked(&[1, 3, 4, 5]);
        // Lost: 0 and 2. In the network: 6 to 9.
        assert_eq!(board.pipe(range(0..10), MSS), 4 * MSS);
        board.on_retransmitted(range(0..10), SequenceNumber(10));
        assert_eq!(board.pipe(range(0..10), MSS), 5 * MSS);
    }

    #[test]
    fn the_rescue_is_the_end_of_what_has_not_arrived_and_comes_once() {
        let until = SequenceNumber(100);
        let mut board = with_sacked(&[1, 2, 3, 5]);
        assert_eq!(board.rescue(range(0..10), until, MSS), Some(range(9..10)));
        assert_eq!(board.rescue(range(0..10), until, 1_000), Some(range(6..10)));
        board.on_rescued(range(0..10), until);
        assert_eq!(board.rescue(range(0..10), until, MSS), None);
        // The holes are still sent again from the first on.
        assert_eq!(board.next_lost(range(0..10), MSS), Some(range(0..1)));
        assert_eq!(with_sacked(&[8, 9]).rescue(range(0..10), until, MSS), Some(range(7..8)));
        assert_eq!(with_sacked(&[0, 1]).rescue(range(0..2), until, MSS), None);
        let mut repaired = with_sacked(&[8, 9]);
        repaired.on_retransmitted(range(0..10), range(0..7).end);
        assert_eq!(repaired.rescue(range(0..10), until, MSS), Some(range(7..8)));
        repaired.on_retransmitted(range(0..10), range(0..8).end);
        assert_eq!(repaired.rescue(range(0..10), until, MSS), None);
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
        assert_eq!(board.notes.unwrap().sacked, [range(4..5)]);
    }

    #[test]
    fn ranges_are_bounded() {
        let mut board = Scoreboard::default();
        let all = range(0..1_000);
        let noted = (0..500).filter(|i| board.add(range(2 * i..2 * i + 1), all)).count();
        assert_eq!((noted, board.notes.unwrap().sacked.len()), (MAX_RANGES, MAX_RANGES));
    }

    #[test]
    fn notes_go_with_what_they_are_about_and_that_of_a_rescue_with_its_recovery() {
        let mut board = with_sacked(&[4]);
        board.on_loss(range(0..10), MSS);
        board.on_rescued(range(0..10), SequenceNumber(80));
        board.on_ack(SequenceNumber(70));
        assert_eq!(board.rescue(range(7..10), SequenceNumber(80), MSS), None);
        board.on_ack(SequenceNumber(80));
        assert!(board.notes.is_none());
        assert_eq!(board.pipe(range(8..10), MSS), 2 * MSS);
        assert_eq!(board.lost_before(range(8..10), MSS), SequenceNumber(80));
    }

    #[test]
    fn a_recovery_of_which_nothing_is_noted_any_more_still_has_its_rescue() {
        let mut board = Scoreboard::default();
        board.on_loss(range(0..10), MSS);
        board.on_ack(SequenceNumber(50));
        assert!(board.notes.is_none());
        assert_eq!(board.rescue(range(5..10), SequenceNumber(100), MSS), Some(range(9..10)));
        board.on_rescued(range(5..10), SequenceNumber(100));
        assert_eq!(board.rescue(range(5..10), SequenceNumber(100), MSS), None);
    }
}
