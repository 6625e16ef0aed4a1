//! A connection: what happens on segments, on user calls and as time passes.

pub(crate) mod acceptance;
mod arrival;
mod challenge;
mod closing;
mod decision;
mod event;
mod handshake;
mod ignored;
mod info;
mod invariants;
mod keep_alive;
mod opening;
mod output;
mod path;
mod state;
mod urgent;

use std::mem::offset_of;
use std::sync::Arc;

pub use challenge::Challenge;
pub(crate) use challenge::ChallengeLimit;
use closing::Closing;
pub use decision::{Decision, Numbers};
use event::Events;
pub use event::{CloseReason, Event};
pub(crate) use handshake::{Agreement, Handshake};
pub use ignored::Ignored;
pub use info::Info;
use keep_alive::KeepAliveTimer;
pub use path::{MIN_PATH_MSS, PathReport};
use rheostat_base::Time;
pub use state::State;
use thiserror::Error;

use crate::config::Config;
use crate::deadline::Deadline;
use crate::initial::Initial;
use crate::memory::MemoryBudget;
use crate::receive::{ReceiveHalf, Stamps};
use crate::ring::ByteRing;
use crate::segment::{Header, Segment};
use crate::send::SendHalf;
use crate::sequence::SequenceNumber;
use crate::time_wait::TimeWait;

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

/// A connection from its SYN on. Data takes at most [`Config::send_buffer`] and [`Config::receive_buffer`] bytes, allocated as
/// they are needed; what else is noted about a peer's behaviour is bounded by constants (1.7 KiB). A segment costs work linear
/// in its length and in those.
///
/// What segments touch comes first, in [`Connection::TOUCHED_LINES`] cache lines: nearly all of it is read or written for a request.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Connection {
    config: Arc<Config>,
    sender: SendHalf,
    receiver: ReceiveHalf,
    keep_alive: KeepAliveTimer,
    closing: Closing,
    /// When to tell the user to write again who found no memory.
    write_retry: Deadline,
    /// A reset to be sent. Like the stub, it takes memory only where there is one: few connections have.
    reset: Option<Box<Header>>,
    stamps: Option<Stamps>,
    /// What the peer's SYN has settled.
    agreement: Option<Agreement>,
    state: State,
    events: Events,
    ignored: Option<Ignored>,
    /// What came of the last wish to challenge the peer, until an acknowledgement leaves.
    challenge: Option<Challenge>,
    is_write_blocked: bool,
    is_active: bool,
    time_wait: Option<Box<TimeWait>>,
    limit: ChallengeLimit,
    initial: Initial,
    handshake: Handshake,
}

// Beside its data, a connection takes no more.
const _: () = assert!(size_of::<Connection>() <= 576);

impl Connection {
    /// So many lines, the first ones, are what a segment of an open connection touches.
    pub const TOUCHED_LINES: usize = offset_of!(Connection, time_wait).div_ceil(64);

    /// Opens a connection: SYN is the first segment to send.
    pub fn connect(config: Arc<Config>, initial: Initial, now: Time) -> Connection {
        Connection {
            sender: SendHalf::new(&config, initial.sequence + 1),
            receiver: ReceiveHalf::new(&config, SequenceNumber::default(), 0, 0),
            keep_alive: KeepAliveTimer::new(now),
            closing: Closing::default(),
            write_retry: Deadline::NONE,
            reset: None,
            stamps: None,
            agreement: None,
            state: State::SynSent,
            events: Events::default(),
            ignored: None,
            challenge: None,
            is_write_blocked: false,
            is_active: true,
            time_wait: None,
            limit: ChallengeLimit::default(),
            initial,
            handshake: Handshake::new(&config, now),
            config,
        }
    }

    /// Answers the SYN of a peer; [`HalfOpen`](crate::HalfOpen) does so in fewer bytes. Returns nothing for what is no such SYN: a listener ignores resets and segments with SYN and
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
        let handshake = Handshake::new(&config, now);
        Some(Connection::answering(config, initial, header, handshake, now))
    }

    /// A connection that a peer opens with this SYN.
    pub(crate) fn answering(
        config: Arc<Config>,
        initial: Initial,
        syn: &Header,
        handshake: Handshake,
        now: Time,
    ) -> Connection {
        let mut connection = Connection::connect(config, initial, now);
        connection.is_active = false;
        connection.state = State::SynReceived;
        connection.handshake = handshake;
        connection.on_peer_syn(syn, now);
        connection
    }

    /// Charges this budget, and the buffers' memory to it, from now on: after the connection was opened, and when it moves to
    /// another shard.
    pub fn set_memory(&mut self, budget: Option<Arc<MemoryBudget>>) {
        self.sender.set_memory(budget.clone());
        self.receiver.set_memory(budget);
    }

    /// The budget that is charged.
    pub fn memory(&self) -> Option<&MemoryBudget> {
        self.sender.memory().map(|budget| &**budget)
    }

    /// Its settings, which it shares with others.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// What is left when both ends have closed. The owner may keep this in place of the connection, once everything is read.
    pub fn time_wait(&self) -> Option<TimeWait> {
        self.time_wait.as_deref().copied()
    }

    /// Bytes to be read.
    #[inline]
    pub fn unread(&self) -> usize {
        self.receiver.unread()
    }

    /// Bytes to be sent or acknowledged.
    #[inline]
    pub fn unacknowledged(&self) -> usize {
        self.sender.buffered()
    }

    /// Bytes allocated for data.
    #[inline]
    pub fn allocated(&self) -> usize {
        self.sender.allocated() + self.receiver.allocated()
    }

    /// Bytes worth writing now. [`Connection::write`] takes more, but these would only wait: the peer's window takes no more than
    /// two segments less. None while acknowledgements are about to make room for a larger piece.
    pub fn useful_room(&self) -> usize {
        self.sender.useful_room()
    }

    /// Bytes allocated beyond those that data needs.
    #[inline]
    pub fn slack(&self) -> usize {
        self.allocated().saturating_sub(self.unacknowledged() + self.receiver.needed())
    }

    /// Bytes acknowledged by the peer and bytes received from it in order, counted together modulo 2^32 from an arbitrary start: the
    /// difference of two calls is what has moved between them.
    pub fn moved(&self) -> u32 {
        self.sender.una().0.wrapping_add(self.receiver.next().0)
    }

    /// Gives back memory that no data needs. Moves the data of a buffer of which less than half is in use.
    pub fn fit_buffers(&mut self) {
        self.sender.data().fit();
        self.receiver.fit();
    }

    /// Segments sent again.
    pub fn retransmitted(&self) -> u32 {
        self.sender.retransmitted()
    }

    /// How often the retransmission timeout has been doubled since a round trip was measured, at most 255 times. A call of
    /// [`Connection::handle_timeout`] that finds acknowledgements overdue makes it one more.
    pub fn timeout_doublings(&self) -> u8 {
        self.sender.round_trip().doublings()
    }

    /// The buffer of what is to be sent.
    pub(crate) fn send_buffer(&mut self) -> &mut ByteRing {
        self.sender.data()
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
            self.write_retry = Deadline::at(now + WRITE_RETRY);
        }
        if taken == 0 && !data.is_empty() {
            return Err(WriteError::Blocked);
        }
        self.settle_timer(now);
        Ok(taken)
    }

    fn settle_timer(&mut self, now: Time) {
        if !self.state.is_opening() && !self.state.is_over() {
            self.sender.settle_timer(&self.config, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_touch_the_first_eight_of_nine_lines() {
        assert_eq!((Connection::TOUCHED_LINES, size_of::<Connection>()), (8, 9 * 64));
    }
}
