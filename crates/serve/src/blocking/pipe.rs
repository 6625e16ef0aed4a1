//! What is between a connection and its threads.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rheostat_tcp::CloseReason;
use thiserror::Error;

use super::hub::{Hub, lock, wait};
use crate::connections::ConnectionId;
use crate::connector::ConnectError;
use crate::sockets::Sockets;

/// Why a call about a connection failed. Inside an [`io::Error`], it is what [`io::Error::get_ref`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// Nothing runs the handler.
    #[error("no lane runs yet")]
    NotRunning,
    /// The service has ended, and with it the connection.
    #[error("the service has ended")]
    Ended,
    /// The time given for the call is over; nothing else has changed.
    #[error("the call took longer than it may")]
    TimedOut,
    /// The connection was not opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection ended before everything was read or written.
    #[error("the connection ended: {0:?}")]
    Closed(CloseReason),
    /// This end has finished writing.
    #[error("this end of the connection has finished")]
    Finished,
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> io::Error {
        let kind = match error {
            StreamError::NotRunning => io::ErrorKind::NotConnected,
            StreamError::Ended => io::ErrorKind::ConnectionAborted,
            StreamError::TimedOut => io::ErrorKind::TimedOut,
            StreamError::Connect(ConnectError::NoRoute(_)) => io::ErrorKind::NetworkUnreachable,
            StreamError::Connect(ConnectError::NoAddress(_) | ConnectError::PortsExhausted(_)) => {
                io::ErrorKind::AddrNotAvailable
            }
            StreamError::Connect(ConnectError::Memory) => io::ErrorKind::OutOfMemory,
            StreamError::Connect(_) => io::ErrorKind::Other,
            StreamError::Closed(CloseReason::Refused) => io::ErrorKind::ConnectionRefused,
            StreamError::Closed(CloseReason::Reset) => io::ErrorKind::ConnectionReset,
            StreamError::Closed(
                CloseReason::ConnectTimeout
                | CloseReason::UserTimeout
                | CloseReason::KeepAliveTimeout
                | CloseReason::FinWaitTimeout
                | CloseReason::LingerTimeout,
            ) => io::ErrorKind::TimedOut,
            StreamError::Closed(_) => io::ErrorKind::ConnectionAborted,
            StreamError::Finished => io::ErrorKind::BrokenPipe,
        };
        io::Error::new(kind, error)
    }
}

/// What is between a connection and its threads.
#[derive(Debug)]
pub(super) struct Pipe {
    peer: SocketAddr,
    /// Bytes each way at most.
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    local: Option<SocketAddr>,
    /// Once it is established.
    id: Option<ConnectionId>,
    incoming: VecDeque<u8>,
    outgoing: VecDeque<u8>,
    /// The lane has left bytes in the connection's buffer, for which there was no room.
    is_stalled: bool,
    /// The peer has finished, and everything that it sent is here.
    is_at_end: bool,
    /// A request to the lane is under way.
    is_requested: bool,
    /// The lane opens the connection just now, and says itself what comes of it.
    is_opening: bool,
    /// The thread has finished writing.
    wants_finish: bool,
    has_finished: bool,
    /// The thread reads no more: what arrives is discarded.
    is_read_shut: bool,
    /// The thread wants no more of it.
    is_dropped: bool,
    ended: Option<StreamError>,
    /// Whether the connection ended in good order.
    is_over: bool,
}

/// The lane's end of a pipe, as user data of the connection. When it is dropped, so is the connection.
#[derive(Debug)]
pub struct PipeEnd(Arc<Pipe>);

impl PipeEnd {
    pub(super) fn new(pipe: Arc<Pipe>) -> PipeEnd {
        PipeEnd(pipe)
    }

    pub(super) fn pipe(&self) -> Arc<Pipe> {
        self.0.clone()
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if !state.is_at_end && !state.is_opening {
            state.ended.get_or_insert(StreamError::Ended);
        }
        self.0.changed.notify_all();
    }
}

impl Pipe {
    pub(super) fn new(most: usize, local: Option<SocketAddr>, peer: SocketAddr) -> Pipe {
        let state = State {
            local,
            id: None,
            incoming: VecDeque::new(),
            outgoing: VecDeque::new(),
            is_stalled: false,
            is_at_end: false,
            is_requested: false,
            is_opening: false,
            wants_finish: false,
            has_finished: false,
            is_read_shut: false,
            is_dropped: false,
            ended: None,
            is_over: false,
        };
        Pipe { peer, most: most.max(1), state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        lock(&self.state).local
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The connection is established.
    pub(super) fn set_open(&self, id: ConnectionId, local: Option<SocketAddr>) {
        let mut state = lock(&self.state);
        state.id = Some(id);
        state.local = local.or(state.local);
        self.changed.notify_all();
    }

    /// Opens the connection by `attempt`, which drops the lane's end if it comes to nothing. Threads see its error then, and not
    /// before that the end is gone.
    pub(super) fn open<T>(&self, attempt: impl FnOnce() -> Result<T, ConnectError>) {
        lock(&self.state).is_opening = true;
        let outcome = attempt();
        let mut state = lock(&self.state);
        state.is_opening = false;
        if let Err(error) = outcome {
            state.ended = Some(StreamError::Connect(error));
            self.changed.notify_all();
        }
    }

    /// The connection is over.
    pub(super) fn close(&self, reason: CloseReason) {
        let mut state = lock(&self.state);
        match reason {
            CloseReason::Finished => state.is_over = true,
            reason => {
                state.ended.get_or_insert(StreamError::Closed(reason));
            }
        }
        self.changed.notify_all();
    }

    /// Moves what there is room for between the connection and its threads. On the lane.
    pub(super) fn go_on(&self, id: ConnectionId, sockets: &mut Sockets<'_, PipeEnd>) {
        let mut state = lock(&self.state);
        state.is_requested = false;
        let mut taken = 0;
        for piece in sockets.peek(id) {
            if state.is_read_shut {
                taken += piece.len();
                continue;
            }
            let room = self.most - state.incoming.len();
            let piece = &piece[..piece.len().min(room)];
            state.incoming.extend(piece);
            taken += piece.len();
        }
        sockets.skip(id, taken);
        if state.is_dropped && !state.incoming.is_empty() {
            // The peer must not take it for read (RFC 2525, 2.17).
            state.outgoing.clear();
            state.has_finished = true;
            return sockets.abort(id);
        }
        state.is_stalled = sockets.peek(id).iter().any(|piece| !piece.is_empty());
        state.is_at_end |= sockets.is_at_end(id);
        let (first, second) = state.outgoing.as_slices();
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        if let Ok(written) = sockets.write_vectored(id, &pieces) {
            state.outgoing.drain(..written);
        }
        if state.outgoing.is_empty() && !state.has_finished {
            if state.is_dropped {
                state.has_finished = true;
                sockets.close(id);
            } else if state.wants_finish {
                state.has_finished = true;
                sockets.finish(id);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until the connection is established.
    pub(super) fn wait_connected(&self) -> Result<(), StreamError> {
        let mut state = lock(&self.state);
        loop {
            match (state.id, state.ended) {
                (Some(_), _) => return Ok(()),
                (None, Some(error)) => return Err(error),
                (None, None) => state = wait(&self.changed, state, None)?,
            }
        }
    }

    /// Waits for bytes; none at the end of what the peer has sent.
    pub(super) fn read(
        self: &Arc<Pipe>,
        out: &mut [u8],
        timeout: Option<Duration>,
        hub: &Hub,
    ) -> Result<usize, StreamError> {
        if out.is_empty() {
            return Ok(0);
        }
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        while state.incoming.is_empty() {
            match state.ended {
                _ if state.is_at_end || state.is_read_shut => return Ok(0),
                Some(error) => return Err(error),
                None => state = wait(&self.changed, state, end)?,
            }
        }
        let (first, second) = state.incoming.as_slices();
        let from_first = first.len().min(out.len());
        out[..from_first].copy_from_slice(&first[..from_first]);
        let from_second = second.len().min(out.len() - from_first);
        out[from_first..from_first + from_second].copy_from_slice(&second[..from_second]);
        let taken = from_first + from_second;
        state.incoming.drain(..taken);
        if state.is_stalled {
            self.request(state, hub);
        }
        Ok(taken)
    }

    /// Takes as much as there is room for, and waits until that is something.
    pub(super) fn write(
        self: &Arc<Pipe>,
        data: &[u8],
        timeout: Option<Duration>,
        hub: &Hub,
    ) -> Result<usize, StreamError> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        loop {
            match state.ended {
                _ if state.wants_finish || state.is_over => return Err(StreamError::Finished),
                Some(error) => return Err(error),
                None if data.is_empty() => return Ok(0),
                None => {}
            }
            let room = self.most.saturating_sub(state.outgoing.len());
            if room > 0 {
                let taken = room.min(data.len());
                state.outgoing.extend(&data[..taken]);
                self.request(state, hub);
                return Ok(taken);
            }
            state = wait(&self.changed, state, end)?;
        }
    }

    /// Sends the end behind what was written.
    pub(super) fn finish(self: &Arc<Pipe>, hub: &Hub) -> Result<(), StreamError> {
        let mut state = lock(&self.state);
        if let Some(error) = state.ended {
            return Err(error);
        }
        state.wants_finish = true;
        self.request(state, hub);
        Ok(())
    }

    /// Ends reads, those that wait too. What is unread, and what arrives, is discarded.
    pub(super) fn end_reads(self: &Arc<Pipe>, hub: &Hub) {
        let mut state = lock(&self.state);
        state.is_read_shut = true;
        state.incoming = VecDeque::new();
        self.changed.notify_all();
        self.request(state, hub);
    }

    /// The last thread has let go of it: the connection finishes behind what was written, or is reset at once if something is unread
    /// here or with the connection.
    pub(super) fn let_go(self: &Arc<Pipe>, hub: &Hub) {
        let mut state = lock(&self.state);
        state.is_dropped = true;
        self.request(state, hub);
    }

    /// Asks the lane to go on.
    fn request(self: &Arc<Pipe>, mut state: std::sync::MutexGuard<'_, State>, hub: &Hub) {
        if let Some(id) = state.id
            && !std::mem::replace(&mut state.is_requested, true)
        {
            drop(state);
            hub.go_on(id, self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_not_opened_ends_with_the_reason_and_no_other_before() {
        let peer: SocketAddr = "192.0.2.1:7".parse().unwrap();
        let pipe = Arc::new(Pipe::new(100, None, peer));
        let end = PipeEnd::new(pipe.clone());
        let reason = ConnectError::NoRoute(peer.ip());
        pipe.open(|| {
            drop(end);
            assert_eq!(lock(&pipe.state).ended, None, "a thread that looks now waits");
            Err::<(), _>(reason)
        });
        assert_eq!(pipe.wait_connected(), Err(StreamError::Connect(reason)));
    }

    #[test]
    fn a_connection_that_the_lane_gives_up_ends_with_the_service() {
        let peer: SocketAddr = "192.0.2.1:7".parse().unwrap();
        for is_tried in [false, true] {
            let pipe = Arc::new(Pipe::new(100, None, peer));
            let end = PipeEnd::new(pipe.clone());
            if is_tried {
                pipe.open(|| Ok(()));
            }
            drop(end);
            assert_eq!(pipe.wait_connected(), Err(StreamError::Ended));
        }
    }
}
