//! Hosts at the ends of the wire, and the programs that run on them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_tcp::{
    CloseReason, Config, Connection, Event, Header, Initial, MemoryBudget, ReadError, SendReason,
    State, Transmit,
};
use rheostat_traffic::wire::Endpoint;

use super::frame;

/// When a program finishes its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// When everything is written.
    Written,
    /// When everything is written and the peer has finished.
    PeerFinished,
}

/// Sends bytes, and keeps what it receives.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) outgoing: Vec<u8>,
    pub(crate) written: usize,
    pub(crate) received: Vec<u8>,
    pub(crate) finish: Finish,
    /// It reads so many bytes at most, and again after a pause.
    pub(crate) read_size: usize,
    pub(crate) pause: Duration,
    pub(crate) next_read: Time,
    pub(crate) peer_finished: bool,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { outgoing, finish, read_size, pause, .. } = self;
        write!(
            f,
            "sends {}, finishes {finish:?}, reads {read_size} every {pause:?}",
            outgoing.len()
        )
    }
}

impl Program {
    pub(crate) fn sending(outgoing: Vec<u8>, finish: Finish) -> Program {
        Program {
            outgoing,
            written: 0,
            received: Vec::new(),
            finish,
            read_size: usize::MAX,
            pause: Duration::ZERO,
            next_read: Time::ZERO,
            peer_finished: false,
        }
    }

    pub(crate) fn wants_to_finish(&self) -> bool {
        self.written == self.outgoing.len()
            && (self.finish == Finish::Written || self.peer_finished)
    }

    /// Bytes that it would read now.
    pub(crate) fn appetite(&self, now: Time) -> usize {
        if self.next_read <= now { self.read_size } else { 0 }
    }

    pub(crate) fn on_read(&mut self, now: Time) {
        if !self.pause.is_zero() {
            self.next_read = now + self.pause;
        }
    }
}

/// An end of the wire, so that either implementation can stand on either side.
pub(crate) trait Host: Endpoint {}

impl<T: Endpoint> Host for T {}

/// A host with our connections.
pub(crate) struct OurHost {
    local: SocketAddr,
    remote: SocketAddr,
    config: Arc<Config>,
    initial: Initial,
    pub(crate) connection: Option<Connection>,
    pub(crate) program: Program,
    /// Why the connection ended.
    pub(crate) reason: Option<CloseReason>,
    memory: Option<Arc<MemoryBudget>>,
    /// Answers to segments for which there is no connection.
    resets: Vec<Header>,
}

impl OurHost {
    fn new(
        ends: (SocketAddr, SocketAddr),
        config: Config,
        program: Program,
        initial: Initial,
    ) -> OurHost {
        OurHost {
            local: ends.0,
            remote: ends.1,
            config: Arc::new(config),
            initial,
            connection: None,
            program,
            reason: None,
            memory: None,
            resets: Vec::new(),
        }
    }

    /// A host that connects at the beginning.
    pub(crate) fn connecting(
        ends: (SocketAddr, SocketAddr),
        config: Config,
        program: Program,
        initial: Initial,
    ) -> OurHost {
        let mut host = OurHost::new(ends, config, program, initial);
        host.connection = Some(Connection::connect(host.config.clone(), initial, Time::ZERO));
        host
    }

    /// A host that waits for a connection.
    pub(crate) fn listening(
        ends: (SocketAddr, SocketAddr),
        config: Config,
        program: Program,
        initial: Initial,
    ) -> OurHost {
        OurHost::new(ends, config, program, initial)
    }

    /// Lets the connection charge this budget.
    pub(crate) fn charging(mut self, memory: Arc<MemoryBudget>) -> OurHost {
        self.memory = Some(memory);
        if let Some(connection) = &mut self.connection {
            connection.set_memory(self.memory.clone());
        }
        self
    }

    fn run_program(&mut self, now: Time) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::PeerFinished => self.program.peer_finished = true,
                Event::Closed(reason) => self.reason = Some(reason),
                Event::Established | Event::Readable | Event::Urgent | Event::Writable => {}
            }
        }
        let program = &mut self.program;
        let mut left = program.appetite(now);
        let mut out = [0; 4_096];
        while left > 0 {
            let most = left.min(out.len());
            match connection.read(&mut out[..most]) {
                Ok(0) | Err(ReadError::Blocked | ReadError::Closed) => break,
                Ok(len) => {
                    program.received.extend_from_slice(&out[..len]);
                    program.on_read(now);
                    left -= len;
                }
            }
        }
        if program.written < program.outgoing.len()
            && let Ok(taken) = connection.write(&program.outgoing[program.written..], now)
        {
            program.written += taken;
        }
        if program.wants_to_finish() && !is_opening_or_over(connection.state()) {
            connection.finish(now);
        }
        assert_eq!(connection.broken_invariant(), None);
        let info = connection.info();
        let most = self.config.send_buffer + self.config.receive_buffer;
        if let Some(memory) = &self.memory {
            assert!(memory.used() <= memory.limit(), "no more than the budget");
        }
        assert!(info.allocated <= most, "{} of {most} bytes", info.allocated);
        assert!(info.unread <= self.config.receive_buffer && info.unacknowledged <= most);
    }
}

impl Endpoint for OurHost {
    fn handle_frame(&mut self, frame: &[u8], now: Time) {
        let Some(segment) = frame::read(frame, self.local) else { return };
        match &mut self.connection {
            Some(connection) if connection.state() != State::Closed => {
                connection.handle_segment(&segment, now);
                assert_eq!(connection.broken_invariant(), None);
            }
            None if segment.header.syn => {
                let (config, initial) = (self.config.clone(), self.initial);
                self.connection = Connection::accept(config, initial, &segment, now);
                if let Some(connection) = &mut self.connection {
                    connection.set_memory(self.memory.clone());
                }
            }
            _ => self.resets.extend(Header::reset_for(&segment)),
        }
    }

    fn advance(&mut self, now: Time) {
        if let Some(connection) = &mut self.connection
            && connection.next_deadline().is_some_and(|deadline| deadline <= now)
        {
            connection.handle_timeout(now);
        }
        self.run_program(now);
    }

    fn poll_frame(&mut self, now: Time) -> Option<Vec<u8>> {
        if let Some(header) = self.resets.pop() {
            let reset = Transmit { header, payload: [&[], &[]], reason: SendReason::Reset };
            return Some(frame::write(&reset, self.local, self.remote));
        }
        let transmit = self.connection.as_mut()?.poll_transmit(now)?;
        Some(frame::write(&transmit, self.local, self.remote))
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let connection = self.connection.as_ref()?;
        let wants_read = connection.info().unread > 0 && self.program.next_read > now;
        let read = wants_read.then_some(self.program.next_read);
        connection.next_deadline().into_iter().chain(read).min()
    }

    fn is_done(&self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let is_over = matches!(connection.state(), State::TimeWait | State::Closed);
        is_over && connection.info().unread == 0
    }
}

fn is_opening_or_over(state: State) -> bool {
    matches!(state, State::SynSent | State::SynReceived | State::TimeWait | State::Closed)
}
