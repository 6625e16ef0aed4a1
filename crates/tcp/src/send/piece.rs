//! Parts of what there is to send, and why each is sent.

use super::recovery::RecoveryPhase;
use crate::segment::{Repair, SendReason};
use crate::sequence::SequenceNumber;

/// Part of what there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendPiece {
    /// The number of its first byte, or of FIN.
    pub(crate) seq: SequenceNumber,
    /// Bytes of data.
    pub(crate) len: u32,
    /// Whether FIN follows the data.
    pub(crate) fin: bool,
    pub(super) kind: PieceKind,
}

/// Where a piece comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// It has not been sent yet.
    New,
    /// It is taken for lost.
    Lost,
    /// It lies before what the peer holds, in a recovery.
    Hole,
    /// It is the rescue of a recovery.
    Rescue,
    /// It probes the peer's window.
    Probe,
}

impl SendPiece {
    pub(super) fn end(&self) -> SequenceNumber {
        self.seq + self.len + u32::from(self.fin)
    }

    /// Why it is sent in this phase, to a peer that sends SACK blocks or does not.
    pub(super) fn reason(&self, phase: RecoveryPhase, has_sack: bool) -> SendReason {
        let repair = match (self.kind, phase) {
            (PieceKind::New, _) if self.len == 0 => return SendReason::Fin,
            (PieceKind::New, _) => return SendReason::Data,
            (PieceKind::Probe, _) => return SendReason::Probe,
            (PieceKind::Rescue, _) => Repair::Rescue,
            (_, RecoveryPhase::Timeout { .. }) => Repair::Timeout,
            (_, RecoveryPhase::Fast { .. }) if has_sack => Repair::Sack,
            (_, RecoveryPhase::Fast { .. }) => Repair::Duplicates,
            (_, RecoveryPhase::Open) => Repair::TooBig,
        };
        SendReason::Retransmission(repair)
    }
}
