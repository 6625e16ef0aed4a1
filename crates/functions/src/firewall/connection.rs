//! Tracking of flows: which segments belong to a TCP connection, and what state it is in; of other protocols,
//! whether both ends have sent.
//!
//! Windows are checked after G. van Rooij, "Real Stateful TCP Packet Filtering in IP Filter" (2001):
//! a segment's data must lie between what the receiver could have asked for again and what it has
//! offered to take, and its acknowledgement between what the peer could still be waiting for and what
//! the peer has sent.

mod half;
mod marks;
#[cfg(test)]
mod tests;

use half::Half;
use marks::Marks;

/// FIN flag.
pub const FIN: u8 = 0x01;
/// SYN flag.
pub const SYN: u8 = 0x02;
/// RST flag.
pub const RST: u8 = 0x04;
/// ACK flag.
pub const ACK: u8 = 0x10;

/// What connection tracking needs to know of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgement number; counts only with ACK.
    pub ack: u32,
    /// Flags as in the header; only FIN, SYN, RST and ACK count.
    pub flags: u8,
    /// The window as in the header, unscaled.
    pub window: u16,
    /// Bytes of data.
    pub len: u32,
    /// The window scale option, if present.
    pub scale: Option<u8>,
}

impl Segment {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The sequence number behind the segment: SYN and FIN count as a byte each (RFC 9293, 3.4).
    fn end(&self) -> u32 {
        let extra = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.seq.wrapping_add(self.len).wrapping_add(extra)
    }

    /// Whether the flags can occur together in an honest segment.
    fn is_plausible(&self) -> bool {
        match self.flags & (SYN | FIN | RST | ACK) {
            SYN | RST | ACK => true,
            flags if flags == SYN | ACK || flags == RST | ACK || flags == FIN | ACK => true,
            _ => false,
        }
    }
}

/// How strictly segments are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Segments outside the windows pass all the same, but for resets.
    pub liberal: bool,
    /// A connection may be entered in the middle, as a capture that starts late needs.
    pub pickup: bool,
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not of TCP: only one end has sent.
    Asked,
    /// Not of TCP: both ends have sent.
    Answered,
    /// The initiator has sent its SYN.
    SynSent,
    /// Both ends have sent a SYN, neither has acknowledged the other's (RFC 9293, figure 7).
    SynCrossed,
    /// The responder has acknowledged the initiator's SYN with its own.
    SynReceived,
    /// Both SYNs are acknowledged.
    Established,
    /// One end has sent its FIN.
    Closing,
    /// Both ends have sent their FIN, and not both are acknowledged.
    LastAck,
    /// Both FINs are acknowledged.
    TimeWait,
    /// Reset.
    Closed,
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpVerdict {
    /// It belongs to the connection.
    Pass,
    /// It cannot belong to the connection.
    Drop,
    /// It opens a new connection between the same endpoints.
    Restart,
}

/// One flow, 30 bytes: as many as the line of a flow entry has beside the key.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// What the initiator has sent, and what the responder has. Of a flow that is not of TCP, nothing.
    halves: [Half; 2],
    marks: Marks,
}

const _: () = assert!(size_of::<Track>() == 30);

const INITIATOR: usize = 0;
const RESPONDER: usize = 1;

/// A flow of which no packet was seen.
impl Default for Track {
    fn default() -> Track {
        Track::without_connection(true)
    }
}

impl Track {
    /// A flow that is not of TCP and starts with a packet of this direction.
    pub fn without_connection(forward: bool) -> Track {
        Track { halves: [Half::UNSEEN; 2], marks: Marks::new(Phase::Asked, forward) }
    }

    /// A connection that starts with this segment, of this direction. `None` when it cannot.
    pub fn open(segment: &Segment, options: TcpOptions, forward: bool) -> Option<Track> {
        if !segment.is_plausible() || segment.has(RST) {
            return None;
        }
        if segment.has(SYN) && !segment.has(ACK) {
            let halves = [Half::from_syn(segment), Half::UNSEEN];
            let mut marks = Marks::new(Phase::SynSent, forward);
            marks.offer_shift(segment.scale);
            return Some(Track { halves, marks });
        }
        if options.pickup && !segment.has(SYN) {
            // Which end opened the connection is unknown, and so are the window scales: windows are not
            // checked until the connection ends.
            let halves = [Half::from_middle(segment), Half::acknowledged_by(segment)];
            let mut marks = Marks::new(Phase::Established, forward);
            marks.leave_unchecked();
            if segment.has(FIN) {
                marks.finish(INITIATOR);
            }
            let mut track = Track { halves, marks };
            track.advance(INITIATOR, segment);
            return Some(track);
        }
        None
    }

    /// Where the flow stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.marks.phase()
    }

    /// Whether the flow is a connection of TCP.
    #[inline(always)]
    pub fn is_connection(&self) -> bool {
        !matches!(self.phase(), Phase::Asked | Phase::Answered)
    }

    /// Whether a packet of this direction comes from the end that opened the flow.
    #[inline(always)]
    pub fn is_from_initiator(&self, forward: bool) -> bool {
        self.marks.forward() == forward
    }

    /// Notes a packet of a flow that is not a connection.
    #[inline(always)]
    pub fn note(&mut self, from_initiator: bool) {
        if !from_initiator {
            self.marks.set_phase(Phase::Answered);
        }
    }

    /// Whether the three-way handshake is not complete.
    pub fn is_half_open(&self) -> bool {
        matches!(self.phase(), Phase::SynSent | Phase::SynCrossed | Phase::SynReceived)
    }

    /// Whether a segment is data or an acknowledgement within the windows of an open connection, as most are. If so,
    /// [`Track::follow`] does what [`Track::segment`] would do.
    #[inline(always)]
    pub fn is_continued_by(&self, from_initiator: bool, segment: &Segment) -> bool {
        self.phase() == Phase::Established
            && segment.flags & (SYN | FIN | RST | ACK) == ACK
            && self.fits(sender(from_initiator), segment)
    }

    /// Follows the connection over a segment that continues it.
    #[inline(always)]
    pub fn follow(&mut self, from_initiator: bool, segment: &Segment) {
        self.advance(sender(from_initiator), segment);
    }

    /// Judges a segment and follows the connection.
    #[inline]
    pub fn segment(
        &mut self,
        from_initiator: bool,
        segment: &Segment,
        options: TcpOptions,
    ) -> TcpVerdict {
        let sender = sender(from_initiator);
        // The usual case: data or acknowledgements of a connection that is open.
        if self.phase() == Phase::Established && segment.flags & (SYN | FIN | RST | ACK) == ACK {
            return self.exchange(sender, segment, options);
        }
        if !segment.is_plausible() {
            return TcpVerdict::Drop;
        }
        match self.phase() {
            Phase::SynSent => self.in_syn_sent(sender, segment),
            Phase::SynCrossed => self.in_syn_crossed(sender, segment, options),
            Phase::SynReceived => self.in_syn_received(sender, segment, options),
            Phase::Closed => self.after_reset(sender, segment),
            Phase::Asked | Phase::Answered => TcpVerdict::Drop,
            _ => self.in_open(sender, segment, options),
        }
    }

    fn in_syn_sent(&mut self, sender: usize, segment: &Segment) -> TcpVerdict {
        let initiator_end = self.halves[INITIATOR].end;
        match (sender, segment.flags & (SYN | RST | ACK)) {
            // The SYN again, or another one: an endpoint that gave up may choose a new number.
            (INITIATOR, SYN) if segment.end() == initiator_end => TcpVerdict::Pass,
            (INITIATOR, SYN) => TcpVerdict::Restart,
            (INITIATOR, flags) if flags & RST != 0 && segment.seq == initiator_end => self.reset(),
            // The handshake counts only when it acknowledges the SYN (RFC 9293, 3.10.7.3), with or without
            // the data that came along (RFC 7413).
            (RESPONDER, flags) if flags == SYN | ACK && self.acknowledges_syn(segment) => {
                self.meet(segment);
                self.marks.set_phase(Phase::SynReceived);
                TcpVerdict::Pass
            }
            (RESPONDER, SYN) => {
                self.meet(segment);
                self.marks.set_phase(Phase::SynCrossed);
                TcpVerdict::Pass
            }
            // A refusal must acknowledge the SYN (RFC 9293, 3.10.7.3).
            (RESPONDER, flags) if flags == RST | ACK && segment.ack == initiator_end => {
                self.reset()
            }
            _ => TcpVerdict::Drop,
        }
    }

    /// Learns the responder's side from its SYN.
    fn meet(&mut self, syn: &Segment) {
        let [initiator, responder] = &mut self.halves;
        *responder = Half::from_syn(syn);
        responder.max_end = responder.end.wrapping_add(initiator.offered());
        self.marks.settle_shifts(syn.scale);
        initiator.settle_shift(self.marks.shift(INITIATOR));
        responder.settle_shift(self.marks.shift(RESPONDER));
        if syn.has(ACK) {
            initiator.acked = syn.ack;
            initiator.max_end = syn.ack.wrapping_add(u32::from(syn.window).max(1));
        } else {
            initiator.max_end = initiator.end.wrapping_add(u32::from(syn.window).max(1));
        }
    }

    /// Whether a SYN-ACK acknowledges the initiator's SYN: until then, what it has acknowledged is the
    /// SYN's own number.
    fn acknowledges_syn(&self, segment: &Segment) -> bool {
        let initiator = &self.halves[INITIATOR];
        at_most(initiator.first().wrapping_add(1), segment.ack)
            && at_most(segment.ack, initiator.end)
    }

    fn in_syn_crossed(
        &mut self,
        sender: usize,
        segment: &Segment,
        options: TcpOptions,
    ) -> TcpVerdict {
        let peer_end = self.halves[1 - sender].end;
        let own_end = self.halves[sender].end;
        if segment.has(RST) {
            return if segment.seq == own_end { self.reset() } else { TcpVerdict::Drop };
        }
        if segment.has(SYN) && segment.end() != own_end {
            return TcpVerdict::Drop;
        }
        if !segment.has(ACK) {
            return TcpVerdict::Pass;
        }
        if segment.ack != peer_end {
            return TcpVerdict::Drop;
        }
        self.halves[1 - sender].acked = segment.ack;
        if segment.has(SYN) {
            return TcpVerdict::Pass;
        }
        // Two SYN-ACKs could answer each other for ever: one end must go on.
        if !self.halves.iter().all(Half::is_acknowledged) {
            return self.exchange(sender, segment, options);
        }
        self.marks.set_phase(Phase::Established);
        // What it carries counts.
        let verdict = self.in_open(sender, segment, options);
        if verdict == TcpVerdict::Drop {
            self.marks.set_phase(Phase::SynCrossed);
        }
        verdict
    }

    fn in_syn_received(
        &mut self,
        sender: usize,
        segment: &Segment,
        options: TcpOptions,
    ) -> TcpVerdict {
        let [initiator, responder] = &self.halves;
        match (sender, segment.flags & (SYN | RST | ACK)) {
            (INITIATOR, SYN) if segment.end() == initiator.end => TcpVerdict::Pass,
            (INITIATOR, SYN) => TcpVerdict::Restart,
            (RESPONDER, flags) if flags == SYN | ACK => {
                // Again, or from a responder that keeps no state and so chose another number.
                let again = segment.end() == responder.end;
                if segment.ack != initiator.acked {
                    return TcpVerdict::Drop;
                }
                if !again {
                    self.halves[RESPONDER].restart(segment);
                }
                TcpVerdict::Pass
            }
            (_, flags) if flags & RST != 0 => {
                let exact = segment.seq == self.halves[sender].end;
                if exact { self.reset() } else { TcpVerdict::Drop }
            }
            // Only the initiator's acknowledgement of the SYN-ACK opens the connection, so a SYN and
            // a SYN-ACK that answer each other for ever do not.
            (INITIATOR, ACK) if segment.ack == responder.end => {
                self.marks.set_phase(Phase::Established);
                let verdict = self.in_open(INITIATOR, segment, options);
                if verdict == TcpVerdict::Drop {
                    self.marks.set_phase(Phase::SynReceived);
                }
                verdict
            }
            (RESPONDER, ACK) => self.exchange(RESPONDER, segment, options),
            _ => TcpVerdict::Drop,
        }
    }

    fn in_open(&mut self, sender: usize, segment: &Segment, options: TcpOptions) -> TcpVerdict {
        if segment.has(RST) {
            return self.judge_reset(sender, segment);
        }
        if segment.has(SYN) {
            if segment.has(ACK) {
                // A SYN-ACK that comes again must lie in the windows like any segment.
                let inside = self.fits(sender, segment);
                return if inside { TcpVerdict::Pass } else { TcpVerdict::Drop };
            }
            // The endpoint answers with an acknowledgement, by which a peer that has lost the
            // connection finds out and resets it (RFC 5961, section 4). That must not be kept from
            // it, and it changes nothing here.
            // Within the window it would reset a peer that is older than that, so there it is dropped.
            return match self.phase() {
                Phase::TimeWait => TcpVerdict::Restart,
                _ if self.is_in_window(sender, segment) => TcpVerdict::Drop,
                _ => TcpVerdict::Pass,
            };
        }
        let verdict = self.exchange(sender, segment, options);
        if verdict == TcpVerdict::Pass {
            if segment.has(FIN) {
                self.marks.finish(sender);
            }
            match self.marks.finished() {
                0 => {}
                1 => self.marks.set_phase(Phase::Closing),
                _ if self.halves.iter().all(Half::is_acknowledged) => {
                    self.marks.set_phase(Phase::TimeWait);
                }
                _ => self.marks.set_phase(Phase::LastAck),
            }
        }
        verdict
    }

    /// A segment with ACK and without SYN and RST.
    #[inline]
    fn exchange(&mut self, sender: usize, segment: &Segment, options: TcpOptions) -> TcpVerdict {
        if self.fits(sender, segment) || self.marks.is_unchecked() {
            self.advance(sender, segment);
            TcpVerdict::Pass
        } else if options.liberal {
            // Without a trace: else a forged segment could move the numbers that resets are held to.
            TcpVerdict::Pass
        } else {
            TcpVerdict::Drop
        }
    }

    /// The four bounds on a segment.
    #[inline]
    fn fits(&self, sender: usize, segment: &Segment) -> bool {
        let to = &self.halves[1 - sender];
        // Acknowledgements may lag by a full window, and by no less than 64 KiB and a segment.
        let lag = self.window(sender).max(66_000);
        self.is_in_window(sender, segment)
            && at_most(segment.ack, to.end)
            && at_most(to.end.wrapping_sub(lag), segment.ack)
    }

    /// The two bounds on a segment's data. Nothing new follows a FIN.
    #[inline]
    fn is_in_window(&self, sender: usize, segment: &Segment) -> bool {
        let from = &self.halves[sender];
        let limit = if self.marks.has_finished(sender) { from.end } else { from.max_end };
        let end = segment.end();
        at_most(end, limit) && at_most(from.end.wrapping_sub(self.window(1 - sender)), end)
    }

    /// The largest window that an end has offered, in bytes.
    #[inline(always)]
    fn window(&self, end: usize) -> u32 {
        self.halves[end].window(self.marks.shift(end))
    }

    #[inline]
    fn advance(&mut self, sender: usize, segment: &Segment) {
        let window = u32::from(segment.window) << self.marks.shift(sender);
        let [a, b] = &mut self.halves;
        let (from, to) = if sender == INITIATOR { (a, b) } else { (b, a) };
        from.sent_to(segment.end());
        from.offer(segment.window);
        to.acknowledge(segment.ack, window);
    }

    /// A reset counts when it carries exactly the number the receiver waits for (RFC 5961, section 3):
    /// the highest acknowledged, or the end of what was sent when nothing was lost. One in between may
    /// be honest: it passes for the endpoint to challenge, and changes nothing here.
    fn judge_reset(&mut self, sender: usize, segment: &Segment) -> TcpVerdict {
        let (from, to) = (&self.halves[sender], &self.halves[1 - sender]);
        if segment.has(ACK) && !at_most(segment.ack, to.end) {
            return TcpVerdict::Drop;
        }
        if segment.seq == from.end || segment.seq == from.acked {
            self.reset()
        } else if at_most(from.acked, segment.seq) && at_most(segment.seq, from.end) {
            TcpVerdict::Pass
        } else {
            TcpVerdict::Drop
        }
    }

    fn reset(&mut self) -> TcpVerdict {
        self.marks.forget_missing_offer();
        self.marks.set_phase(Phase::Closed);
        TcpVerdict::Pass
    }

    fn after_reset(&self, sender: usize, segment: &Segment) -> TcpVerdict {
        let from = &self.halves[sender];
        let passes = match segment.flags & (SYN | RST | ACK) {
            SYN => return TcpVerdict::Restart,
            // The reset again, or the answer to a challenge.
            flags if flags & RST != 0 => {
                at_most(from.acked, segment.seq) && at_most(segment.seq, from.end)
            }
            // What was under way, or a challenge (RFC 5961, section 3) that the reset's sender answers.
            ACK => self.fits(sender, segment),
            _ => false,
        };
        if passes { TcpVerdict::Pass } else { TcpVerdict::Drop }
    }
}

#[inline(always)]
fn sender(from_initiator: bool) -> usize {
    if from_initiator { INITIATOR } else { RESPONDER }
}

/// Whether `a` does not lie behind `b` in sequence space.
#[inline]
fn at_most(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) as i32 >= 0
}
