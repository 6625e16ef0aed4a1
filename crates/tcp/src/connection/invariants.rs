//! What holds of a connection at all times, for tests and fuzzing.

use super::{Connection, State};

impl Connection {
    /// A rule about the connection's state that does not hold; `None`, unless the core has a defect. Linear in the ranges that
    /// are noted.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        let own = [
            (self.state == State::TimeWait) == self.time_wait.is_some(),
            self.is_over() || self.state == State::SynSent || self.agreement.is_some(),
            self.is_over() || self.sender.has_finished() != self.may_still_finish(),
            self.is_over() || self.sender.is_finished() == (self.state == State::FinWait2),
            self.is_over() || self.receiver.is_finished() == self.peer_has_finished(),
            self.state != State::Closed || self.next_deadline().is_none(),
        ];
        let names = [
            "only in TIME-WAIT there is a stub",
            "the peer's SYN settled what was offered",
            "the user has finished in the states behind FIN",
            "FIN is acknowledged in FIN-WAIT-2",
            "the peer has finished in the states behind its FIN",
            "a closed connection has no deadline",
        ];
        let broken = own.iter().zip(names).find(|(holds, _)| !**holds).map(|(_, name)| name);
        broken
            .or_else(|| self.sender.broken_invariant())
            .or_else(|| self.receiver.broken_invariant())
    }

    fn is_over(&self) -> bool {
        self.state.is_over()
    }

    fn may_still_finish(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
            || self.state.is_opening() && !self.sender.has_finished()
    }

    fn peer_has_finished(&self) -> bool {
        matches!(self.state, State::CloseWait | State::Closing | State::LastAck)
    }
}
