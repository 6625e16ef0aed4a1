//! What holds of the receiving side at all times.

use super::ReceiveHalf;
use crate::sequence::SequenceRange;

impl ReceiveHalf {
    /// See [`Connection::broken_invariant`](crate::Connection::broken_invariant).
    pub(crate) fn broken_invariant(&self) -> Option<&'static str> {
        let room = self.unread.room() as u32;
        // One number beyond a gap at least.
        let behind = self.next + 1;
        let held = SequenceRange { start: behind, end: behind.max(self.next + room) };
        let rules = [
            (!self.acked.is_after(self.next), "what is acknowledged has arrived"),
            (
                self.fin.is_none_or(|fin| !self.next.is_after(fin + 1)),
                "nothing comes after the peer's FIN",
            ),
            (
                self.fin.is_none_or(|fin| self.held.end().is_none_or(|end| !end.is_after(fin))),
                "nothing is held beyond the peer's FIN",
            ),
            (self.held.is_sound(held), "what is held lies beyond a gap, and in the buffer"),
            (!self.is_finished() || self.held.is_empty(), "nothing is missing before FIN"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, rule)| rule)
    }
}
