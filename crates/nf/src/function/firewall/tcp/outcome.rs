//! What becomes of a segment.

use thiserror::Error;

use crate::function::firewall::timeouts::Timeout;

/// How strict tracking is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Let segments outside the windows pass; they change nothing and do not keep the connection
    /// alive. A reset has to carry an exact sequence number to end the connection nevertheless, and
    /// to lie in the window to pass at all.
    pub liberal: bool,
    /// Take a segment from the middle of an unknown connection as its first. For captures that start
    /// late and for restarts: the windows of such a connection are never checked.
    pub pickup: bool,
}

/// What becomes of a segment of a known connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOutcome {
    /// It passes, and the connection lives on for `timeout`.
    Pass {
        /// From now on.
        timeout: Timeout,
    },
    /// It passes but proves nothing about the connection, whose deadline stays as it is.
    PassUnproven,
    /// It is dropped, and nothing else changes.
    Drop(TcpViolation),
    /// It passes, and the connection is over: a valid reset. What is still under way, challenge
    /// ACKs and repeated resets, passes until `timeout` is over.
    Close {
        /// From now on.
        timeout: Timeout,
    },
    /// A SYN for a new connection between the same ports: the old one is over or was never answered.
    /// Forget it and treat the segment as the first of a flow.
    Reopen,
}

/// Why a segment of a known connection is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TcpViolation {
    /// See [`TcpRefusal::Flags`].
    #[error("the flags contradict one another")]
    Flags,
    /// It does not fit the handshake: data before the answer, a SYN-ACK from who may not send one, or
    /// an acknowledgement that is not exactly that of the peer's SYN.
    #[error("the segment does not fit the handshake")]
    Handshake,
    /// A SYN inside the window of a connection that is up.
    #[error("a SYN on a connection that is up")]
    Syn,
    /// It ends beyond the window that the receiver has offered.
    #[error("the segment ends beyond the window of its receiver")]
    AboveWindow,
    /// It ends more than a window before what its sender has sent already.
    #[error("the segment lies before the window of its receiver")]
    BelowWindow,
    /// It acknowledges bytes that have not come by.
    #[error("the segment acknowledges what was never sent")]
    AckAhead,
    /// It acknowledges less than was acknowledged a window ago.
    #[error("the acknowledgement is more than a window old")]
    AckBehind,
    /// It carries data behind its sender's FIN.
    #[error("the segment carries data beyond the end of the data")]
    BeyondFin,
    /// A reset whose sequence number is not exactly what the receiver expects next.
    #[error("the reset does not carry the exact sequence number")]
    ResetInexact,
}

/// Why a segment cannot be the first of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TcpRefusal {
    /// A combination of flags that no TCP sends: none at all, SYN with FIN, FIN without ACK, …
    #[error("the flags contradict one another")]
    Flags,
    /// It is not a SYN, and connections are not picked up in their middle.
    #[error("the segment belongs to no connection and opens none")]
    NotSyn,
}
