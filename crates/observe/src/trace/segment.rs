//! What a service over TCP did with a segment, and the segments it sent.

use std::fmt;
use std::net::SocketAddr;

use rheostat_capture::trace::{SegmentDecision, SegmentSummary};
use serde::{Deserialize, Serialize};

/// The header of a segment, and its ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentLine {
    /// This machine's end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The flags that are set: `SYN ACK`.
    pub flags: String,
    /// Its sequence number.
    pub seq: u32,
    /// What it acknowledges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<u32>,
    /// The window in its header, not scaled.
    pub window: u16,
    /// Bytes of data.
    pub len: u32,
}

/// What a service decided about a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionLine {
    /// All of it in words.
    pub decision: String,
    /// The state of the connection before; `listen` for a listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The state after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Numbers that are in order now and were not before: bytes, and the peer's FIN.
    pub in_order: u32,
    /// Bytes held beyond gaps now, if not as many as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// Numbers of this end that it acknowledged: bytes, SYN and FIN.
    pub acknowledged: u32,
    /// Which duplicate acknowledgement in a row it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_ack: Option<u32>,
    /// Why it, or a part of it, was ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// Whether an acknowledgement challenges the peer, where one would if there had not been one just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenged: Option<bool>,
}

impl SegmentLine {
    pub(super) fn of(segment: &SegmentSummary) -> SegmentLine {
        SegmentLine {
            local: segment.local,
            remote: segment.remote,
            flags: segment.flags.to_string(),
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            len: segment.len,
        }
    }
}

impl DecisionLine {
    pub(super) fn of(decision: SegmentDecision) -> DecisionLine {
        DecisionLine {
            decision: decision.words,
            was: decision.was.map(ToOwned::to_owned),
            state: decision.state.map(ToOwned::to_owned),
            in_order: decision.in_order,
            held: decision.held,
            acknowledged: decision.acknowledged,
            duplicate_ack: decision.duplicate_ack,
            ignored: decision.ignored.map(ToOwned::to_owned),
            challenged: decision.challenged,
        }
    }
}

/// Without its ends.
impl fmt::Display for SegmentLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seq {}", self.flags, self.seq)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        write!(f, " win {} len {}", self.window, self.len)
    }
}
