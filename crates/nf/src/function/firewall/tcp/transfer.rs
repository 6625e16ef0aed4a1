//! Segments that carry data, acknowledgements or FINs: the window tests.

use super::outcome::{TcpOptions, TcpOutcome, TcpViolation};
use super::segment::{FIN, SYN, Segment};
use super::sequence::{before, later, within};
use super::side::{Marks, Side};
use super::window::Window;
use super::TcpTrack;

/// How old an acknowledgement may be at least, in bytes of its peer's data, when the sender's own
/// window is smaller: the MAXACKWINDOW of van Rooij, an unscaled window and some more.
const OLD_ACK: u32 = 66_000;

/// Bytes a sender may go beyond its peer's window: the probe of a closed window (RFC 9293 section
/// 3.8.6.1).
const PROBE: u32 = 1;

/// Bytes before the window that segments without news may lie: a keep-alive repeats the byte before
/// the next one (RFC 9293 section 3.8.4), which may follow a probe.
const KEEP_ALIVE: u32 = 2;

impl TcpTrack {
    /// A segment without SYN or RST, or a repeated SYN-ACK.
    #[inline]
    pub(super) fn transfer(
        &mut self,
        from: usize,
        segment: &Segment,
        options: &TcpOptions,
    ) -> TcpOutcome {
        let (sender, peer) = self.ends(from);
        if sender.has(Marks::PICKED_UP) {
            return self.follow(from, segment);
        }
        if !peer.has(Marks::OPEN) || !sender.has(Marks::SYN) {
            // The SYN of the peer is not acknowledged: it has to be now, exactly.
            let exact = sender.has(Marks::SYN)
                && peer.has(Marks::SYN)
                && within(segment.ack, peer.behind_syn(), peer.end);
            if !exact {
                return TcpOutcome::Drop(TcpViolation::Handshake);
            }
        }
        if let Some(violation) = violation(sender, peer, segment) {
            return if options.liberal {
                TcpOutcome::PassUnproven
            } else {
                TcpOutcome::Drop(violation)
            };
        }
        self.learn(from, segment);
        if self.is_reset() {
            TcpOutcome::PassUnproven
        } else {
            TcpOutcome::Pass { timeout: self.timeout() }
        }
    }

    /// A connection picked up in its middle passes everything, and what is known of it follows the
    /// latest segment wherever it lies.
    #[cold]
    fn follow(&mut self, from: usize, segment: &Segment) -> TcpOutcome {
        let (sender, peer) = self.ends_mut(from);
        if violation(sender, peer, segment).is_some() || !sender.has(Marks::CONFIRMED) {
            sender.end = segment.end();
            sender.max_end = sender.end;
            if before(peer.end, segment.ack) || before(segment.ack, peer.acked) {
                peer.end = segment.ack;
                peer.max_end = segment.ack;
                peer.acked = segment.ack;
            }
        }
        self.learn(from, segment);
        if self.is_reset() {
            TcpOutcome::PassUnproven
        } else {
            TcpOutcome::Pass { timeout: self.timeout() }
        }
    }

    /// Takes in a segment that passed the tests.
    #[inline]
    fn learn(&mut self, from: usize, segment: &Segment) {
        let (sender, peer) = self.ends_mut(from);
        let offered = sender.offered(peer, segment);
        sender.end = later(sender.end, segment.end());
        sender.window = sender.window.max(Window::covering(offered));
        peer.acked = later(peer.acked, segment.ack);
        peer.max_end = later(peer.max_end, segment.ack.wrapping_add(offered));
        peer.marks.add(Marks::OPEN);
        if segment.has(FIN) {
            sender.marks.add(Marks::FIN);
        }
        if peer.has(Marks::FIN) && peer.acked == peer.end {
            peer.marks.add(Marks::FIN_ACKED);
        }
        if sender.has(Marks::OPEN) && !segment.has(SYN) {
            sender.marks.add(Marks::CONFIRMED);
        }
    }
}

/// Which of the four bounds a segment breaks, or that it carries more than its sender's FIN allows.
#[inline]
fn violation(sender: &Side, peer: &Side, segment: &Segment) -> Option<TcpViolation> {
    let end = segment.end();
    // I. Nobody may send beyond what the receiver has offered.
    if before(sender.max_end.wrapping_add(PROBE), end) {
        return Some(TcpViolation::AboveWindow);
    }
    // II. What lies a window before the newest data cannot be under way any more: the newest data
    //     was sent only because everything up to a window before it had been acknowledged.
    if before(end, sender.end.wrapping_sub(peer.window.bytes() + KEEP_ALIVE)) {
        return Some(TcpViolation::BelowWindow);
    }
    // III. Nobody can acknowledge what has not come by.
    if before(peer.end, segment.ack) {
        return Some(TcpViolation::AckAhead);
    }
    // IV. An acknowledgement may be overtaken, but not by more than a window (RFC 5961 section 5).
    if before(segment.ack, peer.acked.wrapping_sub(sender.window.bytes().max(OLD_ACK))) {
        return Some(TcpViolation::AckBehind);
    }
    if sender.has(Marks::FIN) && before(sender.end, end) {
        return Some(TcpViolation::BeyondFin);
    }
    None
}
