//! The sending side: what the user wrote until it is acknowledged, and which of it to send when.

mod invariants;
mod recovery;
mod round_trip;
mod scoreboard;
mod timer;
mod urgent;
mod window;

use std::sync::Arc;
use std::time::Duration;

use recovery::{Phase, Recovery};
use rheostat_base::Time;
pub(crate) use round_trip::RoundTrip;
use scoreboard::Scoreboard;
use timer::{SendTimer, Wait};
use urgent::UrgentMark;
use window::PeerWindow;

use crate::config::Config;
use crate::congestion::{Acked, Controller};
use crate::memory::MemoryBudget;
use crate::ring::Ring;
use crate::segment::Header;
use crate::sequence::{SequenceNumber, SequenceRange};

/// Part of what there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The number of its first byte, or of FIN.
    pub(crate) seq: SequenceNumber,
    /// Bytes of data.
    pub(crate) len: u32,
    /// Whether FIN follows the data.
    pub(crate) fin: bool,
    /// Whether it is the rescue of a recovery.
    is_rescue: bool,
}

impl Piece {
    fn end(&self) -> SequenceNumber {
        self.seq + self.len + u32::from(self.fin)
    }
}

/// What the handshake has settled about sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The largest segment, options included.
    pub(crate) mss: u32,
    /// Whether the peer reports what it holds.
    pub(crate) sack: bool,
}

/// The end of what is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// There may be more to send.
    None,
    /// FIN follows the data.
    Queued,
    /// FIN is acknowledged, and so is everything else.
    Acknowledged,
}

/// The peer has acknowledged nothing for longer than the user timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GaveUp;

/// The numbers up to `una` are acknowledged, those up to `next` have been sent. Data is kept until it is acknowledged, so that
/// any of it can be sent again as it was.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Data from `una` on.
    data: Ring,
    una: SequenceNumber,
    next: SequenceNumber,
    fin: Fin,
    terms: Terms,
    nagle: bool,
    user_timeout: Duration,
    window: PeerWindow,
    board: Scoreboard,
    recovery: Recovery,
    round_trip: RoundTrip,
    congestion: Controller,
    timer: SendTimer,
    /// Something small is to be sent into a window that is closed or small.
    must_probe: bool,
    /// When a segment was sent last, and when waiting for the peer was not in vain last.
    last_sent: Time,
    progress: Time,
    retransmitted: u64,
    urgent: UrgentMark,
    /// The largest segment for the path, options included, and for the peer.
    path_mss: u32,
    agreed_mss: u32,
    /// The buffer's size at first and at most.
    sizes: (usize, usize),
}

impl Sender {
    /// Nothing has been sent but the SYN, which comes before `next`.
    pub(crate) fn new(config: &Config, next: SequenceNumber) -> Sender {
        let terms = Terms { mss: config.default_mss.min(config.mss).into(), sack: false };
        let sizes = (config.initial_send_buffer.min(config.send_buffer), config.send_buffer);
        let mut data = Ring::new(sizes.0);
        data.limit_under_pressure(config.mss.into());
        Sender {
            data,
            una: next,
            next,
            fin: Fin::None,
            terms,
            nagle: config.nagle,
            user_timeout: config.user_timeout,
            window: PeerWindow::new(next),
            board: Scoreboard::new(next),
            recovery: Recovery::new(),
            round_trip: RoundTrip::new(config),
            congestion: Controller::new(config.congestion, terms.mss),
            timer: SendTimer::default(),
            must_probe: false,
            last_sent: Time::ZERO,
            progress: Time::ZERO,
            retransmitted: 0,
            urgent: UrgentMark::default(),
            path_mss: u32::MAX,
            agreed_mss: terms.mss,
            sizes,
        }
    }

    /// The handshake is done.
    pub(crate) fn establish(&mut self, terms: Terms, sample: Option<Duration>, now: Time) {
        self.agreed_mss = terms.mss;
        self.terms = Terms { mss: terms.mss.min(self.path_mss), ..terms };
        self.congestion.get_mut().on_mss(self.terms.mss);
        if sample.is_none() {
            // A SYN was lost, so that the window starts with one segment (RFC 5681, 3.1; RFC 6928, 2).
            self.congestion.get_mut().on_timeout(0, false, now);
        }
        self.round_trip.on_handshake(sample);
        (self.last_sent, self.progress) = (now, now);
    }

    pub(crate) fn una(&self) -> SequenceNumber {
        self.una
    }

    pub(crate) fn next(&self) -> SequenceNumber {
        self.next
    }

    /// The number of a segment without data: that of the next, or the end of the peer's window if that comes before, since a peer
    /// that closed its window refuses what lies behind a probe that it has not taken.
    pub(crate) fn next_in_window(&self) -> SequenceNumber {
        self.next.min(self.window.edge().max(self.una))
    }

    pub(crate) fn window(&mut self) -> &mut PeerWindow {
        &mut self.window
    }

    /// What the peer takes beyond what it has acknowledged.
    pub(crate) fn peer_window(&self) -> u32 {
        self.window.current()
    }

    pub(crate) fn largest_window(&self) -> u32 {
        self.window.largest()
    }

    /// The largest segment, options included.
    pub(crate) fn mss(&self) -> u32 {
        self.terms.mss
    }

    /// The mark at the end of urgent data.
    pub(crate) fn urgent(&mut self) -> &mut UrgentMark {
        &mut self.urgent
    }

    /// The end of what the user has written.
    pub(crate) fn written_end(&self) -> SequenceNumber {
        self.data_end()
    }

    /// Sets the largest segment for the path, from the next one on.
    pub(crate) fn set_path_mss(&mut self, mss: u32) {
        self.path_mss = mss;
        let mss = self.agreed_mss.min(mss);
        if mss != self.terms.mss {
            self.terms.mss = mss;
            self.congestion.get_mut().on_segment_size(mss);
        }
    }

    /// A segment that began at `quoted` was too big for the path. What was sent from there on and has not arrived is sent again
    /// in smaller segments, which says nothing about congestion.
    pub(crate) fn on_too_big(&mut self, quoted: SequenceNumber, mss: u32) {
        self.set_path_mss(mss);
        self.board.on_too_big(self.in_flight(), quoted);
    }

    pub(crate) fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    pub(crate) fn congestion(&self) -> &Controller {
        &self.congestion
    }

    /// Segments sent again.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Bytes that are neither sent nor acknowledged.
    pub(crate) fn buffered(&self) -> usize {
        self.data.len()
    }

    /// Bytes that have never been sent.
    pub(crate) fn unsent(&self) -> usize {
        let sent = self.next.since(self.una) as usize;
        self.data.len().saturating_sub(sent)
    }

    /// Charges this budget for what is allocated.
    pub(crate) fn set_memory(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.data.set_memory(budget);
    }

    /// The budget that is charged.
    pub(crate) fn memory(&self) -> Option<Arc<MemoryBudget>> {
        self.data.memory()
    }

    /// Whether half of the buffer is free.
    pub(crate) fn has_room(&self) -> bool {
        self.data.room() * 2 >= self.data.limit()
    }

    /// Bytes of memory for data.
    pub(crate) fn allocated(&self) -> usize {
        self.data.allocated()
    }

    /// Whether nothing can be written any more.
    pub(crate) fn has_finished(&self) -> bool {
        self.fin != Fin::None
    }

    /// Whether FIN is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin == Fin::Acknowledged
    }

    /// Whether nothing is in flight and nothing waits to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.una == self.end()
    }

    fn data_end(&self) -> SequenceNumber {
        self.una + self.data.len() as u32
    }

    /// The end of what there is to send.
    fn end(&self) -> SequenceNumber {
        self.data_end() + u32::from(self.fin == Fin::Queued)
    }

    fn in_flight(&self) -> SequenceRange {
        SequenceRange { start: self.una, end: self.next }
    }

    /// Adds as much data as there is room for, and returns how much that is.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        self.data.push(data)
    }

    /// Sends FIN behind the data.
    pub(crate) fn finish(&mut self) {
        if self.fin == Fin::None {
            self.fin = Fin::Queued;
        }
    }

    /// Handles the acknowledgement, the window and the blocks of a segment whose `ack` is acceptable. `echoed` is what time
    /// stamps say about the round trip.
    pub(crate) fn handle_ack(
        &mut self,
        header: &Header,
        ack: SequenceNumber,
        has_data: bool,
        echoed: Option<Duration>,
        now: Time,
    ) {
        if self.timer.waits_for() == Some(Wait::Window) {
            self.progress = now;
        }
        let window = self.window.current();
        self.window.on_segment(header.seq, ack, header.window);
        let in_flight = self.in_flight();
        let above = SequenceRange { start: ack.max(self.una), end: self.next };
        let mut has_news = false;
        for block in header.options.sack.iter().filter(|_| self.terms.sack) {
            has_news |= self.board.add(*block, above);
        }
        if ack.is_after(self.una) {
            self.on_new_ack(ack, echoed, now);
        } else if ack == self.una && !in_flight.is_empty() {
            let is_same = !has_data && window == self.window.current();
            if if self.terms.sack { has_news } else { is_same } {
                self.on_duplicate(now);
            }
        }
        self.settle_timer(now);
    }

    fn on_new_ack(&mut self, ack: SequenceNumber, echoed: Option<Duration>, now: Time) {
        // The acknowledgement that ends a fast recovery finds the window at its threshold, and leaves it there.
        let may_grow =
            self.is_limited_by_congestion() && !matches!(self.recovery.phase(), Phase::Fast { .. });
        let bytes = ack.since(self.una);
        let data = bytes.min(self.data.len() as u32);
        if data < bytes {
            self.fin = Fin::Acknowledged;
        }
        self.data.consume(data as usize);
        self.una = ack;
        self.tune();
        self.urgent.on_ack(ack);
        self.board.on_ack(ack);
        self.round_trip.on_ack(ack, echoed, now);
        if self.recovery.on_ack(ack, bytes.div_ceil(self.terms.mss)) {
            if !self.terms.sack {
                // The next segment is lost, too (RFC 6582, 3.2, step 3).
                self.board.on_loss(self.in_flight(), self.terms.mss);
                self.recovery.must_resend_first = true;
            }
        } else if may_grow {
            let round_trip = self.round_trip.smoothed();
            self.congestion.get_mut().on_ack(Acked { bytes, now, round_trip });
        }
        self.must_probe = false;
        self.progress = now;
        self.timer.stop();
    }

    /// Lets the buffer hold two congestion windows: one in flight, and one to follow it. Where memory is scarce it stays as it is,
    /// and is given back when it is empty.
    fn tune(&mut self) {
        if self.data.is_under_pressure() {
            if self.data.len() == 0 {
                self.data.give_back();
            }
            return;
        }
        let window = self.congestion.get().window() as usize;
        let (first, most) = self.sizes;
        self.data.set_limit(window.saturating_mul(2).clamp(first, most));
    }

    /// Whether the congestion window is what holds data back: otherwise it must not grow (RFC 9438, 5.8).
    fn is_limited_by_congestion(&self) -> bool {
        let congestion = self.congestion.get();
        let in_flight = self.in_flight().len();
        if congestion.window() < congestion.threshold() {
            in_flight.saturating_mul(2) > congestion.window()
        } else {
            in_flight + self.terms.mss > congestion.window()
        }
    }

    fn on_duplicate(&mut self, now: Time) {
        let in_flight = self.in_flight();
        let is_lost = self.board.lost_before(self.terms.mss).is_after(self.una);
        if self.recovery.on_duplicate(is_lost, self.next) {
            self.congestion.get_mut().on_loss(in_flight.len(), now);
            self.board.on_loss(in_flight, self.terms.mss);
        }
    }

    /// Starts or stops the timer as what is in flight and the window demand.
    pub(crate) fn settle_timer(&mut self, now: Time) {
        let wait = if self.is_idle() {
            None
        } else if self.window.edge().is_after(self.una) && self.next != self.una {
            Some(Wait::Acknowledgement)
        } else {
            Some(Wait::Window)
        };
        let before = self.timer.waits_for();
        if before.is_none() || (wait == Some(Wait::Window) && before != wait) {
            self.progress = now;
        }
        let round_trip = &self.round_trip;
        self.timer.set(wait, now, |wait, probes| interval(round_trip, wait, probes));
    }

    /// When [`Sender::handle_timeout`] is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.timer.deadline().map(|deadline| deadline.min(self.progress + self.user_timeout))
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) -> Result<(), GaveUp> {
        if self.timer.waits_for().is_some() && now >= self.progress + self.user_timeout {
            return Err(GaveUp);
        }
        match self.timer.expired(now) {
            None => return Ok(()),
            Some(Wait::Window) => self.must_probe = true,
            Some(Wait::Acknowledgement) => {
                let in_flight = self.in_flight();
                let is_first = self.recovery.on_timeout(self.next);
                self.board.on_timeout(in_flight);
                self.congestion.get_mut().on_timeout(in_flight.len(), is_first, now);
                self.round_trip.back_off();
            }
        }
        let round_trip = &self.round_trip;
        self.timer.again(now, |wait, probes| interval(round_trip, wait, probes));
        Ok(())
    }

    /// What to send next, with options of this length, if anything may be sent.
    pub(crate) fn next_piece(&mut self, options: usize, now: Time) -> Option<Piece> {
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
        if in_flight.is_empty() && now.since(self.last_sent) > self.round_trip.timeout() {
            self.congestion.get_mut().on_idle();
        }
        if let Some(lost) = self.board.next_lost(in_flight, self.terms.mss) {
            let piece = self.cut(lost, max);
            return Some(piece).filter(|_| self.recovery.must_resend_first || self.fits(piece));
        }
        let is_repairing = matches!(self.recovery.phase(), Phase::Fast { .. });
        let hole = || self.board.next_hole(in_flight).filter(|_| is_repairing);
        let piece = self.new_piece(max).or_else(|| hole().map(|hole| self.cut(hole, max)));
        piece.or_else(|| self.rescue(max)).filter(|piece| self.fits(*piece))
    }

    /// The last segment in flight, when nothing else can be sent in a recovery (RFC 6675, NextSeg, rule 4).
    fn rescue(&self, max: u32) -> Option<Piece> {
        let Phase::Fast { until } = self.recovery.phase() else { return None };
        let range = self.board.rescue(self.in_flight(), until, max).filter(|_| self.terms.sack)?;
        Some(Piece { is_rescue: true, ..self.cut(range, max) })
    }

    fn fits(&self, piece: Piece) -> bool {
        let mut pipe = self.board.pipe(self.in_flight(), self.terms.mss);
        if !self.terms.sack {
            pipe = pipe.saturating_sub(self.recovery.duplicates().saturating_mul(self.terms.mss));
        }
        pipe == 0 || pipe + piece.len <= self.congestion.get().window()
    }

    /// One byte or FIN into a closed window; what fits into a small one, if nothing is in flight.
    fn probe(&self, max: u32) -> Option<Piece> {
        if !self.window.edge().is_after(self.una) {
            return Some(self.cut(SequenceRange::of_len(self.una, 1), max));
        }
        let room = SequenceRange { start: self.next, end: self.window.edge().min(self.end()) };
        (self.una == self.next && !room.is_empty()).then(|| self.cut(room, max))
    }

    /// What has not been sent yet, unless it had better wait (RFC 9293, 3.7.4 and 3.8.6.2.1).
    fn new_piece(&self, max: u32) -> Option<Piece> {
        let end = self.end();
        let room = SequenceRange { start: self.next, end: self.window.edge().min(end) };
        if room.is_empty() {
            return None;
        }
        let piece = self.cut(room, max);
        let is_quiet = !self.nagle || self.una == self.next;
        let is_last = !piece.end().is_before(self.data_end());
        let is_due = piece.len == max
            || (is_last && (is_quiet || self.fin == Fin::Queued))
            || (is_quiet && piece.len >= self.window.largest() / 2);
        is_due.then_some(piece)
    }

    /// The start of a range as one segment with up to `max` bytes of data.
    fn cut(&self, range: SequenceRange, max: u32) -> Piece {
        let data_end = self.data_end();
        let len = range.end.min(data_end).since(range.start).min(max);
        let fin = range.start + len == data_end && range.end.is_after(data_end);
        Piece { seq: range.start, len, fin, is_rescue: false }
    }

    /// The piece leaves.
    pub(crate) fn on_sent(&mut self, piece: Piece, now: Time) {
        if piece.seq.is_before(self.next) {
            self.retransmitted += 1;
            match self.recovery.phase() {
                Phase::Fast { until } if piece.is_rescue => self.board.on_rescued(until),
                _ => self.board.on_retransmitted(piece.end()),
            }
            self.round_trip.on_retransmitted();
            self.recovery.must_resend_first = false;
        } else {
            self.next = piece.end();
            self.round_trip.on_sent(piece.end(), now);
        }
        self.must_probe = false;
        self.last_sent = now;
        self.settle_timer(now);
    }

    /// The data of a piece, and whether the buffer ends with it.
    pub(crate) fn payload(&self, piece: Piece) -> ([&[u8]; 2], bool) {
        let at = piece.seq.since(self.una) as usize;
        let len = piece.len as usize;
        (self.data.pieces(at, len), len > 0 && at + len == self.data.len())
    }
}

fn interval(round_trip: &RoundTrip, wait: Wait, probes: u32) -> Duration {
    match wait {
        Wait::Acknowledgement => round_trip.timeout(),
        Wait::Window => round_trip.scaled(probes),
    }
}
