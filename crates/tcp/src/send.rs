//! The sending side: what the user wrote until it is acknowledged, and which of it to send when.

mod invariants;
mod piece;
mod pieces;
mod recovery;
mod round_trip;
mod scoreboard;
mod timer;
mod urgent;
mod window;

use std::sync::Arc;
use std::time::Duration;

use recovery::{Recovery, RecoveryPhase};
use rheostat_base::Time;
pub(crate) use round_trip::RoundTrip;
use scoreboard::Scoreboard;
use timer::{SendTimer, Wait};
use urgent::UrgentMark;
use window::PeerWindow;

use crate::config::Config;
use crate::congestion::{Acked, Controller};
use crate::deadline::Deadline;
use crate::memory::MemoryBudget;
use crate::ring::ByteRing;
use crate::segment::Header;
use crate::sequence::{SequenceNumber, SequenceRange};

/// What the handshake has settled about sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The largest segment, options included.
    pub(crate) mss: u32,
    /// Whether the peer reports what it holds.
    pub(crate) sack: bool,
}

/// What the handshake says about the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeSample {
    /// The time from SYN to its acknowledgement.
    Measured(Duration),
    /// A SYN was sent more than once: one was lost, or its answer.
    Lost,
    /// Nothing: when the SYN was sent is not known.
    Unknown,
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
#[repr(C)]
pub(crate) struct SendHalf {
    /// Data from `una` on.
    data: ByteRing,
    una: SequenceNumber,
    next: SequenceNumber,
    congestion: Controller,
    round_trip: RoundTrip,
    timer: SendTimer,
    /// When a segment was sent last, and when waiting for the peer was not in vain last.
    last_sent: Time,
    progress: Time,
    board: Scoreboard,
    window: PeerWindow,
    terms: Terms,
    recovery: Recovery,
    urgent: UrgentMark,
    retransmitted: u32,
    /// The largest segment for the path, options included, and for the peer.
    path_mss: u32,
    agreed_mss: u32,
    fin: Fin,
    /// Something small is to be sent into a window that is closed or small.
    must_probe: bool,
}

impl SendHalf {
    /// Nothing has been sent but the SYN, which comes before `next`.
    pub(crate) fn new(config: &Config, next: SequenceNumber) -> SendHalf {
        let terms = Terms { mss: config.default_mss.min(config.mss).into(), sack: false };
        let mut data = ByteRing::new(config.initial_send_buffer.min(config.send_buffer));
        data.limit_under_pressure(config.mss.into());
        SendHalf {
            data,
            una: next,
            next,
            fin: Fin::None,
            terms,
            window: PeerWindow::new(next),
            board: Scoreboard::default(),
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
        }
    }

    /// The handshake is done.
    pub(crate) fn establish(
        &mut self,
        terms: Terms,
        sample: HandshakeSample,
        config: &Config,
        now: Time,
    ) {
        self.agreed_mss = terms.mss;
        self.terms = Terms { mss: terms.mss.min(self.path_mss), ..terms };
        self.congestion.get_mut().on_mss(self.terms.mss);
        if sample == HandshakeSample::Lost {
            // A SYN was lost, so that the window starts with one segment (RFC 5681, 3.1; RFC 6928, 2).
            self.congestion.get_mut().on_timeout(0, false, now);
        }
        self.round_trip.on_handshake(sample, config);
        (self.last_sent, self.progress) = (now, now);
    }

    pub(crate) fn una(&self) -> SequenceNumber {
        self.una
    }

    pub(crate) fn next(&self) -> SequenceNumber {
        self.next
    }

    /// The number of a segment without data: that of the next, or the end of the peer's window if that comes before, since a peer
    /// that closed its window refuses what lies behind a probe that it has not taken. What was sent before the scale of the window
    /// rounded its end down (RFC 7323, 2.4) has been taken: an earlier number would be refused as old.
    pub(crate) fn next_in_window(&self) -> SequenceNumber {
        let edge = self.window.edge().max(self.una);
        let beyond = self.next.since(edge);
        let is_probe = edge == self.una && beyond == 1;
        let is_rounded = self.next.is_after(edge) && beyond < self.window.unit();
        if is_rounded && !is_probe { self.next } else { self.next.min(edge) }
    }

    pub(crate) fn window(&mut self) -> &mut PeerWindow {
        &mut self.window
    }

    /// Duplicate acknowledgements since the last that was not one, and whether a loss is being repaired.
    pub(crate) fn repairs(&self) -> (u32, bool) {
        (self.recovery.duplicates(), self.recovery.phase() != RecoveryPhase::Open)
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
    pub(crate) fn retransmitted(&self) -> u32 {
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
    pub(crate) fn memory(&self) -> Option<&Arc<MemoryBudget>> {
        self.data.memory()
    }

    /// The buffer.
    pub(crate) fn data(&mut self) -> &mut ByteRing {
        &mut self.data
    }

    /// Whether half of the buffer is free. A quarter is enough when everything written has been sent and the congestion window
    /// allows more than half of the buffer in flight, as it may with the largest one: the window would not be used otherwise.
    pub(crate) fn has_room(&self) -> bool {
        let (room, limit) = (self.data.room(), self.data.limit());
        let starves = || self.unsent() == 0 && self.congestion.get().window() as usize > limit / 2;
        room * 2 >= limit || (room * 4 >= limit && starves())
    }

    /// Bytes of memory for data.
    pub(crate) fn allocated(&self) -> usize {
        self.data.allocated()
    }

    /// Bytes worth writing now: up to the buffer's limit, and no more than two segments beyond what the peer takes, as more would
    /// only wait. None while that is less than a quarter of what may wait: acknowledgements make more room.
    pub(crate) fn useful_room(&self) -> usize {
        let usable = self.window.edge().since(self.next).max(2 * self.terms.mss);
        let most = (self.next.since(self.una) + usable).min(self.data.limit() as u32);
        let room = most.saturating_sub(self.data.len() as u32);
        if room < most / 4 { 0 } else { room as usize }
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
        (config, now): (&Config, Time),
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
            self.on_new_ack(ack, echoed, config, now);
        } else if ack == self.una && !in_flight.is_empty() {
            let is_same = !has_data && window == self.window.current();
            if if self.terms.sack { has_news } else { is_same } {
                self.on_duplicate(now);
            }
        }
        self.settle_timer(config, now);
    }

    fn on_new_ack(
        &mut self,
        ack: SequenceNumber,
        echoed: Option<Duration>,
        config: &Config,
        now: Time,
    ) {
        // The acknowledgement that ends a fast recovery finds the window at its threshold, and leaves it there.
        let may_grow = self.is_limited_by_congestion()
            && !matches!(self.recovery.phase(), RecoveryPhase::Fast { .. });
        let bytes = ack.since(self.una);
        let data = bytes.min(self.data.len() as u32);
        if data < bytes {
            self.fin = Fin::Acknowledged;
        }
        self.data.consume(data as usize);
        self.una = ack;
        self.tune(config);
        self.urgent.on_ack(ack);
        self.board.on_ack(ack);
        self.round_trip.on_ack(ack, echoed, config, now);
        if self.recovery.on_ack(ack, bytes.div_ceil(self.terms.mss)) {
            if !self.terms.sack {
                // The next segment is lost, too (RFC 6582, 3.2, step 3).
                self.board.on_loss(self.in_flight(), self.terms.mss);
                self.recovery.must_resend_first = true;
            }
        } else if may_grow {
            let round_trip = self.round_trip.smoothed();
            let (una, next) = (self.una, self.next);
            let acked = Acked { bytes, now, round_trip, sample: echoed, una, next };
            self.congestion.get_mut().on_ack(acked);
        }
        self.must_probe = false;
        self.progress = now;
        self.timer.stop();
    }

    /// Lets the buffer hold two congestion windows: one in flight, and one to follow it, as memory allows. The bound grows by a
    /// quarter at least, as a window that grows with each acknowledgement would move the buffer each time. Memory that is not
    /// needed is given back: where it is scarce, and what a buffer has grown to once it is empty.
    fn tune(&mut self, config: &Config) {
        let is_under_pressure = self.data.is_under_pressure();
        self.data.trim(is_under_pressure);
        if is_under_pressure {
            return;
        }
        let window = self.congestion.get().window() as usize;
        let (first, most) = (config.initial_send_buffer, config.send_buffer);
        let (target, limit) = (window.saturating_mul(2).max(first).min(most), self.data.limit());
        if target < limit || target >= limit + limit / 4 || target == most {
            self.data.tune_limit(target);
        }
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
        let is_lost = self.board.lost_before(in_flight, self.terms.mss).is_after(self.una);
        if self.recovery.on_duplicate(is_lost, self.next) {
            self.congestion.get_mut().on_loss(in_flight.len(), now);
            self.board.on_loss(in_flight, self.terms.mss);
        }
    }

    /// Starts or stops the timer as what is in flight and the window demand.
    pub(crate) fn settle_timer(&mut self, config: &Config, now: Time) {
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
        self.timer.set(wait, now, |wait, probes| interval(round_trip, wait, probes, config));
    }

    /// When [`SendHalf::handle_timeout`] is due.
    pub(crate) fn deadline(&self, config: &Config) -> Deadline {
        if self.timer.waits_for().is_none() {
            return Deadline::NONE;
        }
        self.timer.deadline().min(Deadline::at(self.progress + config.user_timeout))
    }

    pub(crate) fn handle_timeout(&mut self, config: &Config, now: Time) -> Result<(), GaveUp> {
        if self.timer.waits_for().is_some() && now >= self.progress + config.user_timeout {
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
        self.timer.again(now, |wait, probes| interval(round_trip, wait, probes, config));
        Ok(())
    }
}

fn interval(round_trip: &RoundTrip, wait: Wait, probes: u8, config: &Config) -> Duration {
    match wait {
        Wait::Acknowledgement => round_trip.timeout(config),
        Wait::Window => round_trip.scaled(probes, config),
    }
}
