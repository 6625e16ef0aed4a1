//! TCP connection tracking, as a state machine without clock or packets.
//!
//! For each endpoint the tracker keeps what it has sent and what its peer has let it send, and tests
//! each segment against both: the method of van Rooij, "Real Stateful TCP Packet Filtering in IP
//! Filter" (2001), which Linux and the BSDs use too. An off-path attacker has to guess a sequence
//! number and an acknowledgement number at once. Where this tracker differs:
//!
//! - **States are not stored but follow from facts about each endpoint** (its SYN was sent, was
//!   acknowledged, the same for its FIN), so that simultaneous open and close need no states of their
//!   own and nothing can contradict the sequence numbers.
//! - **Segments with SYN never establish a connection**, however many come from both directions: the
//!   SYN of each endpoint has to be acknowledged exactly (RFC 9293 section 3.10.7.3), and then a
//!   segment without SYN has to pass.
//! - **A reset counts only with an exact sequence number** (RFC 5961 section 3.2): the highest its
//!   receiver has acknowledged, or the end of what its sender has sent. Endpoints answer an inexact one
//!   inside the window with a challenge ACK; here it is dropped, because endpoints older than the RFC
//!   would obey it. An honest inexact reset (data before it was lost) costs one more round trip: what
//!   the receiver sends next provokes an exact one. With [`TcpOptions::liberal`] it passes and changes
//!   nothing.
//! - **A SYN on a connection that is up** passes, if its sender may open, outside the window only: a
//!   rebooted host gets its challenge ACK (RFC 5961 section 4), resets with the exact number and opens
//!   anew, while no endpoint, however old, is reset by a SYN outside its window. When both ends forgot
//!   the connection, the answer to this SYN fits nothing and is dropped until the old entry times out.
//!
//! Selective acknowledgements need no attention: they neither open the window nor move the cumulative
//! acknowledgement, which lags behind the data by a window at most.

mod outcome;
mod reset;
mod segment;
mod sequence;
mod side;
mod state;
mod transfer;
mod window;

#[cfg(test)]
mod tests;

pub use outcome::{TcpOptions, TcpOutcome, TcpRefusal, TcpViolation};
pub use segment::{ACK, FIN, PSH, RST, SYN, Segment, URG};
pub use state::TcpState;

use segment::Kind;
use sequence::{later, within};
use side::{Marks, Scale, Side};
use window::Window;

use super::timeouts::Timeout;

/// One tracked connection. The first endpoint is the one that sent the first segment; its direction
/// is called forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpTrack {
    sides: [Side; 2],
}

const _: () = assert!(size_of::<TcpTrack>() == 32);

/// The endpoint that opens, as an index.
const INITIATOR: usize = 0;

impl TcpTrack {
    /// Starts tracking with the first segment of a connection.
    ///
    /// # Errors
    /// [`TcpRefusal`] when the segment cannot be the first of a connection.
    pub fn open(
        first: &Segment,
        options: &TcpOptions,
    ) -> Result<(TcpTrack, Timeout), TcpRefusal> {
        let sides = match first.kind().ok_or(TcpRefusal::Flags)? {
            Kind::Syn => [Side::opened(first, None, Marks::OPENER), Side::default()],
            Kind::Transfer if options.pickup => picked_up(first),
            // A SYN-ACK or a reset without its cause: whatever follows it can be picked up.
            Kind::Transfer | Kind::SynAck | Kind::Reset => return Err(TcpRefusal::NotSyn),
        };
        Ok((TcpTrack { sides }, Timeout::TcpOpening))
    }

    /// Judges a segment of the connection, and learns from it. `forward`: it goes in the direction of
    /// the first segment.
    #[inline]
    pub fn segment(
        &mut self,
        forward: bool,
        segment: &Segment,
        options: &TcpOptions,
    ) -> TcpOutcome {
        let from = if forward { INITIATOR } else { 1 - INITIATOR };
        match segment.kind() {
            Some(Kind::Transfer) => self.transfer(from, segment, options),
            Some(Kind::Syn) => self.syn(from, segment),
            Some(Kind::SynAck) => self.syn_ack(from, segment, options),
            Some(Kind::Reset) => self.reset(from, segment, options),
            None => TcpOutcome::Drop(TcpViolation::Flags),
        }
    }

    /// The sender and its peer.
    #[inline]
    fn ends(&self, from: usize) -> (&Side, &Side) {
        (&self.sides[from], &self.sides[1 - from])
    }

    #[inline]
    fn ends_mut(&mut self, from: usize) -> (&mut Side, &mut Side) {
        let [initiator, responder] = &mut self.sides;
        if from == INITIATOR { (initiator, responder) } else { (responder, initiator) }
    }

    fn syn(&mut self, from: usize, segment: &Segment) -> TcpOutcome {
        let state = self.state();
        if matches!(state, TcpState::TimeWait | TcpState::Closed) {
            return TcpOutcome::Reopen;
        }
        let (sender, peer) = self.ends_mut(from);
        if sender.has(Marks::SYN) {
            let repeated = segment.end() == sender.end && !sender.has(Marks::CONFIRMED);
            return if repeated {
                // Not refreshed: who is never answered must not stay for ever.
                TcpOutcome::PassUnproven
            } else if state == TcpState::SynSent {
                TcpOutcome::Reopen
            } else if sender.has(Marks::OPENER)
                && !within(segment.seq, sender.acked, sender.max_end)
            {
                TcpOutcome::PassUnproven
            } else {
                TcpOutcome::Drop(TcpViolation::Syn)
            };
        }
        if sender.has(Marks::PICKED_UP) {
            return TcpOutcome::PassUnproven;
        }
        // Simultaneous open (RFC 9293 section 3.5, figure 7).
        let edge = segment.seq.wrapping_add(1).wrapping_add(peer.window.bytes());
        *sender = Side::opened(segment, Some(edge), Marks::OPENER);
        TcpOutcome::Pass { timeout: Timeout::TcpOpening }
    }

    fn syn_ack(&mut self, from: usize, segment: &Segment, options: &TcpOptions) -> TcpOutcome {
        let (sender, peer) = self.ends_mut(from);
        if sender.has(Marks::OPEN) || peer.has(Marks::RESET) {
            // A repetition, which the window test tells from an invention.
            return self.transfer(from, segment, options);
        }
        // Only who was sent a SYN may answer one, and only that SYN: its number plus one, or with data
        // in the SYN (RFC 7413) some of that too.
        let lowest = if peer.has(Marks::OPEN) { peer.acked } else { peer.behind_syn() };
        let exact = peer.has(Marks::SYN.with(Marks::OPENER))
            && within(segment.ack, lowest, peer.end)
            // Who sent a SYN of its own answers with the same number (simultaneous open).
            && (!sender.has(Marks::OPENER) || segment.seq == sender.acked);
        if !exact {
            return TcpOutcome::Drop(TcpViolation::Handshake);
        }
        if !sender.has(Marks::OPENER) {
            // A responder that forgot its first answer (SYN cookies) may give another one.
            let edge = segment.seq.wrapping_add(1).wrapping_add(peer.window.bytes());
            *sender = Side::opened(segment, Some(edge), Marks::default());
        }
        peer.marks.add(Marks::OPEN);
        peer.acked = segment.ack;
        peer.max_end = later(peer.max_end, segment.ack.wrapping_add(segment.window.into()));
        TcpOutcome::Pass { timeout: Timeout::TcpOpening }
    }
}

/// Both endpoints of a connection whose beginning nobody saw.
fn picked_up(first: &Segment) -> [Side; 2] {
    let marks = Marks::PICKED_UP.with(Marks::OPEN);
    let blank = Side { scale: Scale::LARGEST, marks, ..Side::default() };
    let offered = blank.offered(&blank, first);
    let mut sender = Side {
        end: first.end(),
        max_end: first.end(),
        acked: first.seq,
        window: Window::covering(offered),
        ..blank
    };
    sender.marks.add(Marks::CONFIRMED);
    if first.has(FIN) {
        sender.marks.add(Marks::FIN);
    }
    let max_end = first.ack.wrapping_add(offered);
    [sender, Side { end: first.ack, max_end, acked: first.ack, ..blank }]
}
