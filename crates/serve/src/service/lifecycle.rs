//! What becomes of a connection after a segment, a timeout, or a call of the application.

use rheostat_base::Time;
use rheostat_run::Output;
use rheostat_tcp::{CloseReason, Event, TimeWait};

use super::TcpService;
use crate::application::Application;
use crate::conversation::{Turn, abort};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};

/// Segments of one connection sent in a row, before other connections have their turn.
const ROW: usize = 64;

/// What to do with a connection next.
pub(super) enum Next {
    /// Call it then.
    At(Time),
    /// It has gone as far as TIME-WAIT: this is what stays of it.
    Retire(TimeWait),
    /// It is over.
    Remove,
}

/// At the end of a run, nothing stays.
pub(super) fn settle(_: Next) -> Next {
    Next::Remove
}

impl<A: Application> TcpService<A> {
    /// Lets the application take and give what it can, and sends what there is to be sent.
    pub(super) fn drive(&mut self, entry: &mut Entry<A>, out: &mut Output) -> Next {
        let now = out.now();
        self.note_events(entry);
        self.check_idle(entry, now);
        let turn = self.conversations.advance(entry, now);
        let is_all = self.transmit(entry, out);
        // What was written may have ended it, as when the user aborts.
        self.note_events(entry);
        let allocated = entry.tcp.allocated() + entry.stream.allocated();
        self.shared.budget.charge(&mut entry.charged, allocated);
        if let Some(stub) = entry.tcp.time_wait() {
            self.end(entry);
            return Next::Retire(stub);
        }
        if entry.tcp.state() == rheostat_tcp::State::Closed {
            self.end(entry);
            return Next::Remove;
        }
        if turn == Turn::Again || !is_all {
            return Next::At(Time::ZERO);
        }
        let due = entry.tcp.next_deadline().unwrap_or(Time::NEVER);
        Next::At(due.min(self.idle_deadline(entry)))
    }

    fn note_events(&mut self, entry: &mut Entry<A>) {
        while let Some(event) = entry.tcp.poll_event() {
            match event {
                Event::Established if entry.stream.phase == Phase::Opening => {
                    entry.stream.phase = Phase::Open;
                    self.shared.budget.end_handshake();
                    self.counters.accepted.increment();
                }
                Event::PeerFinished => entry.stream.peer_finished = true,
                Event::Closed(reason) => self.note_close(entry, reason),
                Event::Established | Event::Readable | Event::Urgent | Event::Writable => {}
            }
        }
    }

    fn note_close(&mut self, entry: &mut Entry<A>, reason: CloseReason) {
        if entry.stream.phase == Phase::Opening {
            self.shared.budget.end_handshake();
            self.counters.handshake_failed.increment();
        } else {
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
        entry.stream.phase = Phase::Done;
    }

    /// Ends a connection on which nothing has moved for too long: in good order if nothing was under way.
    fn check_idle(&mut self, entry: &mut Entry<A>, now: Time) {
        let is_open = matches!(entry.stream.phase, Phase::Open | Phase::Ending);
        if !is_open || self.idle_deadline(entry) > now {
            return;
        }
        self.counters.idle_closed.increment();
        match entry.stream.is_idle() {
            true => entry.stream.phase = Phase::Ending,
            false => abort(entry),
        }
    }

    /// When the service itself has something to do about a connection that is silent.
    fn idle_deadline(&self, entry: &Entry<A>) -> Time {
        match entry.stream.phase {
            Phase::Lingering(until) => until,
            Phase::Open | Phase::Ending => {
                let timeout = self.listeners.get(entry.listener).idle_timeout;
                timeout.map_or(Time::NEVER, |timeout| entry.active + timeout)
            }
            Phase::Opening | Phase::Done => Time::NEVER,
        }
    }

    /// Sends what there is, a row of segments at most; returns whether that was all.
    fn transmit(&mut self, entry: &mut Entry<A>, out: &mut Output) -> bool {
        let (now, ends) = (out.now(), Ends::of(&entry.key));
        for _ in 0..ROW {
            let Some(transmit) = entry.tcp.poll_transmit(now) else { return true };
            self.counters.segments_out.increment();
            let (header, payload) = (&transmit.header, transmit.payload);
            self.egress.send(&ends, entry.device, &mut entry.route, header, payload, out);
        }
        false
    }

    /// Gives back what a connection has taken, but for its place.
    fn end(&mut self, entry: &mut Entry<A>) {
        self.counters.retransmitted.add(entry.tcp.retransmitted());
        self.shared.budget.charge(&mut entry.charged, 0);
    }
}
