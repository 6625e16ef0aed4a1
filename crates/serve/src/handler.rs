//! The plain interface to connections: events of connections, and calls to read and write them.

use std::net::SocketAddr;

use rheostat_base::{LaneId, ShardId};
use rheostat_run::Metrics;
use rheostat_tcp::CloseReason;

use crate::connections::ConnectionId;
use crate::sockets::Sockets;

/// A program that uses connections directly, as one value that all lanes share. Events come without system calls, on the lane
/// that has the connection; nothing may block there.
///
/// Events are edges: [`SocketEvent::Readable`] comes when more has arrived, not while something is unread. What is left
/// unread closes the peer's window. A panic resets the connection whose event it was, and nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle events of connections",
    label = "not a handler",
    note = "implement `Handler` for it; an `Application` (requests and replies) is registered as it is, and served by `Server::new`"
)]
pub trait Handler: Send + Sync + 'static {
    /// User data of a connection. It moves between lanes with its connection.
    type Data: Send + 'static;
    /// What is kept for a lane: buffers, handles. Made anew after a panic.
    type Worker: Send + 'static;

    /// What `lane` keeps.
    fn worker(&self, lane: LaneId) -> Self::Worker;

    /// The user data of a connection that a listener has accepted.
    fn accept(&self, worker: &mut Self::Worker, local: SocketAddr, peer: SocketAddr) -> Self::Data;

    /// Something has happened to the connection `id`. `sockets` are all connections of its shard.
    fn handle(
        &self,
        worker: &mut Self::Worker,
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, Self::Data>,
    );

    /// Adds the counts of the handler, as [`Application::metrics`](crate::Application::metrics).
    fn metrics(&self, _metrics: &mut Metrics) {}

    /// [`ServeControl::call`](crate::ServeControl::call) was called for a shard: what another thread has asked for can be done now.
    /// `sockets` are all connections of that shard. Several calls may come as one. After a panic, the lane's worker value is made
    /// anew, and no connection is reset.
    fn called(
        &self,
        _worker: &mut Self::Worker,
        _shard: ShardId,
        _sockets: &mut Sockets<'_, Self::Data>,
    ) {
    }
}

/// What has happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A listener has accepted it. The first event of such a connection.
    Accepted,
    /// The peer has accepted it. The first event of a connection that this end opened, unless it is closed before.
    Connected,
    /// More has arrived.
    Readable,
    /// After a write that did not take everything, there is room again.
    Writable,
    /// More of what the peer sends is urgent (RFC 9293, 3.8.5).
    Urgent,
    /// The peer has sent all that it had to send. What is unread can still be read.
    PeerFinished,
    /// [`Sockets::wake`] was called for it.
    Woken,
    /// The service ends: connections should.
    Draining,
    /// The connection is over; no event follows. If both ends had finished, what is unread can be read now, or later by the
    /// connection's id: the connection stays until everything is read, or until [`Sockets::close`].
    Closed(CloseReason),
}
