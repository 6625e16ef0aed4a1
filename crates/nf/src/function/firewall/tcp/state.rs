//! The state of a connection, as it follows from what is known of its endpoints.

use super::side::Marks;
use super::{INITIATOR, TcpTrack};
use crate::function::firewall::timeouts::Timeout;

/// Where a connection is between its first and its last segment. Endpoints may be in other states at
/// the same moment (RFC 9293 section 3.3.2): this is what the network has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TcpState {
    /// A SYN, no answer yet.
    SynSent,
    /// A SYN in each direction, none acknowledged: simultaneous open.
    SynSent2,
    /// A SYN was acknowledged, the handshake is not complete.
    SynReceived,
    /// Picked up in its middle, and only one endpoint was heard since.
    PickedUp,
    /// Each endpoint has acknowledged the other's SYN.
    Established,
    /// One endpoint has sent a FIN.
    FinWait,
    /// One endpoint's FIN was acknowledged; the other may go on sending.
    CloseWait,
    /// Both endpoints have sent a FIN, not both are acknowledged.
    LastAck,
    /// Both FINs were acknowledged.
    TimeWait,
    /// The connection was reset.
    Closed,
}

impl TcpTrack {
    /// The state of the connection.
    pub fn state(&self) -> TcpState {
        let [a, b] = self.sides.map(|side| side.marks);
        let both = |mark| a.has(mark) && b.has(mark);
        let either = |mark| a.has(mark) || b.has(mark);
        if either(Marks::RESET) {
            TcpState::Closed
        } else if both(Marks::FIN_ACKED) {
            TcpState::TimeWait
        } else if both(Marks::FIN) {
            TcpState::LastAck
        } else if !self.is_up() {
            match (a.has(Marks::PICKED_UP), a.has(Marks::OPEN), b.has(Marks::OPEN)) {
                (true, _, _) => TcpState::PickedUp,
                (_, false, false) if !b.has(Marks::SYN) => TcpState::SynSent,
                (_, false, false) => TcpState::SynSent2,
                _ => TcpState::SynReceived,
            }
        } else if either(Marks::FIN_ACKED) {
            TcpState::CloseWait
        } else if either(Marks::FIN) {
            TcpState::FinWait
        } else {
            TcpState::Established
        }
    }

    /// Whether the connection waits for its handshake to complete: to be bounded in number, and the
    /// first to go when room is needed (RFC 4987).
    #[inline]
    pub fn is_half_open(&self) -> bool {
        !self.is_up() && !self.is_reset()
    }

    /// Whether the handshake is complete.
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        let [a, b] = &self.sides;
        if a.has(Marks::PICKED_UP) {
            // One endpoint alone proves nothing.
            return a.has(Marks::CONFIRMED) && b.has(Marks::CONFIRMED);
        }
        a.has(Marks::CONFIRMED) || b.has(Marks::CONFIRMED)
    }

    #[inline]
    pub(super) fn is_reset(&self) -> bool {
        self.sides[INITIATOR].has(Marks::RESET) || self.sides[1 - INITIATOR].has(Marks::RESET)
    }

    /// How long the connection may be idle in the state it is in.
    #[inline]
    pub(super) fn timeout(&self) -> Timeout {
        let [a, b] = &self.sides;
        if !self.is_up() {
            return Timeout::TcpOpening;
        }
        match (a.has(Marks::FIN), b.has(Marks::FIN)) {
            (false, false) => Timeout::TcpEstablished,
            (true, true) if a.has(Marks::FIN_ACKED) && b.has(Marks::FIN_ACKED) => {
                Timeout::TcpTimeWait
            }
            (true, true) => Timeout::TcpClosing,
            _ => Timeout::TcpHalfClosed,
        }
    }
}
