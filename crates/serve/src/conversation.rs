//! What passes between a connection and the application: bytes in, requests, replies, bytes out.

mod apart;
mod members;
mod reading;
mod replies;
mod stream;
mod unwritten;
mod writing;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_run::{AnyPoolClient, Lost};

use crate::application::{Application, Handled};
use crate::connections::{ConnectionId, Connections, LiveConnection};
use crate::counters::Counters;
use crate::driver::{DeferredRequests, Driver, Turn};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::shared::Shared;
use crate::times::{RequestStage, TimesMeter};
use apart::{Apart, Job, Origin, Outcome};
pub(crate) use members::{RequestClient, handling};
use reading::Next;
use stream::Pending;
pub(crate) use stream::Stream;
use writing::Written;

/// Requests of one connection that are handled in a row, before other connections have their turn.
const ROW: usize = 64;
/// Requests of one connection that are handled apart at a time: behind so many, it is not read from.
const UNDER_WAY: usize = 32;
/// A lane's part in the application.
pub(crate) struct Conversations<A: Application> {
    lane: LaneId,
    app: Arc<A>,
    /// Made when it is needed, which it is not where members handle requests.
    worker: Option<A::Worker>,
    shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    /// What is under way on the connection whose turn it is.
    current: Box<Pending<A>>,
    /// What a connection reads into that has no bytes from before.
    input: Vec<u8>,
    /// Whether that is so with the one whose turn it is.
    reads_here: bool,
    /// For pieces of replies.
    piece: Vec<u8>,
    /// For what is under way on a connection between its turns.
    boxes: Vec<Box<Pending<A>>>,
    /// Requests, if they are not handled in the turn of their connection.
    apart: Option<Apart<A>>,
    /// The connection whose turn it is.
    turn_of: Option<ConnectionId>,
    /// Times requests, if that is asked for.
    times: Option<Box<TimesMeter>>,
}

impl<A: Application> Driver for Conversations<A> {
    type Stream = Stream<A>;

    fn accept() -> Stream<A> {
        Stream::new()
    }

    fn allocated(stream: &Stream<A>) -> usize {
        stream.allocated()
    }

    /// The lane's buffer, if the connection waits for a request: the first may come with what opens the connection.
    #[inline]
    fn reads_into(&mut self, entry: &Entry<Stream<A>>) -> Option<&mut Vec<u8>> {
        let waits = matches!(entry.phase, Phase::Opening | Phase::Open);
        (waits && entry.stream.pending.is_none()).then_some(&mut self.input)
    }

    /// A panic of the application resets the connection.
    #[inline]
    fn advance(&mut self, live: &mut LiveConnection<'_, Stream<A>>, now: Time) -> Option<Turn> {
        if self.apart.is_some() {
            self.turn_of = Some(live.id());
        }
        let entry = live.entry();
        let turn = catch_unwind(AssertUnwindSafe(|| self.go_on(entry, now)));
        Some(turn.unwrap_or_else(|_| {
            self.on_panic(entry);
            Turn::Over
        }))
    }

    /// In good order if nothing is under way. It is no peer's silence if the application takes its time.
    fn end_idle(&mut self, entry: &mut Entry<Stream<A>>, _now: Time) {
        match entry.stream.is_idle() {
            true => entry.phase = Phase::Ending,
            false if entry.stream.awaits_replies() => {}
            false => abort(entry),
        }
    }

    fn arriving_since(stream: &Stream<A>) -> Time {
        stream.arriving_since()
    }

    fn end_late(&mut self, entry: &mut Entry<Stream<A>>) {
        let Stream { conn, pending } = &mut entry.stream;
        let (Some(conn), Some(pending)) = (conn, pending) else { return };
        let app = &self.app;
        match catch_unwind(AssertUnwindSafe(|| app.time_out(conn))) {
            Ok(Some(reply)) => {
                (pending.reply, pending.is_last) = (Some(reply), true);
                pending.since = Time::NEVER;
            }
            Ok(None) => abort(entry),
            Err(_) => self.on_panic(entry),
        }
    }

    #[inline]
    fn begin_segment(&mut self, stamp: Time, now: Time) {
        if let Some(times) = &mut self.times {
            times.begin(stamp, now);
        }
    }

    #[inline]
    fn sent(&mut self) {
        if let Some(times) = &mut self.times {
            times.sent();
        }
    }

    #[inline]
    fn may_take_long(&self) -> bool {
        self.apart.is_none() || self.times.is_some()
    }

    #[inline]
    fn deferred(&mut self) -> Option<&mut dyn DeferredRequests<Stream<A>>> {
        match self.apart.is_some() {
            true => Some(self),
            false => None,
        }
    }

    fn abort(entry: &mut Entry<Stream<A>>) {
        abort(entry);
    }
}

impl<A: Application> DeferredRequests<Stream<A>> for Conversations<A> {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        let apart = self.apart.as_mut().filter(|apart| apart.members.is_some())?;
        Some(apart)
    }

    fn unanswered(&self) -> u64 {
        let outstanding = self.apart.iter().flat_map(|apart| &apart.outstanding);
        outstanding.map(|count| u64::from(*count)).sum()
    }

    fn has_work(&self) -> bool {
        self.apart.as_ref().is_some_and(|apart| !apart.jobs.is_empty())
    }

    fn unsettled(&self) -> Option<ShardId> {
        Some(self.apart.as_ref()?.outcomes.front()?.origin.connection.shard)
    }

    /// Handles the request that waits longest. One that takes longer waits again, behind the others.
    fn work(&mut self) -> bool {
        let Some(apart) = &mut self.apart else { return false };
        let Some(Job { mut origin, request }) = apart.jobs.pop_front() else { return false };
        if let Some(times) = &self.times {
            times.handle(&mut origin.timed);
        }
        let worker = self.worker.get_or_insert_with(|| self.app.worker(self.lane));
        let handled = catch_unwind(AssertUnwindSafe(|| self.app.handle(worker, request)));
        let reply = match handled {
            Ok(Handled::Done(reply)) => Ok(reply),
            Ok(Handled::More(request)) => {
                apart.jobs.push_back(Job { origin, request });
                return true;
            }
            Err(_) => Err(Lost::Panicked),
        };
        if let Some(times) = &self.times {
            times.end(&mut origin.timed, RequestStage::Application);
        }
        let has_panicked = reply.is_err();
        apart.outcomes.push_back(Outcome { origin, reply });
        if has_panicked {
            self.renew_worker();
        }
        true
    }

    fn settle(&mut self, connections: Option<&mut Connections<Stream<A>>>) -> Option<u32> {
        let Outcome { origin, reply } = self.apart.as_mut()?.next_outcome()?;
        let Origin { connection, place, timed } = origin;
        let entry = connections.and_then(|connections| connections.live_mut(connection));
        let counter = match &reply {
            Ok(_) => &self.counters.requests,
            Err(Lost::Panicked) => &self.counters.panics,
            Err(Lost::Ended) => &self.counters.unanswered,
        };
        counter.increment();
        let Some(entry) = entry else {
            self.counters.unclaimed.increment();
            return None;
        };
        let reply = reply.ok().and_then(|reply| self.bounded(reply));
        match (reply, &mut entry.stream.pending) {
            (Some(reply), Some(pending)) => {
                let memory = self.app.reply_memory(&reply);
                if pending.replies.put(place, (reply, timed), memory).is_some() {
                    self.counters.unclaimed.increment();
                    return None;
                }
            }
            (None, Some(_)) => abort(entry),
            // It ended meanwhile.
            (_, None) => {
                self.counters.unclaimed.increment();
                return None;
            }
        }
        Some(connection.slot)
    }
}

impl<A: Application> Conversations<A> {
    /// Requests are handled in the turn of their connection; or by members of a pool, if there is a client of it; or else by the lane
    /// when it has given the shards back, if it `handles_apart`.
    pub(crate) fn new(
        lane: LaneId,
        app: Arc<A>,
        shared: Arc<Shared>,
        (client, handles_apart): (Option<RequestClient<A>>, bool),
        times: Option<TimesMeter>,
    ) -> Conversations<A> {
        Conversations {
            lane,
            worker: client.is_none().then(|| app.worker(lane)),
            app,
            counters: shared.counters(lane),
            shared,
            current: Box::new(Pending::new()),
            input: Vec::new(),
            reads_here: true,
            piece: Vec::new(),
            boxes: Vec::new(),
            apart: (handles_apart || client.is_some()).then(|| Apart::new(client)),
            turn_of: None,
            times: times.map(Box::new),
        }
    }

    #[cold]
    fn on_panic(&mut self, entry: &mut Entry<Stream<A>>) {
        self.counters.panics.increment();
        abort(entry);
        (*self.current, self.reads_here) = (Pending::new(), true);
        self.input.clear();
        self.renew_worker();
    }

    /// After a panic: whatever it was about is in doubt.
    #[cold]
    fn renew_worker(&mut self) {
        if let Ok(worker) = catch_unwind(AssertUnwindSafe(|| self.app.worker(self.lane))) {
            self.worker = Some(worker);
        }
    }

    fn go_on(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Turn {
        if entry.phase == Phase::Open && entry.stream.conn.is_none() {
            let peer = Ends::of(&entry.key).remote;
            entry.stream.conn = Some(self.app.accept(peer));
        }
        self.begin(&mut entry.stream);
        let turn = self.converse(entry, now);
        self.end(entry);
        turn
    }

    fn converse(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Turn {
        for _ in 0..ROW {
            match entry.phase {
                Phase::Opening | Phase::Done => return Turn::Over,
                Phase::Lingering(until) => {
                    linger(entry, until, now);
                    return Turn::Over;
                }
                Phase::Open | Phase::Ending => {}
            }
            match self.write(entry, now) {
                Written::All => {}
                Written::Again => return Turn::Again,
                Written::Blocked => return Turn::Over,
                Written::Broken => {
                    abort(entry);
                    return Turn::Over;
                }
            }
            if entry.phase == Phase::Ending {
                self.finish(entry, now);
                continue;
            }
            if self.current.replies.len() >= under_way::<A>()
                || self.current.is_last
                || self.current.replies.memory() >= self.shared.limits().reply_memory
                || self.current.replies.are_awaited() && self.is_full()
            {
                // The next reply goes on with it.
                return Turn::Over;
            }
            let request = match self.current.request.take() {
                Some(request) => request,
                None => match self.next_request(entry, now) {
                    Next::Request(request, class) => {
                        self.current.timed = match &mut self.times {
                            Some(times) => times.find(class),
                            None => None,
                        };
                        request
                    }
                    Next::None if self.is_over(entry) => {
                        self.end_behind_replies(entry);
                        continue;
                    }
                    Next::None => return Turn::Over,
                    Next::Refused(reply) => {
                        self.counters.refused.increment();
                        match self.current.replies.is_empty() {
                            true => self.current.reply = Some(reply),
                            false => {
                                let memory = self.app.reply_memory(&reply);
                                self.current.replies.push((reply, None), memory);
                            }
                        }
                        self.end_behind_replies(entry);
                        continue;
                    }
                    Next::Broken => {
                        self.counters.refused.increment();
                        abort(entry);
                        return Turn::Over;
                    }
                },
            };
            if let (Some(apart), Some(connection)) = (&mut self.apart, self.turn_of) {
                let place = self.current.replies.expect();
                let timed = self.current.timed.take();
                let origin = Origin { connection, place, timed };
                apart.add(Job { origin, request });
                continue;
            }
            let worker = self.worker.get_or_insert_with(|| self.app.worker(self.lane));
            match self.app.handle(worker, request) {
                Handled::Done(reply) => {
                    self.counters.requests.increment();
                    self.current.reply = self.bounded(reply);
                    if self.current.reply.is_none() {
                        abort(entry);
                        return Turn::Over;
                    }
                    if let Some(times) = &self.times {
                        times.end(&mut self.current.timed, RequestStage::Application);
                    }
                }
                Handled::More(request) => {
                    self.current.request = Some(request);
                    return Turn::Again;
                }
            }
        }
        Turn::Again
    }

    /// Whether requests of the connection whose turn it is wait for room at members.
    fn is_full(&self) -> bool {
        let members = self.apart.as_ref().and_then(|apart| apart.members.as_ref());
        let turn = members.zip(self.turn_of);
        turn.is_some_and(|(members, connection)| members.is_full(connection))
    }

    /// No request is taken any more.
    fn end_behind_replies(&mut self, entry: &mut Entry<Stream<A>>) {
        match self.current.replies.is_empty() {
            true => entry.phase = Phase::Ending,
            false => self.current.is_last = true,
        }
    }

    /// Whether no request will come: the peer has finished, or the run ends and nothing is under way.
    fn is_over(&self, entry: &Entry<Stream<A>>) -> bool {
        entry.peer_finished || self.shared.is_draining() && self.unparsed().is_empty()
    }

    /// Everything is written: ends our direction, and waits for the peer to end its own.
    fn finish(&mut self, entry: &mut Entry<Stream<A>>, now: Time) {
        entry.tcp.finish(now);
        let until = now + self.shared.limits().linger;
        self.forget_input();
        entry.stream.conn = None;
        entry.phase = Phase::Lingering(until);
    }
}

/// Requests of one connection that are handled apart at a time.
fn under_way<A: Application>() -> usize {
    if A::SERIAL { 1 } else { UNDER_WAY }
}

/// Discards what the peer sends, until it finishes or has had time to.
fn linger<A: Application>(entry: &mut Entry<Stream<A>>, until: Time, now: Time) {
    let mut discarded = [0; 2_048];
    while entry.tcp.read(&mut discarded).is_ok_and(|read| read > 0) {}
    if entry.peer_finished {
        entry.phase = Phase::Done;
    } else if now >= until {
        entry.tcp.close(now);
        entry.phase = Phase::Done;
    }
}

/// Resets the connection.
fn abort<A: Application>(entry: &mut Entry<Stream<A>>) {
    entry.tcp.abort();
    if entry.phase != Phase::Opening {
        entry.phase = Phase::Done;
    }
    entry.stream = Stream::new();
}
