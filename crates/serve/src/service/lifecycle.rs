//! What becomes of a connection after a segment, a timeout, or a call of the application.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::Output;
use rheostat_tcp::{CloseReason, Event, Segment, TimeWait};

use super::TcpService;
use crate::connections::Connections;
use crate::driver::{Driver, Turn};
use crate::egress::{Label, Outgoing};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};

/// Segments of one connection sent in a row, before other connections have their turn.
const ROW: usize = 64;

/// Bytes that buffers may have beyond their data for as long as the connection lasts.
const SLACK: usize = 4 << 10;
/// How long nothing moves before more than that is given back.
const REST: Duration = Duration::from_secs(1);

/// How a connection ends.
pub(super) enum End {
    /// In TIME-WAIT: this is what stays of it.
    Retire(TimeWait),
    /// Nothing stays of it.
    Remove,
}

impl<D: Driver> TcpService<D> {
    /// Passes the connection in a slot a segment, if there is one, lets the program take and give what it can, sends what there is to be
    /// sent, and sets the connection's next deadline. Returns how the connection ends, if it does.
    pub(super) fn drive(
        &mut self,
        slot: u32,
        segment: Option<&Segment<'_>>,
        connections: &mut Connections<D::Stream>,
        out: &mut Output,
    ) -> Option<End> {
        let now = out.now();
        self.around.now = now;
        let shard = connections.shard();
        let mut live = connections.live_in(slot)?;
        if let Some(segment) = segment {
            self.take_segment(live.entry(), segment, out);
        }
        self.noted.begin_turn();
        live.lend_buffer();
        loop {
            self.note_events(live.entry(), out);
            self.check_progress(live.entry(), now);
            let counts = self.noted.is_watched.then(|| self.program_counts());
            let turn = match self.driver.advance(&mut live, now) {
                Some(turn) => turn,
                None => {
                    let turn = self.driver.advance_among(slot, connections, &mut self.around);
                    live = connections.live_in(slot)?;
                    turn
                }
            };
            if let Some(before) = counts {
                self.note_work(before, out);
            }
            let is_all = self.transmit(live.entry(), out);
            self.driver.sent();
            // What was written may have ended it, as when the user aborts.
            self.note_events(live.entry(), out);
            // The end is the last event, so this comes twice at most.
            if !D::has_events(&live.entry().stream) {
                let next = self.decide(live.entry(), turn == Turn::Over && is_all, now);
                live.take_back_buffer();
                let due = match next {
                    Ok(due) => due,
                    Err(end) => return Some(end),
                };
                live.arm(due);
                self.around.due.note(shard, due);
                return None;
            }
        }
    }

    /// The next deadline of a connection whose turn is over.
    ///
    /// # Errors
    /// How it ends, if it does.
    fn decide(
        &mut self,
        entry: &mut Entry<D::Stream>,
        is_done: bool,
        now: Time,
    ) -> Result<Time, End> {
        let retransmitted = entry.tcp.retransmitted();
        if retransmitted != entry.retransmitted {
            self.counters.retransmitted.add((retransmitted - entry.retransmitted).into());
            entry.retransmitted = retransmitted;
        }
        let charged = entry.charged;
        if let Some(memory) = entry.tcp.memory() {
            memory.recharge(&mut entry.charged, D::allocated(&entry.stream));
            if entry.charged > charged && memory.is_exceeded() {
                self.shared.note_scarcity();
            }
        }
        if entry.phase == Phase::Done && !D::is_held(entry) {
            if let Some(stub) = entry.tcp.time_wait() {
                release(entry);
                return Err(End::Retire(stub));
            }
            if entry.tcp.state() == rheostat_tcp::State::Closed {
                release(entry);
                return Err(End::Remove);
            }
        }
        if !is_done {
            return Ok(Time::ZERO);
        }
        let due = entry.tcp.next_deadline().unwrap_or(Time::NEVER);
        let end = self.idle_deadline(entry).min(self.request_deadline(entry));
        Ok(due.min(end).min(fit_deadline(entry, now)))
    }

    fn note_events(&mut self, entry: &mut Entry<D::Stream>, out: &mut Output) {
        while let Some(event) = entry.tcp.poll_event() {
            D::note(&mut entry.stream, event);
            match event {
                Event::Established if entry.phase == Phase::Opening => {
                    entry.phase = Phase::Open;
                    match entry.listener {
                        Some(_) => self.counters.accepted.increment(),
                        None => self.counters.connected.increment(),
                    }
                }
                Event::PeerFinished => entry.peer_finished = true,
                Event::Closed(reason) => {
                    self.note_closed(reason, out);
                    self.note_close(entry, reason);
                }
                Event::Established | Event::Readable | Event::Urgent | Event::Writable => {}
            }
        }
    }

    fn note_close(&mut self, entry: &mut Entry<D::Stream>, reason: CloseReason) {
        if entry.phase == Phase::Opening {
            // Listeners have no connection before the handshake is done.
            self.counters.connect_failed.increment();
            self.counters.attempts_failed.increment();
        } else {
            if reason != CloseReason::Finished && !entry.tcp.has_finished() {
                self.counters.established_resets.increment();
            }
            let counter = match reason {
                CloseReason::Finished => &self.counters.finished,
                CloseReason::Reset | CloseReason::Refused => &self.counters.reset,
                CloseReason::Aborted | CloseReason::DataAfterClose => &self.counters.aborted,
                CloseReason::ConnectTimeout
                | CloseReason::UserTimeout
                | CloseReason::KeepAliveTimeout
                | CloseReason::FinWaitTimeout
                | CloseReason::LingerTimeout => &self.counters.timed_out,
            };
            counter.increment();
        }
        entry.phase = Phase::Done;
    }

    /// Ends a connection on which nothing has moved, or a request has been arriving, for too long.
    fn check_progress(&mut self, entry: &mut Entry<D::Stream>, now: Time) {
        if self.request_deadline(entry) <= now {
            self.counters.refused.increment();
            return self.driver.end_late(entry);
        }
        let is_open = matches!(entry.phase, Phase::Open | Phase::Ending);
        if !is_open || self.idle_deadline(entry) > now {
            return;
        }
        self.counters.idle_closed.increment();
        // The program has another such time to end it.
        entry.active = now;
        self.driver.end_idle(entry, now);
    }

    /// When the request that is arriving, if there is one, must be whole.
    fn request_deadline(&self, entry: &Entry<D::Stream>) -> Time {
        let since = D::arriving_since(&entry.stream);
        if since == Time::NEVER || entry.phase != Phase::Open {
            return Time::NEVER;
        }
        let timeout = self.around.listeners.request_timeout(entry.listener);
        timeout.map_or(Time::NEVER, |timeout| since + timeout)
    }

    /// When the service itself has something to do about a connection that is silent.
    fn idle_deadline(&self, entry: &Entry<D::Stream>) -> Time {
        match entry.phase {
            Phase::Lingering(until) => until,
            Phase::Open | Phase::Ending => {
                let timeout = self.around.listeners.idle_timeout(entry.listener);
                timeout.map_or(Time::NEVER, |timeout| entry.active + timeout)
            }
            Phase::Opening | Phase::Done => Time::NEVER,
        }
    }

    /// Sends what there is, a row of segments at most; returns whether that was all.
    fn transmit(&mut self, entry: &mut Entry<D::Stream>, out: &mut Output) -> bool {
        let (now, ends) = (out.now(), Ends::of(&entry.key));
        self.around.egress.follow(entry, now);
        let state = entry.tcp.state();
        for _ in 0..ROW {
            let Some(transmit) = entry.tcp.poll_transmit(now) else { return true };
            self.counters.segments_out.increment();
            if transmit.header.rst {
                self.counters.segments_reset.increment();
            }
            let (header, payload) = (&transmit.header, transmit.payload);
            let label = match self.noted.is_watched || out.mirror().is_armed() {
                true => {
                    let len = payload[0].len() + payload[1].len();
                    let of = (&ends, entry.device, Some(state));
                    self.note_answer(of, (header, len), transmit.reason, out)
                }
                false => Label::default(),
            };
            let segment = Outgoing { header, payload, label };
            self.around.egress.send(&ends, entry.device, &entry.route, segment, out);
        }
        false
    }
}

/// Gives back what a connection has taken, but for its place and TCP's buffers, which go with it.
fn release<S>(entry: &mut Entry<S>) {
    if let Some(memory) = entry.tcp.memory() {
        memory.recharge(&mut entry.charged, 0);
    }
}

/// When the buffers of a connection have been larger than its data for long enough; gives their memory back if that is now.
#[inline]
fn fit_deadline<S>(entry: &mut Entry<S>, now: Time) -> Time {
    if entry.tcp.slack() < SLACK {
        return Time::NEVER;
    }
    let due = entry.active + REST;
    if due > now {
        return due;
    }
    entry.tcp.fit_buffers();
    Time::NEVER
}
