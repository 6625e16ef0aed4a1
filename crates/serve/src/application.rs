//! What a service does with the bytes of its connections.

use std::net::SocketAddr;

use rheostat_base::LaneId;
use rheostat_run::Metrics;

/// A service over TCP, as one value that all lanes share. It sees no sockets: bytes that have arrived are cut into requests,
/// each request is handled, and its reply is written in the order of the requests of its connection.
///
/// ```text
/// bytes ──► parse ──► Request ──► handle ──► Reply ──► encode ──► bytes
///             Conn                  Worker               Conn
/// ```
///
/// `handle` sees no connection, so some [schedulers](crate::AvailableScheduler) have it called on another thread than the other
/// two. A panic in any of these methods resets the connection whose turn it is, and nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an application",
    label = "not an application",
    note = "implement `Application` for it (requests and replies); one that implements `Handler` (events of connections) is registered \
            as `Events(handler)`, and served by `Server::with_handler`"
)]
pub trait Application: Send + Sync + 'static {
    /// Whether a request is to be handled only when the reply to the one before it, on the same connection, is there. Where
    /// workers share connections, or do nothing but requests, several requests of a connection may otherwise be handled at
    /// once. Replies are in order either way.
    const SERIAL: bool = false;
    /// What is kept for a connection. It moves between lanes with its connection.
    type Conn: Send + 'static;
    /// What is kept for a lane: buffers, handles. Made anew after a panic.
    type Worker: Send + 'static;
    /// A request, which owns what it needs.
    type Request: Send + 'static;
    /// A reply, or what is left of it to be written.
    type Reply: Send + 'static;

    /// What `lane` keeps.
    fn worker(&self, lane: LaneId) -> Self::Worker;

    /// What a connection keeps that was just established.
    fn accept(&self, peer: SocketAddr) -> Self::Conn;

    /// Finds the first request in `bytes`, which are all that has arrived and has not been taken yet; never none.
    fn parse(&self, conn: &mut Self::Conn, bytes: &[u8]) -> Parsed<Self::Request, Self::Reply>;

    /// Handles a request.
    fn handle(
        &self,
        worker: &mut Self::Worker,
        request: Self::Request,
    ) -> Handled<Self::Request, Self::Reply>;

    /// Bytes of memory that a reply takes until it is written, which are charged to its connection. A reply that takes more than
    /// [`ServeConfig::reply_memory`](crate::ServeConfig::reply_memory) is replaced by [`Application::too_large`]. By default none:
    /// right for a reply that is short, or leads to bytes that are accounted for elsewhere.
    fn reply_memory(&self, _reply: &Self::Reply) -> usize {
        0
    }

    /// The error reply in place of one that takes more memory than it may, in `encode` or before; without one, the connection is
    /// reset. A reply that `encode` writes in pieces has no such bound.
    fn too_large(&self) -> Option<Self::Reply> {
        None
    }

    /// Writes as much of a reply to `out` as it has room for. Called again, when there is room, after [`Encoded::More`].
    fn encode(
        &self,
        conn: &mut Self::Conn,
        reply: &mut Self::Reply,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded;

    /// Adds the counts of the application, for the summary and `rheo status`: called at the end, and on any thread while the service
    /// runs.
    fn metrics(&self, _metrics: &mut Metrics) {}

    /// The last reply of a connection on which the rest of a request did not arrive within
    /// [`ListenerConfig::request_timeout`](crate::ListenerConfig::request_timeout). `None` resets the connection.
    fn time_out(&self, _conn: &mut Self::Conn) -> Option<Self::Reply> {
        None
    }
}

/// What stands at the beginning of what has arrived.
#[derive(Debug)]
pub enum Parsed<Request, Reply> {
    /// No whole request: call again when there are so many bytes, or when there are any more if that is fewer than there are.
    /// More than [`ServeConfig::longest_request`](crate::ServeConfig::longest_request) resets the connection.
    Need(usize),
    /// A request.
    Request {
        /// It.
        request: Request,
        /// The bytes it took; not more than there were.
        len: usize,
        /// What kind of request it is, for schedulers that treat kinds apart.
        class: u8,
    },
    /// The bytes make no sense: the connection ends after this reply.
    Refuse(Reply),
}

/// What came of a request.
#[derive(Debug)]
pub enum Handled<Request, Reply> {
    /// It is done.
    Done(Reply),
    /// It takes longer: to be handled again with what is left of it, after other work of the lane.
    More(Request),
}

/// How far a reply was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// All of it.
    Done,
    /// All that there was room for.
    More,
    /// All of it, and the connection ends behind it.
    Close,
    /// It cannot be finished: the connection is reset, so that the peer does not take what it got for all.
    Abort,
}

/// Where a reply is written to: as many bytes as the connection takes now.
#[derive(Debug)]
pub struct ReplyBuffer<'a> {
    bytes: &'a mut Vec<u8>,
    room: usize,
    most: usize,
    is_exceeded: bool,
}

impl<'a> ReplyBuffer<'a> {
    /// With room for `room` bytes, where no more than `most` are kept.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, room: usize, most: usize) -> ReplyBuffer<'a> {
        ReplyBuffer { bytes, room, most: most.max(room), is_exceeded: false }
    }

    /// Whether more was put than is kept: the bytes are not all there.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// How many bytes there is room for. Something short may be written beyond it, such as a header: it waits.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.bytes.len())
    }

    /// Appends bytes, also beyond the room: they wait in memory, up to
    /// [`ServeConfig::reply_memory`](crate::ServeConfig::reply_memory).
    pub fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > self.most.saturating_sub(self.bytes.len()) {
            self.is_exceeded = true;
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends as many of `bytes` as there is room for, and returns how many. So a reply is written in pieces, the rest when
    /// `encode` is called again after [`Encoded::More`], and takes no memory but its own.
    pub fn put_piece(&mut self, bytes: &[u8]) -> usize {
        let piece = bytes.len().min(self.room());
        self.put(&bytes[..piece]);
        piece
    }

    /// Appends up to `most` bytes, and no more than there is room for, that `fill` writes to the start of what it is given, and
    /// returns how many it said it wrote.
    ///
    /// # Errors
    /// That of `fill`; then nothing is appended.
    pub fn fill<E>(
        &mut self,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let start = self.bytes.len();
        let most = most.min(self.room());
        self.bytes.resize(start + most, 0);
        let result = fill(&mut self.bytes[start..]);
        let filled = result.as_ref().map_or(0, |filled| (*filled).min(most));
        self.bytes.truncate(start + filled);
        result
    }
}

impl std::io::Write for ReplyBuffer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
