//! What all threads and lanes share.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rheostat_base::ShardId;

use super::BlockingConfig;
use super::pipe::{Pipe, PipeEnd, StreamError};
use crate::connections::ConnectionId;
use crate::shared::ServeControl;

/// What a thread asks the lane of a shard for.
pub(super) enum Request {
    /// A connection to a peer.
    Open(SocketAddr, PipeEnd),
    /// To move bytes between a connection and its pipe. Each pipe has one such request at most.
    GoOn(ConnectionId, Arc<Pipe>),
}

/// What all threads and lanes share.
pub(super) struct Hub {
    config: BlockingConfig,
    control: OnceLock<ServeControl>,
    /// For each shard, what threads ask for. Bounded by the connections and the threads that connect.
    requests: Mutex<HashMap<ShardId, Vec<Request>>>,
    /// For each port, accepted connections that no thread has taken.
    accepted: Mutex<Accepted>,
    arrived: Condvar,
    /// Lanes that run the handler.
    lanes: AtomicUsize,
    /// Connections opened, which are spread over the shards.
    opened: AtomicUsize,
}

#[derive(Default)]
struct Accepted {
    ports: HashMap<u16, VecDeque<Arc<Pipe>>>,
    has_ended: bool,
}

/// The value behind a lock. What threads do while they hold one leaves it whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(super) fn new(config: BlockingConfig) -> Hub {
        Hub {
            config,
            control: OnceLock::new(),
            requests: Mutex::default(),
            accepted: Mutex::default(),
            arrived: Condvar::new(),
            lanes: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
        }
    }

    pub(super) fn run_by(&self, control: ServeControl) {
        let _ = self.control.set(control);
    }

    pub(super) fn enter(&self) {
        self.lanes.fetch_add(1, Ordering::Relaxed);
    }

    /// A lane runs the handler no more. The last one takes with it what was not begun: pipes of such requests end.
    pub(super) fn leave(&self) {
        if self.lanes.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end_accepting();
            let left = std::mem::take(&mut *lock(&self.requests));
            drop(left);
        }
    }

    pub(super) fn pipe(&self, local: Option<SocketAddr>, peer: SocketAddr) -> PipeEnd {
        PipeEnd::new(Arc::new(Pipe::new(self.config.buffer, local, peer)))
    }

    /// Has a connection opened in one of the shards.
    pub(super) fn open(&self, remote: SocketAddr) -> Result<Arc<Pipe>, StreamError> {
        let control = self.control.get().ok_or(StreamError::NotRunning)?;
        let shards = control.shards();
        if shards == 0 || self.lanes.load(Ordering::Relaxed) == 0 {
            return Err(StreamError::NotRunning);
        }
        let turn = self.opened.fetch_add(1, Ordering::Relaxed);
        let end = self.pipe(None, remote);
        let pipe = end.pipe();
        self.request(ShardId((turn % shards) as u16), Request::Open(remote, end));
        Ok(pipe)
    }

    /// Has bytes moved between a connection and its pipe.
    pub(super) fn go_on(&self, id: ConnectionId, pipe: &Arc<Pipe>) {
        self.request(id.shard, Request::GoOn(id, pipe.clone()));
    }

    fn request(&self, shard: ShardId, request: Request) {
        lock(&self.requests).entry(shard).or_default().push(request);
        // A lane that leaves between the check in `open` and here would not look at it.
        if self.lanes.load(Ordering::SeqCst) == 0 {
            lock(&self.requests).remove(&shard);
        } else if let Some(control) = self.control.get() {
            control.call(shard);
        }
    }

    pub(super) fn take(&self, shard: ShardId) -> Vec<Request> {
        lock(&self.requests).remove(&shard).unwrap_or_default()
    }

    /// Gives an accepted connection to the threads of its port; returns whether there was room.
    pub(super) fn accept(&self, pipe: Arc<Pipe>) -> bool {
        let port = pipe.local().map_or(0, |local| local.port());
        let mut accepted = lock(&self.accepted);
        let waiting = accepted.ports.entry(port).or_default();
        let has_room = waiting.len() < self.config.backlog;
        if has_room {
            waiting.push_back(pipe);
            self.arrived.notify_all();
        }
        has_room
    }

    /// No further connection comes.
    pub(super) fn end_accepting(&self) {
        lock(&self.accepted).has_ended = true;
        self.arrived.notify_all();
    }

    /// Waits for a connection of a port.
    pub(super) fn wait_accepted(
        &self,
        port: u16,
        timeout: Option<Duration>,
    ) -> Result<Arc<Pipe>, StreamError> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut accepted = lock(&self.accepted);
        loop {
            if let Some(pipe) = accepted.ports.get_mut(&port).and_then(VecDeque::pop_front) {
                return Ok(pipe);
            }
            if accepted.has_ended {
                return Err(StreamError::Ended);
            }
            accepted = wait(&self.arrived, accepted, end)?;
        }
    }
}

/// Waits to be notified, until `end` at most.
pub(super) fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    end: Option<Instant>,
) -> Result<MutexGuard<'a, T>, StreamError> {
    let Some(end) = end else {
        return Ok(condition.wait(guard).unwrap_or_else(PoisonError::into_inner));
    };
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(StreamError::TimedOut);
    }
    Ok(condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0)
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("config", &self.config).finish_non_exhaustive()
    }
}
