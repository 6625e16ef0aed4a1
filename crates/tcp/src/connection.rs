//! A connection: what happens on segments, on user calls and as time passes.

mod acceptance;
mod challenge;
mod event;
mod handshake;
mod invariants;
mod keep_alive;
mod linger;
mod output;
mod path;
mod state;
mod urgent;

use std::sync::Arc;

pub(crate) use challenge::ChallengeLimit;
use event::Events;
pub use event::{CloseReason, Event};
use handshake::{Agreement, Handshake};
use keep_alive::KeepAliveTimer;
pub use path::{MIN_PATH_MSS, PathReport};
use rheostat_base::Time;
pub use state::State;
use thiserror::Error;

use crate::config::Config;
use crate::initial::Initial;
use crate::memory::MemoryBudget;
use crate::options::Timestamps;
use crate::receive::{Receiver, Stamps};
use crate::segment::{Header, Segment};
use crate::send::Sender;
use crate::sequence::SequenceNumber;
use crate::time_wait::{TimeWait, TimeWaitOutcome};

/// How long a write waits that finds no memory.
const WRITE_RETRY: std::time::Duration = std::time::Duration::from_millis(100);

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// There is nothing to read yet.
    #[error("nothing to read yet")]
    Blocked,
    /// The connection ended before the peer had finished.
    #[error("the connection is closed")]
    Closed,
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The buffer is full.
    #[error("the send buffer is full")]
    Blocked,
    /// The user has finished, or the connection is closed.
    #[error("the connection takes no more data")]
    Closed,
}

/// Figures of a connection, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The state.
    pub state: State,
    /// The congestion window.
    pub congestion_window: u32,
    /// The largest segment that is sent, options included.
    pub mss: u32,
    /// The slow-start threshold.
    pub threshold: u32,
    /// The smoothed round-trip time.
    pub round_trip: Option<std::time::Duration>,
    /// The retransmission timeout.
    pub retransmission_timeout: std::time::Duration,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments that arrived beyond a gap.
    pub out_of_order: u64,
    /// What the peer takes beyond what it has acknowledged.
    pub send_window: u32,
    /// What the peer may send beyond what has arrived.
    pub receive_window: u32,
    /// Bytes to be read.
    pub unread: usize,
    /// Bytes to be sent or acknowledged.
    pub unacknowledged: usize,
    /// Of those, bytes that have never been sent.
    pub unsent: usize,
    /// Bytes allocated for data: at most the two buffers of the configuration.
    pub allocated: usize,
}

/// A connection from its SYN on. Data takes at most [`Config::send_buffer`] and [`Config::receive_buffer`] bytes, allocated as
/// they are needed; what else is noted about a peer's behaviour is bounded by constants (1.5 KiB). A segment costs work linear
/// in its length and in those.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    initial: Initial,
    state: State,
    is_active: bool,
    handshake: Handshake,
    /// What the peer's SYN has settled.
    agreement: Option<Agreement>,
    stamps: Option<Stamps>,
    sender: Sender,
    receiver: Receiver,
    limit: ChallengeLimit,
    keep_alive: KeepAliveTimer,
    fin_wait: Option<Time>,
    linger: Option<Time>,
    /// When to tell the user to write again who found no memory.
    write_retry: Option<Time>,
    /// A reset to be sent.
    reset: Option<Header>,
    time_wait: Option<TimeWait>,
    /// The user wants no data any more.
    is_detached: bool,
    is_write_blocked: bool,
    events: Events,
}

// Beside its data, a connection takes no more.
const _: () = assert!(size_of::<Connection>() <= 1024);

impl Connection {
    /// Opens a connection: SYN is the first segment to send.
    pub fn connect(config: Arc<Config>, initial: Initial, now: Time) -> Connection {
        Connection {
            initial,
            state: State::SynSent,
            is_active: true,
            handshake: Handshake::new(&config, now),
            agreement: None,
            stamps: None,
            sender: Sender::new(&config, initial.sequence + 1),
            receiver: Receiver::new(&config, SequenceNumber::default(), 0),
            limit: ChallengeLimit::default(),
            keep_alive: KeepAliveTimer::new(now),
            fin_wait: None,
            linger: None,
            write_retry: None,
            reset: None,
            time_wait: None,
            is_detached: false,
            is_write_blocked: false,
            events: Events::default(),
            config,
        }
    }

    /// Answers the SYN of a peer. Returns nothing for what is no such SYN: a listener ignores resets and segments with SYN and
    /// FIN, and answers the rest with [`Header::reset_for`] (RFC 9293, 3.10.7.2).
    pub fn accept(
        config: Arc<Config>,
        initial: Initial,
        syn: &Segment<'_>,
        now: Time,
    ) -> Option<Connection> {
        let header = &syn.header;
        if !header.syn || header.ack.is_some() || header.rst || header.fin {
            return None;
        }
        let mut connection = Connection::connect(config, initial, now);
        connection.is_active = false;
        connection.state = State::SynReceived;
        connection.on_peer_syn(header, now);
        Some(connection)
    }

    /// Charges this budget, and the buffers' memory to it, from now on: after the connection was opened, and when it moves to
    /// another shard.
    pub fn set_memory(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.sender.set_memory(budget.clone());
        self.receiver.set_memory(budget);
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// What is left when both ends have closed. The owner may keep this in place of the connection, once everything is read.
    pub fn time_wait(&self) -> Option<TimeWait> {
        self.time_wait
    }

    /// Figures for listings.
    pub fn info(&self) -> Info {
        let congestion = self.sender.congestion().get();
        Info {
            state: self.state,
            congestion_window: congestion.window(),
            mss: self.sender.mss(),
            threshold: congestion.threshold(),
            round_trip: self.sender.round_trip().smoothed(),
            retransmission_timeout: self.sender.round_trip().timeout(),
            retransmitted: self.sender.retransmitted(),
            out_of_order: self.receiver.out_of_order(),
            send_window: self.sender.peer_window(),
            receive_window: self.receiver.window(),
            unread: self.receiver.unread(),
            unacknowledged: self.sender.buffered(),
            unsent: self.sender.unsent(),
            allocated: self.sender.allocated() + self.receiver.allocated(),
        }
    }

    /// The next event, if there is one. They do not queue up: one that repeats before it is polled is reported once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Reads received bytes; none at the end of what the peer has sent.
    ///
    /// # Errors
    /// [`ReadError`] when nothing can be read.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        if self.receiver.unread() > 0 {
            return Ok(self.receiver.read(out));
        }
        if self.receiver.is_finished() {
            return Ok(0);
        }
        Err(if self.state.is_over() { ReadError::Closed } else { ReadError::Blocked })
    }

    /// What was received and not read, where it lies: in two pieces at most, in order.
    pub fn peek(&self) -> [&[u8]; 2] {
        self.receiver.peek()
    }

    /// Takes the first `len` bytes of [`Connection::peek`] as read, or all if there are fewer; returns how many.
    pub fn skip(&mut self, len: usize) -> usize {
        let len = len.min(self.receiver.unread());
        self.receiver.skip(len);
        len
    }

    /// Whether the user has finished: [`Connection::finish`] or [`Connection::close`].
    pub fn has_finished(&self) -> bool {
        self.sender.has_finished()
    }

    /// Whether everything that the peer has to send has arrived.
    pub fn has_peer_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Takes as much of `data` as there is room for, to be sent in order, and returns how much that is. Before the connection is
    /// established, data waits.
    ///
    /// # Errors
    /// [`WriteError`] when nothing can be written.
    pub fn write(&mut self, data: &[u8], now: Time) -> Result<usize, WriteError> {
        if self.sender.has_finished() || self.state.is_over() {
            return Err(WriteError::Closed);
        }
        let taken = self.sender.write(data);
        if taken < data.len() {
            self.is_write_blocked = true;
        }
        if taken == 0 && self.sender.is_idle() && !data.is_empty() {
            // No acknowledgement will tell that there is memory again.
            self.write_retry = Some(now + WRITE_RETRY);
        }
        if taken == 0 && !data.is_empty() {
            return Err(WriteError::Blocked);
        }
        self.settle_timer(now);
        Ok(taken)
    }

    /// Sends FIN behind what was written. What the peer sends can still be read (half close).
    pub fn finish(&mut self, now: Time) {
        if self.state.is_over() {
            return;
        }
        self.sender.finish();
        self.state = self.state.after_finish();
        self.settle_timer(now);
    }

    /// Finishes, and wants no more data: with unread bytes, or if more arrive, the connection is reset, so that the peer
    /// learns that they were not read (RFC 9293, 3.6.1). The peer has [`Config::fin_wait_timeout`] to close.
    pub fn close(&mut self, now: Time) {
        if self.state == State::SynSent {
            self.end(CloseReason::Aborted);
            return;
        }
        if self.receiver.unread() > 0 && !self.state.is_over() {
            self.abort();
            return;
        }
        self.is_detached = true;
        self.finish(now);
        self.start_fin_wait(now);
    }

    /// Resets the connection.
    pub fn abort(&mut self) {
        if self.state.is_over() {
            return;
        }
        if self.state != State::SynSent {
            self.reset_peer();
        }
        self.end(CloseReason::Aborted);
    }

    /// Handles a segment of this connection whose checksum is right.
    pub fn handle_segment(&mut self, segment: &Segment<'_>, now: Time) -> TimeWaitOutcome {
        match self.state {
            State::Closed => {}
            State::TimeWait => {
                if let Some(time_wait) = &mut self.time_wait {
                    return time_wait.handle_segment(segment, now);
                }
            }
            State::SynSent => self.handle_in_syn_sent(segment, now),
            _ => self.handle_in_order(segment, now),
        }
        TimeWaitOutcome::Handled
    }

    /// SYN-SENT (RFC 9293, 3.10.7.3). Data beside SYN is left to be sent again.
    fn handle_in_syn_sent(&mut self, segment: &Segment<'_>, now: Time) {
        let header = &segment.header;
        if let Some(ack) = header.ack
            && ack != self.sender.una()
        {
            self.reset = Header::reset_for(segment);
            return;
        }
        if header.rst {
            if header.ack.is_some() {
                self.end(CloseReason::Refused);
            }
            return;
        }
        if !header.syn || header.fin {
            return;
        }
        self.on_peer_syn(header, now);
        if header.ack.is_some() {
            self.establish(now);
            self.receiver.acknowledgement().on_immediate();
        } else {
            self.state = State::SynReceived;
            self.handshake = Handshake::new(&self.config, now);
        }
    }

    /// All states in which the peer's SYN has arrived (RFC 9293, 3.10.7.4), in the order of the RFC.
    fn handle_in_order(&mut self, segment: &Segment<'_>, now: Time) {
        let header = &segment.header;
        if self.state == State::SynReceived && self.handle_repeated_syn(header, now) {
            return;
        }
        let Some(echoed) = self.check_stamps(header, now) else { return };
        let next = self.receiver.next();
        if !acceptance::is_in_window(segment.range(), next, self.receiver.window()) {
            self.handle_unacceptable(segment, now);
            return;
        }
        self.keep_alive.on_heard(now);
        if let (Some(stamps), Some(theirs)) = (&mut self.stamps, header.options.timestamps) {
            stamps.on_segment(theirs, header.seq, self.receiver.last_ack(), now);
        }
        if header.rst {
            self.handle_reset(header, now);
            return;
        }
        if header.syn {
            self.challenge(now);
            return;
        }
        let Some(ack) = header.ack else { return };
        if let Some(pointer) = header.urgent
            && self.receiver.handle_urgent(header.seq, pointer)
        {
            self.events.push(Event::Urgent);
        }
        if self.handle_ack(segment, ack, echoed, now) {
            self.handle_data(segment, now);
        }
    }

    /// SYN-RECEIVED: the peer's SYN again, or with an acknowledgement, as when both open at the same time. Returns whether the
    /// segment was that.
    fn handle_repeated_syn(&mut self, header: &Header, now: Time) -> bool {
        if !header.syn || header.rst || header.seq + 1 != self.receiver.next() {
            return false;
        }
        if header.ack == Some(self.sender.una()) {
            self.set_window_by_syn(header);
            self.establish(now);
            self.receiver.acknowledgement().on_immediate();
        } else if header.ack.is_none() {
            self.handshake.resend();
        }
        true
    }

    /// Whether the segment's stamps let it pass (RFC 7323, 3.2 and 5.3), and what they say about the round trip.
    fn check_stamps(&mut self, header: &Header, now: Time) -> Option<Option<std::time::Duration>> {
        let Some(stamps) = &self.stamps else { return Some(None) };
        if header.rst {
            return Some(None);
        }
        let theirs: Timestamps = header.options.timestamps?;
        if stamps.is_old(theirs, now) {
            self.challenge(now);
            return None;
        }
        Some(stamps.round_trip(theirs, now))
    }

    /// Nothing of the segment is in the window: acknowledged, so that the peer learns where we are. Without data that could go
    /// back and forth, and is limited.
    fn handle_unacceptable(&mut self, segment: &Segment<'_>, now: Time) {
        if segment.header.rst {
            return;
        }
        if segment.range().is_empty() || segment.header.syn {
            self.challenge(now);
        } else {
            self.receiver.handle_outside(segment.header.seq, segment.payload.len() as u32);
        }
    }

    /// Only a reset at the number expected next resets (RFC 5961, 3).
    fn handle_reset(&mut self, header: &Header, now: Time) {
        if header.seq != self.receiver.next() {
            self.challenge(now);
        } else if self.state == State::SynReceived && self.is_active {
            self.end(CloseReason::Refused);
        } else {
            self.end(CloseReason::Reset);
        }
    }

    /// Returns whether the segment's data counts.
    fn handle_ack(
        &mut self,
        segment: &Segment<'_>,
        ack: SequenceNumber,
        echoed: Option<std::time::Duration>,
        now: Time,
    ) -> bool {
        let (una, next) = (self.sender.una(), self.sender.next());
        if self.state == State::SynReceived {
            if ack != una {
                self.reset = Header::reset_for(segment);
                return false;
            }
            self.establish(now);
        } else if !acceptance::is_plausible_ack(ack, una, next, self.sender.largest_window()) {
            self.challenge(now);
            return false;
        }
        if ack.is_before(una) {
            return true;
        }
        self.sender.handle_ack(&segment.header, ack, !segment.range().is_empty(), echoed, now);
        if self.is_write_blocked && self.sender.has_room() {
            self.is_write_blocked = false;
            self.events.push(Event::Writable);
        }
        if self.sender.is_finished() {
            self.change_state(self.state.after_fin_acknowledged(), now);
        }
        !self.state.is_over()
    }

    fn handle_data(&mut self, segment: &Segment<'_>, now: Time) {
        if segment.range().is_empty() {
            return;
        }
        let end = segment.header.seq + segment.payload.len() as u32;
        if self.is_detached && !self.receiver.is_finished() && end.is_after(self.receiver.next()) {
            self.reset_peer();
            self.end(CloseReason::DataAfterClose);
            return;
        }
        let (seq, round_trip) = (segment.header.seq, self.sender.round_trip().smoothed());
        let received =
            self.receiver.handle_data(seq, segment.payload, segment.header.fin, round_trip, now);
        if received.has_bytes {
            self.events.push(Event::Readable);
        }
        if received.is_finished {
            self.events.push(Event::PeerFinished);
            self.change_state(self.state.after_peer_fin(), now);
        }
    }

    /// The peer's SYN settles the options and where its numbers start.
    fn on_peer_syn(&mut self, header: &Header, now: Time) {
        let agreement = Agreement::new(&self.config, &header.options);
        self.stamps = header
            .options
            .timestamps
            .filter(|_| agreement.timestamps)
            .map(|theirs| Stamps::new(self.initial.stamp_offset, theirs.value, now));
        let (shift, _) = agreement.shifts.unwrap_or_default();
        self.receiver = Receiver::new(&self.config, header.seq + 1, shift);
        self.receiver.set_memory(self.sender.memory());
        self.receiver.on_unscaled_window(self.window_of_syn());
        self.agreement = Some(agreement);
        self.set_window_by_syn(header);
    }

    /// The window of a SYN is not scaled; later ones are.
    fn set_window_by_syn(&mut self, header: &Header) {
        let (_, shift) = self.agreement.and_then(|agreement| agreement.shifts).unwrap_or_default();
        let ack = header.ack.unwrap_or(self.sender.una());
        self.sender.window().on_handshake(header.seq, ack, header.window, shift);
    }

    fn window_of_syn(&self) -> u16 {
        let size = self.config.receive_buffer.min(self.config.initial_receive_buffer);
        size.min(u16::MAX.into()) as u16
    }

    fn establish(&mut self, now: Time) {
        let terms = self.agreement.unwrap_or_default().terms();
        self.sender.establish(terms, self.handshake.sample(now), now);
        self.keep_alive.on_heard(now);
        self.events.push(Event::Established);
        self.state = State::Established;
        if self.sender.has_finished() {
            self.state = self.state.after_finish();
        }
        self.settle_timer(now);
    }

    fn change_state(&mut self, state: State, now: Time) {
        if state == self.state {
            return;
        }
        match state {
            State::Closed => self.end(CloseReason::Finished),
            State::TimeWait => self.enter_time_wait(now),
            _ => self.state = state,
        }
        self.start_fin_wait(now);
    }

    fn enter_time_wait(&mut self, now: Time) {
        let is_ack_due = self.receiver.is_ack_due();
        let (expected, window) = self.receiver.acknowledge();
        let numbers = (self.sender.next(), expected, window);
        let time_wait = TimeWait::new(numbers, self.stamps, is_ack_due, self.config.time_wait, now);
        self.time_wait = Some(time_wait);
        self.state = State::TimeWait;
        self.events.push(Event::Closed(CloseReason::Finished));
    }

    fn start_fin_wait(&mut self, now: Time) {
        if self.is_detached && self.state == State::FinWait2 {
            self.fin_wait.get_or_insert(now + self.config.fin_wait_timeout);
        }
    }

    fn end(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.events.push(Event::Closed(reason));
    }

    fn reset_peer(&mut self) {
        self.reset = Some(Header {
            seq: self.sender.next(),
            ack: Some(self.receiver.next()),
            rst: true,
            ..Header::default()
        });
    }

    /// Makes an acknowledgement due, unless one was for this reason a moment ago.
    fn challenge(&mut self, now: Time) {
        if self.limit.permits(now) {
            self.receiver.acknowledgement().on_immediate();
        }
    }

    fn settle_timer(&mut self, now: Time) {
        if !self.state.is_opening() && !self.state.is_over() {
            self.sender.settle_timer(now);
        }
    }
}
