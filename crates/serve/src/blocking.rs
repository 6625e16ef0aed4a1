//! Connections for ordinary threads: calls that wait, as those of [`std::net::TcpStream`], while lanes run TCP beside.
//!
//! ```text
//!  thread ──write──► Pipe ──► lane: send buffer ──► segments
//!  thread ◄──read─── Pipe ◄── lane: receive buffer ◄── segments
//! ```
//!
//! A pipe is between a connection and its threads: at most [`BlockingConfig::buffer`] bytes each way, behind a lock
//! that neither holds for longer than it takes to copy them. Threads wait on a condition variable. The lane is called, without a
//! system call if it is awake, when there is something to write, or room for what had none. Reads that leave room for nothing that
//! waits call nobody.
//!
//! A pipe that is full in the one direction closes the peer's window, and in the other lets the thread wait: nothing grows.

mod hub;
mod listener;
mod pipe;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;

use rheostat_base::{LaneId, ShardId};

use crate::connections::ConnectionId;
use crate::handler::{Handler, SocketEvent};
use crate::shared::ServeControl;
use crate::sockets::Sockets;

use self::hub::{Hub, Request};
use self::pipe::PipeEnd;

pub use self::listener::BlockingListener;
pub use self::pipe::StreamError;
pub use self::stream::BlockingStream;

/// Bounds of connections for threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockingConfig {
    /// Bytes between a connection and its threads at most, each way.
    pub buffer: usize,
    /// Connections of a port that were accepted and that no thread has taken, at most. One beyond is reset.
    pub backlog: usize,
}

impl Default for BlockingConfig {
    fn default() -> BlockingConfig {
        BlockingConfig { buffer: 64 << 10, backlog: 1_024 }
    }
}

/// Opens and accepts connections for threads. Clones are the same.
///
/// ```
/// use rheostat_serve::blocking::{Blocking, BlockingConfig, StreamError};
///
/// let sockets = Blocking::new(BlockingConfig::default());
/// // `sockets.handler()` is what lanes run; `sockets.run_by` tells how they are called.
/// let error = sockets.connect("192.0.2.7:80".parse()?).unwrap_err();
/// assert_eq!(error, StreamError::NotRunning);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blocking(Arc<Hub>);

impl Blocking {
    /// Connections within these bounds, of a service that does not run yet.
    pub fn new(config: BlockingConfig) -> Blocking {
        Blocking(Arc::new(Hub::new(config)))
    }

    /// What the lanes run.
    pub fn handler(&self) -> BlockingHandler {
        BlockingHandler(self.0.clone())
    }

    /// How the lanes are called that run the handler. The first one stays.
    pub fn run_by(&self, control: ServeControl) {
        self.0.run_by(control);
    }

    /// Accepts the connections of a port that the service has a listener for, whose address it has. What has come before this call
    /// waits, within [`BlockingConfig::backlog`].
    pub fn listen(&self, port: u16) -> BlockingListener {
        BlockingListener::new(self.0.clone(), port)
    }

    /// Opens a connection, and waits until the peer has accepted it.
    ///
    /// # Errors
    /// [`StreamError`] when it comes to nothing, or nothing runs the handler.
    pub fn connect(&self, remote: SocketAddr) -> Result<BlockingStream, StreamError> {
        let pipe = self.0.open(remote)?;
        pipe.wait_connected()?;
        Ok(BlockingStream::new(self.0.clone(), pipe))
    }
}

/// What lanes run for threads: a [`Handler`].
#[derive(Debug)]
pub struct BlockingHandler(Arc<Hub>);

/// A lane that runs the handler. When there is none any more, threads learn that nothing comes.
#[derive(Debug)]
pub struct Presence(Arc<Hub>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Handler for BlockingHandler {
    type Data = PipeEnd;
    type Worker = Presence;

    fn worker(&self, _: LaneId) -> Presence {
        self.0.enter();
        Presence(self.0.clone())
    }

    fn accept(&self, _: &mut Presence, local: SocketAddr, peer: SocketAddr) -> PipeEnd {
        self.0.pipe(Some(local), peer)
    }

    fn handle(
        &self,
        _: &mut Presence,
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, PipeEnd>,
    ) {
        let Some(pipe) = sockets.data(id).map(|end| end.pipe()) else { return };
        match event {
            SocketEvent::Accepted => {
                pipe.set_open(id, None);
                if !self.0.accept(pipe) {
                    sockets.abort(id);
                }
            }
            SocketEvent::Connected => {
                let local = sockets.addresses(id).map(|(local, _)| local);
                pipe.set_open(id, local);
                pipe.go_on(id, sockets);
            }
            SocketEvent::Closed(reason) => {
                pipe.go_on(id, sockets);
                pipe.close(reason);
            }
            SocketEvent::Readable
            | SocketEvent::Writable
            | SocketEvent::PeerFinished
            | SocketEvent::Woken => pipe.go_on(id, sockets),
            // Threads end their connections; accepting has ended.
            SocketEvent::Draining => self.0.end_accepting(),
            SocketEvent::Urgent => {}
        }
    }

    fn called(&self, _: &mut Presence, shard: ShardId, sockets: &mut Sockets<'_, PipeEnd>) {
        for request in self.0.take(shard) {
            match request {
                Request::Open(remote, end) => {
                    let pipe = end.pipe();
                    pipe.open(|| sockets.connect(remote, end));
                }
                Request::GoOn(id, pipe) => pipe.go_on(id, sockets),
            }
        }
    }
}
