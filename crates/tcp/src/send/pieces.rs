//! What is sent next: what is lost, what is new, probes.

use rheostat_base::Time;

use super::piece::{PieceKind, SendPiece};
use super::recovery::RecoveryPhase;
use super::{Fin, SendHalf};
use crate::config::Config;
use crate::segment::SendReason;
use crate::sequence::SequenceRange;

impl SendHalf {
    /// What to send next, with options of this length, if anything may be sent.
    pub(crate) fn next_piece(
        &mut self,
        options: usize,
        config: &Config,
        now: Time,
    ) -> Option<SendPiece> {
        if self.is_idle() {
            return None;
        }
        let max = self.terms.mss - options as u32;
        if self.must_probe {
            let probe = self.probe(max);
            if probe.is_some() {
                return probe;
            }
            self.must_probe = false;
        }
        let in_flight = self.in_flight();
        if in_flight.is_empty() && now.since(self.last_sent) > self.round_trip.timeout(config) {
            self.congestion.get_mut().on_idle();
        }
        if let Some(lost) = self.board.next_lost(in_flight, self.terms.mss) {
            let piece = self.cut(lost, max, PieceKind::Lost);
            return Some(piece).filter(|_| self.recovery.must_resend_first || self.fits(piece));
        }
        let is_repairing = matches!(self.recovery.phase(), RecoveryPhase::Fast { .. });
        let hole = || self.board.next_hole(in_flight).filter(|_| is_repairing);
        let piece = self
            .new_piece(max, config)
            .or_else(|| hole().map(|hole| self.cut(hole, max, PieceKind::Hole)));
        piece.or_else(|| self.rescue(max)).filter(|piece| self.fits(*piece))
    }

    /// The last segment in flight, when nothing else can be sent in a recovery (RFC 6675, NextSeg, rule 4).
    fn rescue(&self, max: u32) -> Option<SendPiece> {
        let RecoveryPhase::Fast { until } = self.recovery.phase() else { return None };
        let range = self.board.rescue(self.in_flight(), until, max).filter(|_| self.terms.sack)?;
        Some(self.cut(range, max, PieceKind::Rescue))
    }

    fn fits(&self, piece: SendPiece) -> bool {
        let mut pipe = self.board.pipe(self.in_flight(), self.terms.mss);
        if !self.terms.sack {
            pipe = pipe.saturating_sub(self.recovery.duplicates().saturating_mul(self.terms.mss));
        }
        pipe == 0 || pipe + piece.len <= self.congestion.get().window()
    }

    /// One byte or FIN into a closed window; what fits into a small one, if nothing is in flight.
    fn probe(&self, max: u32) -> Option<SendPiece> {
        if !self.window.edge().is_after(self.una) {
            return Some(self.cut(SequenceRange::of_len(self.una, 1), max, PieceKind::Probe));
        }
        let room = SequenceRange { start: self.next, end: self.window.edge().min(self.end()) };
        (self.una == self.next && !room.is_empty()).then(|| self.cut(room, max, PieceKind::Probe))
    }

    /// What has not been sent yet, unless it had better wait (RFC 9293, 3.7.4 and 3.8.6.2.1).
    fn new_piece(&self, max: u32, config: &Config) -> Option<SendPiece> {
        let end = self.end();
        let room = SequenceRange { start: self.next, end: self.window.edge().min(end) };
        if room.is_empty() {
            return None;
        }
        let piece = self.cut(room, max, PieceKind::New);
        let is_quiet = !config.nagle || self.una == self.next;
        let is_last = !piece.end().is_before(self.data_end());
        let is_due = piece.len == max
            || (is_last && (is_quiet || self.fin == Fin::Queued))
            || (is_quiet && piece.len >= self.window.largest() / 2);
        is_due.then_some(piece)
    }

    /// The start of a range as one segment with up to `max` bytes of data.
    fn cut(&self, range: SequenceRange, max: u32, kind: PieceKind) -> SendPiece {
        let data_end = self.data_end();
        let len = range.end.min(data_end).since(range.start).min(max);
        let fin = range.start + len == data_end && range.end.is_after(data_end);
        SendPiece { seq: range.start, len, fin, kind }
    }

    /// Why a piece leaves.
    pub(crate) fn reason(&self, piece: SendPiece) -> SendReason {
        piece.reason(self.recovery.phase(), self.terms.sack)
    }

    /// The piece leaves.
    pub(crate) fn on_sent(&mut self, piece: SendPiece, config: &Config, now: Time) {
        if piece.seq.is_before(self.next) {
            self.retransmitted = self.retransmitted.saturating_add(1);
            let in_flight = self.in_flight();
            match self.recovery.phase() {
                RecoveryPhase::Fast { until } if piece.kind == PieceKind::Rescue => {
                    self.board.on_rescued(in_flight, until)
                }
                _ => self.board.on_retransmitted(in_flight, piece.end()),
            }
            self.round_trip.on_retransmitted();
            self.recovery.must_resend_first = false;
        } else {
            self.next = piece.end();
            self.round_trip.on_sent(piece.end(), now);
        }
        self.must_probe = false;
        self.last_sent = now;
        self.settle_timer(config, now);
    }

    /// The data of a piece, and whether the buffer ends with it.
    pub(crate) fn payload(&self, piece: SendPiece) -> ([&[u8]; 2], bool) {
        let at = piece.seq.since(self.una) as usize;
        let len = piece.len as usize;
        (self.data.pieces(at, len), len > 0 && at + len == self.data.len())
    }
}
