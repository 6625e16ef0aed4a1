//! What decides what is read from connections and written to them.

use rheostat_base::{ShardId, Time};
use rheostat_run::AnyPoolClient;
use rheostat_tcp::Event;

use crate::connections::{Connections, LiveConnection};
use crate::connector::Connector;
use crate::due::Due;
use crate::egress::Egress;
use crate::entry::Entry;
use crate::listeners::Listeners;

/// A lane's part in a program that uses connections. There are two: [`Conversations`](crate::conversation::Conversations), which
/// cut the bytes of a connection into requests, and [`Readiness`](crate::readiness::Readiness), which passes events on.
pub(crate) trait Driver: Send + 'static {
    /// What is kept for a connection.
    type Stream: Send + 'static;

    /// What is kept for a connection that a SYN opens.
    fn accept() -> Self::Stream;

    /// Bytes allocated for data.
    fn allocated(stream: &Self::Stream) -> usize;

    /// Learns of an event of the protocol.
    fn note(_stream: &mut Self::Stream, _event: Event) {}

    /// Whether there are events that [`Driver::advance`] has not looked at.
    fn has_events(_stream: &Self::Stream) -> bool {
        false
    }

    /// Whether the connection has to stay although both ends have finished, because something is to be read.
    fn is_held(_entry: &Entry<Self::Stream>) -> bool {
        false
    }

    /// Where bytes are put that arrive for a connection whose turn comes next, if the driver would read them at once.
    fn reads_into(&mut self, _entry: &Entry<Self::Stream>) -> Option<&mut Vec<u8>> {
        None
    }

    /// Since when a request has been arriving that is not whole; [`Time::NEVER`] if there is none.
    fn arriving_since(_stream: &Self::Stream) -> Time {
        Time::NEVER
    }

    /// Ends a connection on which a request has been arriving for too long.
    fn end_late(&mut self, entry: &mut Entry<Self::Stream>) {
        Self::abort(entry);
    }

    /// Lets a connection go on as far as it can after something has happened to it. `None` where the driver needs the other
    /// connections of the shard as well: then [`Driver::advance_among`] follows.
    fn advance(&mut self, live: &mut LiveConnection<'_, Self::Stream>, now: Time) -> Option<Turn>;

    /// As [`Driver::advance`], with all connections of the shard.
    fn advance_among(
        &mut self,
        _slot: u32,
        _connections: &mut Connections<Self::Stream>,
        _around: &mut Surroundings,
    ) -> Turn {
        Turn::Over
    }

    /// Lets the program do what another thread has asked for.
    fn called(&mut self, _connections: &mut Connections<Self::Stream>, _around: &mut Surroundings) {
    }

    /// A segment is at hand, which its device stamped with `stamp`; it is taken at `now`.
    fn begin_segment(&mut self, _stamp: Time, _now: Time) {}

    /// What [`Driver::advance`] has written is sent.
    fn sent(&mut self) {}

    /// Whether a segment may take long, since the program works on it in [`Driver::advance`], or is to be timed: the clock is read
    /// behind each.
    fn may_take_long(&self) -> bool {
        true
    }

    /// The requests that [`Driver::advance`] does not handle itself, if it leaves any.
    #[inline]
    fn deferred(&mut self) -> Option<&mut dyn DeferredRequests<Self::Stream>> {
        None
    }

    /// Ends a connection on which nothing has moved for too long.
    fn end_idle(&mut self, entry: &mut Entry<Self::Stream>, now: Time);

    /// Resets a connection.
    fn abort(entry: &mut Entry<Self::Stream>);
}

/// Requests that are handled apart from the turns of their connections: by the lane when it has given shards back, or by members of
/// a pool.
pub(crate) trait DeferredRequests<S> {
    /// The client of the pool whose members handle them; none if the lane does.
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient>;

    /// Requests that have no outcome.
    fn unanswered(&self) -> u64;

    /// Whether any waits for the lane.
    fn has_work(&self) -> bool;

    /// Handles one of these; `false` when there is none.
    fn work(&mut self) -> bool;

    /// The shard that the next outcome is for.
    fn unsettled(&self) -> Option<ShardId>;

    /// Gives that outcome to its connection, if the shard's connections are there and it is one of them, and returns the slot of
    /// the connection, which has to be advanced.
    fn settle(&mut self, connections: Option<&mut Connections<S>>) -> Option<u32>;
}

/// Whether a connection has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Until a segment arrives, or a timer is due.
    Over,
    /// No longer than others have their turn.
    Again,
}

/// A lane's part in a service beside its connections and the driver.
pub(crate) struct Surroundings {
    /// The time of the packet, timer or call at hand.
    pub(crate) now: Time,
    pub(crate) egress: Egress,
    pub(crate) listeners: Listeners,
    pub(crate) connector: Connector,
    /// Connections that the driver has changed in the turn of another one.
    pub(crate) touched: Vec<u32>,
    /// The earliest deadline of the lane's connections.
    pub(crate) due: Due,
}
