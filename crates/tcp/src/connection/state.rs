//! The states of a connection (RFC 9293, 3.3.2).

/// LISTEN is not among them: it is the owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// SYNs were sent and received.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// We have finished; FIN is not acknowledged.
    FinWait1,
    /// We have finished, the peer has not.
    FinWait2,
    /// The peer has finished, we have not.
    CloseWait,
    /// Both have finished at the same time; our FIN is not acknowledged.
    Closing,
    /// Both have finished, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both know that both have finished.
    TimeWait,
    /// There is no connection any more.
    Closed,
}

impl State {
    /// The word that `ss` has for it.
    pub fn name(self) -> &'static str {
        match self {
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::Established => "established",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::CloseWait => "close-wait",
            State::Closing => "closing",
            State::LastAck => "last-ack",
            State::TimeWait => "time-wait",
            State::Closed => "closed",
        }
    }

    /// Whether the handshake goes on.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived)
    }

    /// Whether no segment is sent but what TIME-WAIT answers.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, State::TimeWait | State::Closed)
    }

    /// The state after the user has finished.
    pub(crate) fn after_finish(self) -> State {
        match self {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// The state after our FIN was acknowledged.
    pub(crate) fn after_fin_acknowledged(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }

    /// The state after the peer's FIN and everything before it has arrived.
    pub(crate) fn after_peer_fin(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }
}
