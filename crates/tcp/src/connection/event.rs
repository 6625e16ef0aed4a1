//! What a connection tells its owner.

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both ends have sent everything and know it.
    Finished,
    /// The user aborted it.
    Aborted,
    /// The peer reset it.
    Reset,
    /// The peer refused it.
    Refused,
    /// The handshake took too long.
    ConnectTimeout,
    /// Data was not acknowledged for too long.
    UserTimeout,
    /// An idle peer did not answer probes.
    KeepAliveTimeout,
    /// The peer did not close in time after we had closed both directions.
    FinWaitTimeout,
    /// The peer did not acknowledge everything in time after [`Connection::close_within`](super::Connection::close_within).
    LingerTimeout,
    /// The peer sent data after we had closed both directions.
    DataAfterClose,
}

impl CloseReason {
    /// The reason in words.
    pub fn name(self) -> &'static str {
        match self {
            CloseReason::Finished => "both ends have finished",
            CloseReason::Aborted => "this end aborted it",
            CloseReason::Reset => "the peer reset it",
            CloseReason::Refused => "the peer refused it",
            CloseReason::ConnectTimeout => "the handshake took too long",
            CloseReason::UserTimeout => "data was not acknowledged for too long",
            CloseReason::KeepAliveTimeout => "the peer did not answer keep-alive probes",
            CloseReason::FinWaitTimeout => "the peer did not close in time",
            CloseReason::LingerTimeout => "the peer did not acknowledge everything in time",
            CloseReason::DataAfterClose => "the peer sent data after this end had closed",
        }
    }
}

/// Something the owner may want to act upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done.
    Established,
    /// There are bytes to read.
    Readable,
    /// The peer has said that more of its data is urgent; [`Connection::urgent`](super::Connection::urgent) has how much.
    Urgent,
    /// After a write that did not take everything there is room again: half of the buffer, or a quarter where more than half may
    /// be in flight.
    Writable,
    /// The peer has sent all it had to send; what is unread can still be read.
    PeerFinished,
    /// The connection is over, or is in TIME-WAIT. The last event.
    Closed(CloseReason),
}

/// Events that have not been polled: one of each kind at most.
#[derive(Debug, Default)]
pub(crate) struct Events {
    established: bool,
    readable: bool,
    urgent: bool,
    writable: bool,
    peer_finished: bool,
    closed: Option<CloseReason>,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        match event {
            Event::Established => self.established = true,
            Event::Readable => self.readable = true,
            Event::Urgent => self.urgent = true,
            Event::Writable => self.writable = true,
            Event::PeerFinished => self.peer_finished = true,
            Event::Closed(reason) => self.closed = Some(reason),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let flags = [
            (&mut self.established, Event::Established),
            (&mut self.readable, Event::Readable),
            (&mut self.urgent, Event::Urgent),
            (&mut self.writable, Event::Writable),
            (&mut self.peer_finished, Event::PeerFinished),
        ];
        for (flag, event) in flags {
            if std::mem::take(flag) {
                return Some(event);
            }
        }
        self.closed.take().map(Event::Closed)
    }
}
