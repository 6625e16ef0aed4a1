//! A connection: its socket, its exchange, and its time-outs.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;

use super::Shared;
use super::counters::SharedCounters;
use super::exchange::{Done, Exchange, Turn};
use crate::application::Application;

/// A connection of a lane.
pub(super) struct Connection<A: Application> {
    pub(super) socket: TcpStream,
    exchange: Exchange<A>,
    /// The events that epoll reports of it.
    pub(super) interest: EventFlags,
    /// Whether it is among the connections that go on without an event.
    pub(super) is_ready: bool,
    peer_has_finished: bool,
    /// When bytes moved last.
    moved: Instant,
    /// Since when a request has been arriving that is not whole.
    arriving_since: Option<Instant>,
    /// Since when this end has finished, and waits for the peer to do so.
    lingers_since: Option<Instant>,
    /// Whether its last reply is that to a request that did not arrive in time.
    is_late: bool,
    accounted: usize,
}

/// What follows for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next event.
    Wait,
    /// It goes on when others had their turn.
    Again,
    /// It is over.
    Over(End),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As both ends wished.
    Finished,
    /// The peer reset it.
    Reset,
    /// This end resets it.
    Aborted,
    /// This end resets it since memory is scarce.
    OutOfMemory,
    /// It was silent for too long.
    Idle,
    /// A request did not arrive in time: it is reset.
    Late,
    /// A request did not arrive in time, which the last reply says.
    LateReply,
}

impl<A: Application> Connection<A> {
    /// # Errors
    /// That of the kernel when the socket cannot be set up.
    pub(super) fn new(
        app: &A,
        socket: TcpStream,
        peer: SocketAddr,
        now: Instant,
    ) -> io::Result<Connection<A>> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Connection {
            socket,
            exchange: Exchange::new(app, peer),
            interest: EventFlags::IN,
            is_ready: false,
            peer_has_finished: false,
            moved: now,
            arriving_since: None,
            lingers_since: None,
            is_late: false,
            accounted: 0,
        })
    }

    /// The events that it waits for.
    pub(super) fn wants(&self) -> EventFlags {
        let mut wants = EventFlags::empty();
        let reads = self.exchange.wants_input() && !self.exchange.has_output();
        if (reads || self.lingers_since.is_some()) && !self.peer_has_finished {
            wants |= EventFlags::IN;
        }
        if self.exchange.has_output() {
            wants |= EventFlags::OUT;
        }
        wants
    }

    /// Sends, reads, and lets the application go on, once each. `buffer` is the lane's.
    pub(super) fn go_on(
        &mut self,
        app: &A,
        worker: &mut A::Worker,
        shared: &Shared,
        buffer: &mut [u8],
        now: Instant,
    ) -> Next {
        let next = self.try_to_go_on(app, worker, shared, buffer, now);
        next.unwrap_or(Next::Over(End::Reset))
    }

    fn try_to_go_on(
        &mut self,
        app: &A,
        worker: &mut A::Worker,
        shared: &Shared,
        buffer: &mut [u8],
        now: Instant,
    ) -> io::Result<Next> {
        self.flush(shared, now)?;
        if self.exchange.has_output() {
            return Ok(Next::Wait);
        }
        if self.lingers_since.is_some() {
            return self.discard(buffer);
        }
        if self.exchange.wants_input() && !self.peer_has_finished {
            self.read(shared, buffer, now)?;
        }
        let mut done = Done::default();
        let turn = self.exchange.advance(app, worker, shared.budget.limits(), &mut done);
        SharedCounters::add(&shared.counters.requests, done.requests);
        SharedCounters::add(&shared.counters.too_large, done.too_large);
        self.note_arriving(done, now);
        if !self.account(app, shared) {
            return Ok(Next::Over(End::OutOfMemory));
        }
        if turn == Turn::Abort {
            return Ok(Next::Over(End::Aborted));
        }
        self.flush(shared, now)?;
        self.exchange.compact();
        // It takes less now, which is never refused.
        self.account(app, shared);
        if self.exchange.has_output() {
            return Ok(Next::Wait);
        }
        match turn {
            Turn::Input if self.peer_has_finished => self.finish(now),
            Turn::Input => Ok(Next::Wait),
            Turn::Close => self.finish(now),
            Turn::Room | Turn::Again | Turn::Abort => Ok(Next::Again),
        }
    }

    /// Ends what has taken too long at `now`, as the bounds state.
    pub(super) fn check_times(&mut self, app: &A, shared: &Shared, now: Instant) -> Next {
        let is_past =
            |since: Instant, bound: Duration| now.saturating_duration_since(since) >= bound;
        if self.lingers_since.is_some_and(|since| is_past(since, shared.budget.limits().linger)) {
            return Next::Over(self.good_end());
        }
        let late = self.arriving_since.zip(shared.request_timeout);
        if late.is_some_and(|(since, bound)| is_past(since, bound)) {
            self.arriving_since = None;
            return match self.exchange.time_out(app) {
                true => {
                    self.is_late = true;
                    Next::Again
                }
                false => Next::Over(End::Late),
            };
        }
        match is_past(self.moved, shared.idle_timeout) {
            true => Next::Over(End::Idle),
            false => Next::Wait,
        }
    }

    /// Has it end behind the reply at hand.
    pub(super) fn drain(&mut self) -> Next {
        self.exchange.end();
        Next::Again
    }

    /// Resets it when it is closed.
    pub(super) fn reset(&self) {
        // It is closed either way.
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    /// How it ends if it is closed as it stands: well, if this end has finished, or nothing is under way.
    pub(super) fn end_at_once(&self) -> End {
        match self.lingers_since.is_some() || self.is_idle() {
            true => self.good_end(),
            false => End::Aborted,
        }
    }

    /// Whether it may be closed as it stands: no reply is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.exchange.is_idle()
    }

    /// Gives back what it has of the shared memory.
    pub(super) fn release(&mut self, shared: &Shared) {
        shared.budget.memory().recharge(&mut self.accounted, 0);
        shared.budget.close();
    }

    fn account(&mut self, app: &A, shared: &Shared) -> bool {
        let bytes = self.exchange.bytes(app);
        let (before, memory) = (self.accounted, shared.budget.memory());
        memory.recharge(&mut self.accounted, bytes);
        bytes <= before || !memory.is_exceeded()
    }

    fn note_arriving(&mut self, done: Done, now: Instant) {
        if done.requests > 0 || !self.exchange.is_arriving() {
            self.arriving_since = None;
        }
        if self.exchange.is_arriving() {
            self.arriving_since.get_or_insert(now);
        }
    }

    fn read(&mut self, shared: &Shared, buffer: &mut [u8], now: Instant) -> io::Result<()> {
        match self.socket.read(buffer) {
            Ok(0) => self.peer_has_finished = true,
            Ok(count) => {
                self.exchange.put(&buffer[..count]);
                self.moved = now;
                SharedCounters::add(&shared.counters.bytes_read, count as u64);
            }
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn flush(&mut self, shared: &Shared, now: Instant) -> io::Result<()> {
        while self.exchange.has_output() {
            match self.socket.write(&self.exchange.output[self.exchange.sent..]) {
                Ok(count) => {
                    self.exchange.sent += count;
                    self.moved = now;
                    SharedCounters::add(&shared.counters.bytes_written, count as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finishes this end. What the peer still sends is read and dropped for a while: unread bytes would reset the connection, and
    /// replies that are on their way with it.
    fn finish(&mut self, now: Instant) -> io::Result<Next> {
        if self.peer_has_finished {
            return Ok(Next::Over(self.good_end()));
        }
        self.socket.shutdown(Shutdown::Write)?;
        self.lingers_since = Some(now);
        self.arriving_since = None;
        Ok(Next::Wait)
    }

    fn good_end(&self) -> End {
        if self.is_late { End::LateReply } else { End::Finished }
    }

    fn discard(&mut self, buffer: &mut [u8]) -> io::Result<Next> {
        match self.socket.read(buffer) {
            Ok(0) => Ok(Next::Over(self.good_end())),
            Ok(_) => Ok(Next::Wait),
            Err(error) if is_temporary(&error) => Ok(Next::Wait),
            // It had everything: this end has finished.
            Err(_) => Ok(Next::Over(self.good_end())),
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
