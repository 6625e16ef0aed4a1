//! Passes events of connections to a handler.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rheostat_base::{LaneId, Time};
use rheostat_tcp::{CloseReason, Event};

use crate::connections::{Connections, Found, LiveConnection, NO_SLOT};
use crate::counters::Counters;
use crate::driver::{Driver, Surroundings, Turn};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::handler::{Handler, SocketEvent};
use crate::shared::Shared;
use crate::sockets::Sockets;

/// A lane's part in a handler.
pub(crate) struct Readiness<H: Handler> {
    lane: LaneId,
    handler: Arc<H>,
    worker: H::Worker,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
}

/// What is kept for a connection beside TCP.
pub(crate) struct Watched<T> {
    /// None before a listener's connection is accepted.
    pub(crate) data: Option<T>,
    is_established: bool,
    is_readable: bool,
    is_writable: bool,
    is_urgent: bool,
    has_finished: bool,
    closed: Option<CloseReason>,
    /// An event is to come in another turn.
    pub(crate) is_woken: bool,
    /// The program wants no more of it.
    pub(crate) is_closed: bool,
    /// It is among those that have something to send in another connection's turn.
    pub(crate) is_touched: bool,
    /// The program knows that the service ends.
    knows_draining: bool,
    /// Both ends have finished in good order.
    is_finished: bool,
}

impl<T> Watched<T> {
    fn new(data: Option<T>) -> Watched<T> {
        Watched {
            data,
            is_established: false,
            is_readable: false,
            is_writable: false,
            is_urgent: false,
            has_finished: false,
            closed: None,
            is_woken: false,
            is_closed: false,
            is_touched: false,
            knows_draining: false,
            is_finished: false,
        }
    }

    /// Of a connection that this end opens.
    pub(crate) fn of(data: T) -> Watched<T> {
        Watched::new(Some(data))
    }

    /// The next event of the protocol.
    fn pop(&mut self, first: SocketEvent) -> Option<SocketEvent> {
        let flags = [
            (&mut self.is_established, first),
            (&mut self.is_urgent, SocketEvent::Urgent),
            (&mut self.is_readable, SocketEvent::Readable),
            (&mut self.is_writable, SocketEvent::Writable),
            (&mut self.has_finished, SocketEvent::PeerFinished),
        ];
        for (flag, event) in flags {
            if std::mem::take(flag) {
                return Some(event);
            }
        }
        self.closed.take().map(SocketEvent::Closed)
    }
}

impl<H: Handler> Readiness<H> {
    pub(crate) fn new(lane: LaneId, handler: Arc<H>, shared: Arc<Shared>) -> Readiness<H> {
        let (worker, counters) = (handler.worker(lane), shared.counters(lane));
        Readiness { lane, handler, worker, shared, counters }
    }

    /// Calls the handler. After a panic, the connection is reset.
    fn pass(
        &mut self,
        slot: u32,
        event: SocketEvent,
        connections: &mut Connections<Watched<H::Data>>,
        around: &mut Surroundings,
    ) {
        let id = connections.id(slot);
        let counters = &*self.counters;
        let mut sockets = Sockets { connections, around, counters, current: slot };
        let call = || self.handler.handle(&mut self.worker, id, event, &mut sockets);
        let outcome = catch_unwind(AssertUnwindSafe(call));
        if outcome.is_err() {
            sockets.abort(id);
            self.on_panic();
        }
    }

    #[cold]
    fn on_panic(&mut self) {
        self.counters.panics.increment();
        // Whatever it was about is in doubt.
        if let Ok(worker) = catch_unwind(AssertUnwindSafe(|| self.handler.worker(self.lane))) {
            self.worker = worker;
        }
    }

    /// Gives an accepted connection its user data; returns whether it has some.
    fn give_data(&mut self, entry: &mut Entry<Watched<H::Data>>) -> bool {
        if entry.stream.data.is_some() {
            return true;
        }
        if entry.phase == Phase::Opening || entry.phase == Phase::Done {
            return false;
        }
        let Ends { local, remote } = Ends::of(&entry.key);
        let call = || self.handler.accept(&mut self.worker, local, remote);
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(data) => entry.stream.data = Some(data),
            Err(_) => {
                self.on_panic();
                Self::abort(entry);
            }
        }
        entry.stream.data.is_some()
    }

    fn next_event(
        &mut self,
        slot: u32,
        connections: &mut Connections<Watched<H::Data>>,
        is_draining: bool,
    ) -> Option<SocketEvent> {
        let Found::Live(_, entry) = connections.get(slot) else { return None };
        if !self.give_data(entry) {
            // The program has never heard of it.
            entry.stream = Watched::new(None);
            return None;
        }
        let first = match entry.listener {
            Some(_) => SocketEvent::Accepted,
            None => SocketEvent::Connected,
        };
        let event = entry.stream.pop(first);
        let is_open = entry.phase == Phase::Open;
        if event.is_none()
            && is_open
            && is_draining
            && !std::mem::replace(&mut entry.stream.knows_draining, true)
        {
            return Some(SocketEvent::Draining);
        }
        event
    }
}

impl<H: Handler> Driver for Readiness<H> {
    type Stream = Watched<H::Data>;

    fn accept() -> Watched<H::Data> {
        Watched::new(None)
    }

    fn allocated(_: &Watched<H::Data>) -> usize {
        0
    }

    fn note(stream: &mut Watched<H::Data>, event: Event) {
        match event {
            Event::Established => stream.is_established = true,
            Event::Readable => stream.is_readable = true,
            Event::Urgent => stream.is_urgent = true,
            Event::Writable => stream.is_writable = true,
            Event::PeerFinished => stream.has_finished = true,
            Event::Closed(reason) => {
                stream.closed = Some(reason);
                stream.is_finished = reason == CloseReason::Finished;
            }
        }
    }

    fn has_events(stream: &Watched<H::Data>) -> bool {
        stream.closed.is_some()
    }

    fn is_held(entry: &Entry<Watched<H::Data>>) -> bool {
        let stream = &entry.stream;
        let is_wanted = stream.data.is_some() && stream.is_finished && !stream.is_closed;
        is_wanted && entry.tcp.info().unread > 0
    }

    fn advance(&mut self, _: &mut LiveConnection<'_, Watched<H::Data>>, _: Time) -> Option<Turn> {
        None
    }

    fn advance_among(
        &mut self,
        slot: u32,
        connections: &mut Connections<Watched<H::Data>>,
        around: &mut Surroundings,
    ) -> Turn {
        let is_draining = self.shared.is_draining();
        let Found::Live(_, entry) = connections.get(slot) else { return Turn::Over };
        entry.stream.is_touched = false;
        let was_woken = std::mem::take(&mut entry.stream.is_woken);
        while let Some(event) = self.next_event(slot, connections, is_draining) {
            self.pass(slot, event, connections, around);
        }
        let is_open = |entry: &Entry<_>| entry.phase != Phase::Done;
        if was_woken && matches!(connections.get(slot), Found::Live(_, entry) if is_open(entry)) {
            self.pass(slot, SocketEvent::Woken, connections, around);
        }
        match connections.get(slot) {
            Found::Live(_, entry) if entry.stream.is_woken => Turn::Again,
            _ => Turn::Over,
        }
    }

    fn called(
        &mut self,
        connections: &mut Connections<Watched<H::Data>>,
        around: &mut Surroundings,
    ) {
        let shard = connections.shard();
        let counters = &*self.counters;
        let mut sockets = Sockets { connections, around, counters, current: NO_SLOT };
        let call = || self.handler.called(&mut self.worker, shard, &mut sockets);
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.on_panic();
        }
    }

    /// With unread bytes by a reset, so that the peer learns of them.
    fn end_idle(&mut self, entry: &mut Entry<Watched<H::Data>>, now: Time) {
        entry.tcp.close(now);
    }

    fn abort(entry: &mut Entry<Watched<H::Data>>) {
        entry.stream.is_closed = true;
        entry.tcp.abort();
    }
}
