//! The window that is offered to the peer (RFC 9293, 3.8.6.2.2; RFC 7323, 2).

use crate::sequence::SequenceNumber;

/// What the peer may send. Its right edge never moves left, but for what the scale rounds off.
#[derive(Debug)]
pub(crate) struct OfferedWindow {
    /// The number after the last that the peer was told it may send.
    edge: SequenceNumber,
    shift: u8,
    /// A move of the edge that is worth telling: less would make the peer send small segments.
    least_move: u32,
}

impl OfferedWindow {
    /// A window for a buffer of this size, nothing of which is offered yet.
    pub(crate) fn new(next: SequenceNumber, shift: u8, limit: u32, mss: u32) -> OfferedWindow {
        OfferedWindow { edge: next, shift, least_move: least_move(limit, mss) }
    }

    /// The buffer has another size.
    pub(crate) fn on_limit(&mut self, limit: u32, mss: u32) {
        self.least_move = least_move(limit, mss);
    }

    pub(crate) fn edge(&self) -> SequenceNumber {
        self.edge
    }

    /// Sets what the peer was told by a window that is not scaled, as in a SYN.
    pub(crate) fn on_unscaled(&mut self, next: SequenceNumber, window: u16) {
        self.edge = self.edge.max(next + u32::from(window));
    }

    /// The window field of a segment that acknowledges up to `next` while there is this much room behind it.
    pub(crate) fn offer(&mut self, next: SequenceNumber, room: u32) -> u16 {
        let target = next + room;
        let edge =
            if target.since(self.edge) >= self.least_move { target } else { self.edge.max(next) };
        let window = (edge.since(next) >> self.shift).min(u16::MAX.into());
        self.edge = self.edge.max(next + (window << self.shift));
        window as u16
    }

    /// Whether the peer should be told of this much room by a segment of its own.
    pub(crate) fn is_update_worthwhile(&self, next: SequenceNumber, room: u32) -> bool {
        let target = next + room;
        let most = u32::from(u16::MAX) << self.shift;
        // Twice the least move, unless nothing is left of the window.
        let left = self.edge.since(next);
        let enough = if left < self.least_move { self.least_move } else { 2 * self.least_move };
        target.min(next + most).since(self.edge) >= enough
    }
}

fn least_move(limit: u32, mss: u32) -> u32 {
    mss.min(limit / 2).max(1)
}

/// The smallest shift with which a window of `limit` bytes can be told.
pub(crate) fn shift_for(limit: usize) -> u8 {
    let bits = usize::BITS - (limit >> 16).leading_zeros();
    bits.min(u32::from(crate::options::MAX_WINDOW_SCALE)) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: SequenceNumber = SequenceNumber(1_000);

    #[test]
    fn a_shift_is_as_small_as_the_buffer_allows() {
        let shifts = [1, 65_535, 65_536, 131_071, 131_072, 1 << 30].map(shift_for);
        assert_eq!(shifts, [0, 0, 1, 1, 2, 14]);
    }

    #[test]
    fn small_gains_of_room_are_not_offered() {
        let mut window = OfferedWindow::new(START, 0, 10_000, 1_000);
        assert_eq!(window.offer(START, 10_000), 10_000);
        // The peer sends everything, the user reads 999 bytes, then one more.
        let next = START + 10_000;
        assert_eq!(window.offer(next, 999), 0);
        assert!(!window.is_update_worthwhile(next, 999));
        assert!(window.is_update_worthwhile(next, 1_000));
        assert_eq!(window.offer(next, 1_000), 1_000);
    }

    #[test]
    fn half_of_a_small_buffer_is_offered() {
        let mut window = OfferedWindow::new(START, 0, 100, 1_000);
        window.offer(START, 100);
        assert_eq!(window.offer(START + 100, 49), 0);
        assert_eq!(window.offer(START + 100, 50), 50);
    }

    proptest! {
        #[test]
        fn the_edge_never_moves_left_nor_beyond_the_room(
            shift in 0_u8..8,
            steps in prop::collection::vec((0_u32..5_000, 0_u32..50_000), 1..30),
        ) {
            let mut window = OfferedWindow::new(START, shift, 50_000, 1_448);
            let mut next = START;
            for (received, room) in steps {
                next = (next + received).min(window.edge());
                let before = window.edge();
                // Room never leaves less than what has been offered.
                let room = room.max(before.since(next));
                let field = window.offer(next, room);
                prop_assert!(!window.edge().is_before(before));
                prop_assert!(u32::from(field) << shift <= room);
            }
        }
    }
}
