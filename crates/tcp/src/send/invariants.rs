//! What holds of the sending side at all times.

use super::{Fin, SendHalf};

impl SendHalf {
    /// See [`Connection::broken_invariant`](crate::Connection::broken_invariant).
    pub(crate) fn broken_invariant(&self) -> Option<&'static str> {
        let in_flight = self.in_flight();
        let rules = [
            (!self.next.is_before(self.una), "what is acknowledged was sent"),
            (!self.next.is_after(self.end()), "what was sent was written"),
            (
                self.fin != Fin::Acknowledged || self.data.len() == 0,
                "with FIN, all data is acknowledged",
            ),
            (self.board.is_sound(in_flight), "the scoreboard is about what is in flight"),
            (self.congestion.get().window() >= 1, "the congestion window is open"),
            (self.terms.mss >= 1, "segments have room"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, rule)| rule)
    }
}
