//! A lane: a thread with an epoll, listeners and connections of its own.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rheostat_base::LaneId;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::time::Timespec;

use super::Shared;
use super::connection::{Connection, End, Next};
use super::counters::SharedCounters;
use super::listeners::Listeners;
use crate::application::Application;

/// Names of events: the wake-up, then listeners from the top down; connections have the number of their slot.
const WAKE: u64 = u64::MAX;
/// How often time-outs are looked at.
const SWEEP: Duration = Duration::from_millis(250);
/// Connections accepted before others have their turn.
const ACCEPTS: usize = 64;
/// Bytes read at a time.
const PIECE: usize = 64 << 10;
/// Events taken at a time.
const EVENTS: usize = 256;

/// A lane over the kernel's sockets.
pub(super) struct Lane<A: Application> {
    id: LaneId,
    app: Arc<A>,
    worker: A::Worker,
    shared: Arc<Shared>,
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    listeners: Listeners,
    /// Whether the kernel had no descriptor for a connection: the listeners are not looked at until the next sweep.
    are_resting: bool,
    connections: Vec<Option<Connection<A>>>,
    free: Vec<usize>,
    /// Connections that go on without an event.
    ready: VecDeque<usize>,
    is_draining: bool,
    buffer: Vec<u8>,
}

impl<A: Application> Lane<A> {
    /// # Errors
    /// That of the kernel when there is no descriptor left for an epoll.
    pub(super) fn new(
        id: LaneId,
        app: Arc<A>,
        listeners: Listeners,
        wake: Arc<OwnedFd>,
        shared: Arc<Shared>,
    ) -> io::Result<Lane<A>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let lane = Lane {
            id,
            worker: app.worker(id),
            app,
            shared,
            epoll,
            wake,
            listeners,
            are_resting: false,
            connections: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            is_draining: false,
            buffer: vec![0; PIECE],
        };
        lane.look_at_listeners()?;
        Ok(lane)
    }

    /// Serves until the service ends.
    pub(super) fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut next_sweep = Instant::now() + SWEEP;
        while !self.shared.is_ending.load(Ordering::Acquire) {
            events.clear();
            let timeout = self.timeout(next_sweep);
            let waited = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            );
            let now = Instant::now();
            if waited.is_ok() {
                for event in &events {
                    self.take(event.data.u64(), now);
                }
            }
            for _ in 0..self.ready.len() {
                let Some(slot) = self.ready.pop_front() else { break };
                if let Some(connection) = self.connection(slot) {
                    connection.is_ready = false;
                }
                self.go_on(slot, now);
            }
            if self.shared.is_draining.load(Ordering::Acquire) && !self.is_draining {
                self.drain(now);
            }
            if now >= next_sweep {
                self.sweep(now);
                next_sweep = now + SWEEP;
            }
        }
        for slot in 0..self.connections.len() {
            if let Some(connection) = self.connection(slot) {
                let end = connection.end_at_once();
                self.close(slot, end);
            }
        }
    }

    /// For ever, unless something is due without an event.
    fn timeout(&self, next_sweep: Instant) -> Option<Timespec> {
        let left = match (self.ready.is_empty(), self.has_connections() || self.are_resting) {
            (false, _) => Duration::ZERO,
            (true, true) => next_sweep.saturating_duration_since(Instant::now()),
            (true, false) => return None,
        };
        Timespec::try_from(left).ok()
    }

    fn has_connections(&self) -> bool {
        self.free.len() < self.connections.len()
    }

    fn connection(&mut self, slot: usize) -> Option<&mut Connection<A>> {
        self.connections.get_mut(slot)?.as_mut()
    }

    fn take(&mut self, name: u64, now: Instant) {
        let listener = (WAKE - name).checked_sub(1).map_or(usize::MAX, |number| number as usize);
        if name == WAKE {
            let mut count = [0; 8];
            // Only to have it not ready any more.
            let _ = rustix::io::read(&*self.wake, &mut count);
        } else if listener < self.listeners.0.len() {
            self.accept(listener, now);
        } else {
            self.go_on(name as usize, now);
        }
    }

    fn look_at_listeners(&self) -> io::Result<()> {
        for (number, listener) in self.listeners.0.iter().enumerate() {
            let name = EventData::new_u64(WAKE - 1 - number as u64);
            match epoll::add(&self.epoll, listener, name, EventFlags::IN) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize, now: Instant) {
        for _ in 0..ACCEPTS {
            match self.listeners.0[listener].accept() {
                Ok((socket, peer)) => {
                    match self.shared.budget.open_at_once(self.shared.budget.memory()) {
                        Ok(()) => self.add(socket, peer, now),
                        Err(_) => {
                            SharedCounters::add(&self.shared.counters.refused, 1);
                            // It is closed either way.
                            let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The peer was faster.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    SharedCounters::add(&self.shared.counters.accept_failed, 1);
                    self.rest();
                    return;
                }
            }
        }
    }

    /// Looks at no listener until the next sweep: each would be ready at once, without a descriptor to accept with.
    fn rest(&mut self) {
        self.are_resting = true;
        for listener in &self.listeners.0 {
            // One that is not there any more is as good.
            let _ = epoll::delete(&self.epoll, listener);
        }
    }

    fn add(&mut self, socket: TcpStream, peer: std::net::SocketAddr, now: Instant) {
        let app = self.app.clone();
        let made = catch_unwind(AssertUnwindSafe(|| Connection::new(&*app, socket, peer, now)));
        let Ok(Ok(connection)) = made else {
            if made.is_err() {
                self.note_panic();
            }
            self.shared.budget.close();
            return;
        };
        SharedCounters::add(&self.shared.counters.accepted, 1);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let name = EventData::new_u64(slot as u64);
        let added = epoll::add(&self.epoll, &connection.socket, name, EventFlags::IN);
        self.connections[slot] = Some(connection);
        if added.is_err() {
            self.close(slot, End::Aborted);
        } else if self.is_draining
            && let Some(connection) = self.connection(slot)
        {
            connection.drain();
            self.go_on(slot, now);
        }
    }

    /// Lets a connection go on as far as it can.
    fn go_on(&mut self, slot: usize, now: Instant) {
        let Some(Some(connection)) = self.connections.get_mut(slot) else { return };
        let (app, worker) = (&*self.app, &mut self.worker);
        let (shared, buffer) = (&*self.shared, &mut self.buffer[..]);
        let next =
            catch_unwind(AssertUnwindSafe(|| connection.go_on(app, worker, shared, buffer, now)));
        match next {
            Ok(next) => self.follow(slot, next),
            Err(_) => {
                self.note_panic();
                self.close(slot, End::Aborted);
            }
        }
    }

    fn follow(&mut self, slot: usize, next: Next) {
        let epoll = &self.epoll;
        let Some(Some(connection)) = self.connections.get_mut(slot) else { return };
        match next {
            Next::Over(end) => return self.close(slot, end),
            Next::Again => {
                if !std::mem::replace(&mut connection.is_ready, true) {
                    self.ready.push_back(slot);
                }
            }
            Next::Wait => {}
        }
        let wants = connection.wants();
        if wants != connection.interest {
            connection.interest = wants;
            let name = EventData::new_u64(slot as u64);
            if epoll::modify(epoll, &connection.socket, name, wants).is_err() {
                self.close(slot, End::Aborted);
            }
        }
    }

    fn note_panic(&mut self) {
        SharedCounters::add(&self.shared.counters.panics, 1);
        self.worker = self.app.worker(self.id);
    }

    fn close(&mut self, slot: usize, end: End) {
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return;
        };
        let counters = &self.shared.counters;
        let counter = match end {
            End::Finished => &counters.finished,
            End::Reset => &counters.reset,
            End::Aborted => &counters.aborted,
            End::OutOfMemory => &counters.memory_exceeded,
            End::Idle => &counters.idle_closed,
            End::Late | End::LateReply => &counters.late,
        };
        SharedCounters::add(counter, 1);
        let is_good = matches!(end, End::Finished | End::LateReply);
        if !(is_good || end == End::Idle && connection.is_idle()) {
            connection.reset();
        }
        connection.release(&self.shared);
        self.free.push(slot);
        // A panic of what the application keeps for it is the application's.
        if catch_unwind(AssertUnwindSafe(|| drop(connection))).is_err() {
            self.note_panic();
        }
    }

    fn drain(&mut self, now: Instant) {
        self.is_draining = true;
        // Handshakes that are complete are not reset.
        for listener in 0..self.listeners.0.len() {
            self.accept(listener, now);
        }
        self.listeners = Listeners::default();
        for slot in 0..self.connections.len() {
            if let Some(connection) = self.connection(slot) {
                let next = connection.drain();
                self.follow(slot, next);
            }
        }
    }

    fn sweep(&mut self, now: Instant) {
        if std::mem::take(&mut self.are_resting) && self.look_at_listeners().is_err() {
            self.are_resting = true;
        }
        for slot in 0..self.connections.len() {
            let Some(Some(connection)) = self.connections.get_mut(slot) else { continue };
            let (app, shared) = (&*self.app, &*self.shared);
            let next = catch_unwind(AssertUnwindSafe(|| connection.check_times(app, shared, now)));
            match next {
                Ok(Next::Wait) => {}
                Ok(next) => self.follow(slot, next),
                Err(_) => {
                    self.note_panic();
                    self.close(slot, End::Aborted);
                }
            }
        }
    }
}
