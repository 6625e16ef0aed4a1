//! What is noted about segments that are traced. None of it runs for others.

use rheostat_base::{Counter, DeviceId};
use rheostat_capture::Fields;
use rheostat_capture::trace::{SegmentDecision, SegmentSummary, Step};
use rheostat_packet::{Mbuf, Network};
use rheostat_run::Output;
use rheostat_tcp::{Challenge, CloseReason, Decision, Header, SendReason, State, TimeWaitOutcome};

use super::TcpService;
use crate::counters::Counters;
use crate::driver::Driver;
use crate::egress::Label;
use crate::ends::Ends;

/// The number of TCP in headers of IP.
const TCP: u8 = 6;

/// What a service does something for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A packet with this mark; zero, if it is not traced.
    Packet(u8),
    /// A timer of a connection.
    Timer,
    /// A connection that had more to do than fits into one turn.
    Turn,
    /// A request is handled.
    Handled,
    /// Another thread has asked for it.
    Call,
    /// Memory for connections is scarce.
    Memory,
    /// The service is to end.
    Drain,
    /// The run is over.
    End,
}

impl Cause {
    /// The mark of the packet that is traced, or zero.
    #[inline]
    pub(super) fn mark(self) -> u8 {
        if let Cause::Packet(mark) = self { mark } else { 0 }
    }

    fn name(self) -> &'static str {
        match self {
            Cause::Packet(_) => "untraced packet",
            Cause::Timer => "timer",
            Cause::Turn => "unfinished turn",
            Cause::Handled => "handled request",
            Cause::Call => "call of another thread",
            Cause::Memory => "scarce memory",
            Cause::Drain => "drain",
            Cause::End => "end of the run",
        }
    }
}

/// What is known of the connection whose turn it is, for notes.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) cause: Cause,
    /// Whether somebody is told of the packet at hand: it is traced, or packets are copied.
    pub(super) is_watched: bool,
    /// What is said about the packet at hand to those who get a copy.
    comment: String,
    /// The mark of the last segment that is traced by itself; zero without one.
    made: u8,
    /// The ends of the segment that is traced.
    ends: Option<Ends>,
    /// Why it was closed, if it was.
    closed: Option<CloseReason>,
}

impl Noted {
    pub(super) fn new() -> Noted {
        Noted {
            cause: Cause::Timer,
            is_watched: false,
            comment: String::new(),
            made: 0,
            ends: None,
            closed: None,
        }
    }

    /// A packet is at hand.
    #[inline]
    pub(super) fn begin(&mut self, packet: &Mbuf, out: &mut Output) {
        self.cause = Cause::Packet(packet.mark());
        self.is_watched = packet.mark() != 0 || out.mirror().is_capturing();
    }

    /// Something is done without a packet.
    #[inline]
    pub(super) fn begin_without_packet(&mut self, cause: Cause) {
        (self.cause, self.is_watched) = (cause, false);
    }

    /// Adds words to what is said about the packet.
    fn say(&mut self, words: &str) {
        if !self.comment.is_empty() {
            self.comment.push_str("; ");
        }
        self.comment.push_str(words);
    }

    /// A connection has its turn.
    #[inline]
    pub(super) fn begin_turn(&mut self) {
        (self.made, self.closed) = (0, None);
    }
}

impl<D: Driver> TcpService<D> {
    /// Notes that a segment has arrived, and what takes it.
    #[cold]
    pub(super) fn note_segment(
        &mut self,
        ends: &Ends,
        (header, len): (&Header, usize),
        taker: &'static str,
        out: &mut Output,
    ) {
        self.noted.ends = Some(*ends);
        self.noted.say(&format!("for {taker}"));
        let segment = Box::new(summary(ends, header, len));
        self.note(Step::Segment { segment, taker }, out);
    }

    /// Notes what a connection decided about a segment.
    #[cold]
    pub(super) fn note_decision(&mut self, decision: &Decision, out: &mut Output) {
        let decision = SegmentDecision {
            words: decision.to_string(),
            was: Some(decision.was.name()),
            state: Some(decision.state.name()),
            in_order: decision.in_order,
            held: decision.held,
            acknowledged: decision.acknowledged,
            duplicate_ack: decision.duplicate_ack,
            ignored: decision.ignored.map(|why| why.name()),
            challenged: decision.challenge.map(|challenge| challenge == Challenge::Sent),
        };
        self.noted.say(&decision.words);
        self.note(Step::Decided(Box::new(decision)), out);
    }

    /// Notes a segment of a connection in TIME-WAIT, and whether it is answered.
    #[cold]
    pub(super) fn note_time_wait(
        &mut self,
        ends: &Ends,
        segment: (&Header, usize),
        (outcome, is_answered): (TimeWaitOutcome, bool),
        out: &mut Output,
    ) {
        self.note_segment(ends, segment, "a connection in time-wait", out);
        let (words, state) = match (outcome, is_answered) {
            (TimeWaitOutcome::Reopen, _) => {
                ("a new connection begins; time-wait -> closed", "closed")
            }
            (TimeWaitOutcome::Handled, true) => ("acknowledged; time-wait", "time-wait"),
            (TimeWaitOutcome::Handled, false) => ("ignored; time-wait", "time-wait"),
        };
        self.note_words(words, Some(("time-wait", state)), out);
    }

    /// Notes what was decided about a segment of no connection, or of one in TIME-WAIT.
    #[cold]
    pub(super) fn note_words(
        &mut self,
        words: &str,
        states: Option<(&'static str, &'static str)>,
        out: &mut Output,
    ) {
        let (was, state) = states.unzip();
        let decision = SegmentDecision { was, state, ..SegmentDecision::in_words(words) };
        self.noted.say(words);
        self.note(Step::Decided(Box::new(decision)), out);
    }

    /// Notes what an ICMP error about a segment between these ends has led to.
    #[cold]
    pub(super) fn note_error(&mut self, ends: &Ends, words: &str, out: &mut Output) {
        self.noted.ends = Some(*ends);
        self.note_words(words, None, out);
    }

    /// Counts of the program so far: bytes read, requests, bytes written, refusals, panics.
    #[cold]
    pub(super) fn program_counts(&self) -> [u64; 5] {
        let Counters { bytes_in, requests, bytes_out, refused, panics, .. } = &*self.counters;
        [bytes_in, requests, bytes_out, refused, panics].map(Counter::get)
    }

    /// Notes what the program has done since these were its counts, if anything.
    #[cold]
    pub(super) fn note_work(&mut self, before: [u64; 5], out: &mut Output) {
        let now = self.program_counts();
        if now != before {
            let mut before = before.into_iter();
            let counts = now.map(|count| count - before.next().unwrap_or(0));
            let [read, requests, written, refused, panics] = counts;
            self.noted.say(&format!("requests handled: {requests}"));
            let (refused, panicked) = (refused > 0, panics > 0);
            self.note(Step::Program { read, requests, written, refused, panicked }, out);
        }
    }

    /// Notes that a connection is over.
    #[cold]
    pub(super) fn note_closed(&mut self, reason: CloseReason, out: &mut Output) {
        self.noted.closed = Some(reason);
        if self.noted.is_watched {
            self.noted.say(&format!("connection closed: {}", reason.name()));
        }
        let mark = self.noted.cause.mark().max(self.noted.made);
        if mark != 0 {
            out.mirror().note_mark(mark, Step::Closed { reason: reason.name() });
        }
    }

    /// Notes that a segment is about to be sent, and returns its mark: that of the packet that caused it; its own, if none did and
    /// it is to be traced; otherwise zero.
    #[cold]
    pub(super) fn note_answer(
        &mut self,
        (ends, device, state): (&Ends, DeviceId, Option<State>),
        (header, len): (&Header, usize),
        reason: SendReason,
        out: &mut Output,
    ) -> Label {
        let closed = self.noted.closed.filter(|_| state.is_some());
        let reason = match (reason, closed) {
            (SendReason::Reset, Some(why)) => format!("{}: {}", reason.name(), why.name()),
            _ => reason.name().to_owned(),
        };
        let comment = out.mirror().is_capturing().then(|| reason.clone());
        let mut mark = self.noted.cause.mark();
        let mut is_elsewhere = self.noted.ends.is_some_and(|of| of != *ends);
        if mark == 0 {
            let fields =
                self.fields(ends, device, 20 + header.options.len().next_multiple_of(4) + len);
            let Some(made) = out.mirror().mark_made(&fields) else {
                return Label { mark: 0, comment };
            };
            (mark, is_elsewhere, self.noted.made) = (made, false, made);
            let cause = self.noted.cause.name();
            let state = state.map_or("closed", State::name);
            let (local, remote) = (ends.local, ends.remote);
            out.mirror().note_mark(mark, Step::Made { cause, local, remote, state });
        }
        let segment = Box::new(summary(ends, header, len));
        out.mirror().note_mark(mark, Step::Answer { segment, is_elsewhere, reason });
        Label { mark, comment }
    }

    /// Reports what was done with the packet at hand to readers of copies.
    #[cold]
    pub(super) fn comment(&mut self, packet: &Mbuf, out: &mut Output) {
        let comment = std::mem::take(&mut self.noted.comment);
        if !comment.is_empty() {
            out.mirror().comment_on_received(packet, &comment);
        }
    }

    /// What a filter can ask about a segment that is about to be sent.
    fn fields(&self, ends: &Ends, device: DeviceId, segment: usize) -> Fields {
        let interface = self.around.egress.stack.network().interface(device);
        let vlan = interface.and_then(|interface| interface.vlan);
        let network = if ends.local.is_ipv4() { Network::Ipv4 } else { Network::Ipv6 };
        let ip = if ends.local.is_ipv4() { 20 } else { 40 };
        let tags = usize::from(vlan.is_some());
        Fields {
            length: (14 + 4 * tags + ip + segment) as u32,
            network,
            protocol: Some(TCP),
            is_fragment: false,
            tags,
            zone: u32::from(vlan.unwrap_or(0)),
            addresses: Some((ends.local.ip(), ends.remote.ip())),
            ports: Some((ends.local.port(), ends.remote.port())),
        }
    }

    fn note(&mut self, step: Step, out: &mut Output) {
        out.mirror().note_mark(self.noted.cause.mark(), step);
    }
}

fn summary(ends: &Ends, header: &Header, len: usize) -> SegmentSummary {
    SegmentSummary {
        local: ends.local,
        remote: ends.remote,
        flags: header.flags(),
        seq: header.seq.0,
        ack: header.ack.map(|ack| ack.0),
        window: header.window,
        len: len as u32,
    }
}
