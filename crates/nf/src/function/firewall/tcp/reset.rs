//! Resets.

use super::TcpTrack;
use super::outcome::{TcpOptions, TcpOutcome, TcpViolation};
use super::segment::{ACK, Segment};
use super::sequence::within;
use super::side::{Marks, Side};
use crate::function::firewall::timeouts::Timeout;

impl TcpTrack {
    pub(super) fn reset(
        &mut self,
        from: usize,
        segment: &Segment,
        options: &TcpOptions,
    ) -> TcpOutcome {
        let (sender, peer) = self.ends_mut(from);
        if expected(sender, segment) || refuses(sender, peer, segment) {
            sender.marks.add(Marks::RESET);
            TcpOutcome::Close { timeout: Timeout::TcpReset }
        } else if options.liberal && within(segment.seq, sender.acked, sender.max_end) {
            TcpOutcome::PassUnproven
        } else {
            TcpOutcome::Drop(TcpViolation::ResetInexact)
        }
    }
}

/// Whether the reset carries the sequence number its receiver expects next (RFC 5961 section 3.2). Two
/// numbers can be that: what the receiver has acknowledged, and the end of what the sender has sent,
/// if the acknowledgement of that is still under way.
fn expected(sender: &Side, segment: &Segment) -> bool {
    if sender.has(Marks::OPEN) {
        segment.seq == sender.acked || segment.seq == sender.end
    } else {
        sender.has(Marks::SYN)
            && (segment.seq == sender.behind_syn() || segment.seq == sender.end)
    }
}

/// Whether the reset refuses a connection: it counts by acknowledging the SYN, or data in it, while
/// its receiver may still be in SYN-SENT (RFC 9293 section 3.10.7.3).
fn refuses(sender: &Side, peer: &Side, segment: &Segment) -> bool {
    let lowest = if peer.has(Marks::OPEN) { peer.acked } else { peer.behind_syn() };
    segment.has(ACK)
        && !sender.has(Marks::OPEN)
        && peer.has(Marks::SYN)
        && within(segment.ack, lowest, peer.end)
}
