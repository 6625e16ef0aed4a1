//! What passes between a connection and the application: bytes in, requests, replies, bytes out.

mod apart;
mod replies;
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_tcp::Connection;

use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use crate::connections::{ConnectionId, Connections, Found};
use crate::counters::Counters;
use crate::driver::{Driver, Surroundings, Turn};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::shared::Shared;
use apart::{Apart, Job, Origin, Outcome};
use stream::Pending;
pub(crate) use stream::Stream;

/// Bytes of a reply that are encoded in one go, and bytes read beyond those that a request is known to take.
const PIECE: usize = 64 << 10;
/// Requests of one connection that are handled in a row, before other connections have their turn.
const ROW: usize = 64;
/// Requests of one connection that are handled apart at a time: behind so many, it is not read from.
const UNDER_WAY: usize = 32;
/// Boxes kept for connections on which something is under way.
const BOXES: usize = 64;

/// A lane's part in the application.
pub(crate) struct Conversations<A: Application> {
    lane: LaneId,
    app: Arc<A>,
    worker: A::Worker,
    shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    /// What is under way on the connection whose turn it is.
    current: Pending<A>,
    /// Whether its input is in the lane's own buffer, which it leaves when its turn is over.
    reads_own: bool,
    /// That buffer, while it does not.
    spare: Vec<u8>,
    /// For pieces of replies.
    piece: Vec<u8>,
    /// For what is under way on a connection between its turns.
    boxes: Vec<Box<Pending<A>>>,
    /// Requests, if they are not handled in the turn of their connection.
    apart: Option<Apart<A>>,
    /// The connection whose turn it is.
    turn_of: Option<ConnectionId>,
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
        (waits && entry.stream.pending.is_none()).then_some(&mut self.current.input)
    }

    fn advance(
        &mut self,
        slot: u32,
        connections: &mut Connections<Stream<A>>,
        around: &mut Surroundings<'_>,
    ) -> Turn {
        if self.apart.is_some() {
            self.turn_of = Some(connections.id(slot));
        }
        match connections.get(slot) {
            Found::Live(_, entry) => self.advance_entry(entry, around.now),
            _ => Turn::Over,
        }
    }

    /// In good order if nothing is under way. It is no peer's silence if the application takes its time.
    fn end_idle(&mut self, entry: &mut Entry<Stream<A>>, _now: Time) {
        match entry.stream.is_idle() {
            true => entry.phase = Phase::Ending,
            false if entry.stream.awaits_replies() => {}
            false => abort(entry),
        }
    }

    fn puts_off(&self) -> bool {
        self.apart.is_some()
    }

    fn work(&mut self) -> bool {
        let Some(apart) = &mut self.apart else { return false };
        let Some(result) = apart.work(&self.app, &mut self.worker) else { return false };
        if result.is_err() {
            self.renew_worker();
        }
        true
    }

    fn unsettled(&self) -> Option<ShardId> {
        self.apart.as_ref()?.unsettled()
    }

    fn settle(&mut self, connections: Option<&mut Connections<Stream<A>>>) -> Option<u32> {
        let Outcome { origin, reply } = self.apart.as_mut()?.outcomes.pop_front()?;
        let Origin { connection, place, .. } = origin;
        let entry = connections.and_then(|connections| connections.live_mut(connection));
        let counter = match &reply {
            Ok(_) => &self.counters.requests,
            Err(_) => &self.counters.panics,
        };
        counter.increment();
        let Some(entry) = entry else {
            self.counters.unclaimed.increment();
            return None;
        };
        match (reply, &mut entry.stream.pending) {
            (Ok(reply), Some(pending)) => {
                if pending.replies.put(place, reply).is_some() {
                    self.counters.unclaimed.increment();
                    return None;
                }
            }
            (Err(_), Some(_)) => abort(entry),
            // It ended meanwhile.
            (_, None) => {
                self.counters.unclaimed.increment();
                return None;
            }
        }
        Some(connection.slot)
    }

    fn abort(entry: &mut Entry<Stream<A>>) {
        abort(entry);
    }
}

/// How writing went on.
enum Written {
    All,
    Blocked,
    Broken,
}

/// What came of looking for a request.
enum Next<A: Application> {
    None,
    Request(A::Request, u8),
    Refused(A::Reply),
    Broken,
}

impl<A: Application> Conversations<A> {
    pub(crate) fn new(lane: LaneId, app: Arc<A>, shared: Arc<Shared>) -> Conversations<A> {
        let worker = app.worker(lane);
        let counters = shared.counters(lane);
        Conversations {
            lane,
            app,
            worker,
            shared,
            counters,
            current: Pending::new(),
            reads_own: true,
            spare: Vec::new(),
            piece: Vec::new(),
            boxes: Vec::new(),
            apart: None,
            turn_of: None,
        }
    }

    /// Has requests handled when the shards have been given back, and not in the turn of their connection.
    pub(crate) fn handling_apart(mut self) -> Conversations<A> {
        self.apart = Some(Apart::new());
        self
    }

    /// Lets a connection and the application go on as far as they can. A panic of the application resets the connection.
    fn advance_entry(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Turn {
        let turn = catch_unwind(AssertUnwindSafe(|| self.go_on(entry, now)));
        turn.unwrap_or_else(|_| {
            self.on_panic(entry);
            Turn::Over
        })
    }

    #[cold]
    fn on_panic(&mut self, entry: &mut Entry<Stream<A>>) {
        self.counters.panics.increment();
        abort(entry);
        (self.current, self.reads_own) = (Pending::new(), true);
        self.renew_worker();
    }

    /// After a panic: whatever it was about is in doubt.
    #[cold]
    fn renew_worker(&mut self) {
        if let Ok(worker) = catch_unwind(AssertUnwindSafe(|| self.app.worker(self.lane))) {
            self.worker = worker;
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
            if self.current.replies.len() >= under_way::<A>() || self.current.is_last {
                // The next reply goes on with it.
                return Turn::Over;
            }
            let (request, class) = match self.current.request.take() {
                Some(request) => (request, 0),
                None => match self.next_request(entry, now) {
                    Next::Request(request, class) => (request, class),
                    Next::None if self.is_over(entry) => {
                        self.end_behind_replies(entry);
                        continue;
                    }
                    Next::None => return Turn::Over,
                    Next::Refused(reply) => {
                        self.counters.refused.increment();
                        match self.current.replies.is_empty() {
                            true => self.current.reply = Some(reply),
                            false => self.current.replies.push(reply),
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
                apart.jobs.push_back(Job { origin: Origin { connection, place, class }, request });
                continue;
            }
            match self.app.handle(&mut self.worker, request) {
                Handled::Done(reply) => {
                    self.counters.requests.increment();
                    self.current.reply = Some(reply);
                }
                Handled::More(request) => {
                    self.current.request = Some(request);
                    return Turn::Again;
                }
            }
        }
        Turn::Again
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
        entry.peer_finished || self.shared.is_draining() && self.current.unparsed().is_empty()
    }

    /// Writes what was said, as far as the send buffer has room.
    fn write(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Written {
        let Entry { tcp, stream, active, phase, .. } = entry;
        let limit = tcp.config().send_buffer;
        loop {
            if !self.current.output.is_empty() {
                let Ok(written) = write(tcp, &self.current.output, now) else {
                    return Written::Broken;
                };
                self.note_written(written, active, now);
                self.current.output.drain(..written);
                if !self.current.output.is_empty() {
                    return Written::Blocked;
                }
                self.current.output = Vec::new();
            }
            if self.current.reply.is_none() {
                self.current.reply = self.current.replies.pop();
            }
            let (Some(reply), Some(conn)) = (&mut self.current.reply, &mut stream.conn) else {
                return Written::All;
            };
            let waiting = tcp.unacknowledged();
            // Not in small pieces: what is unacknowledged will be acknowledged.
            if waiting > limit - limit / 4 {
                return Written::Blocked;
            }
            self.piece.clear();
            let mut out = ReplyBuffer::new(&mut self.piece, (limit - waiting).min(PIECE));
            let encoded = self.app.encode(conn, reply, &mut out);
            match encoded {
                Encoded::Done => {
                    self.current.reply = None;
                    if self.current.is_last && self.current.replies.is_empty() {
                        *phase = Phase::Ending;
                    }
                }
                Encoded::Close => {
                    self.current.reply = None;
                    self.current.replies.clear();
                    *phase = Phase::Ending;
                }
                Encoded::More if !self.piece.is_empty() => {}
                // It would say so for ever.
                Encoded::More | Encoded::Abort => return Written::Broken,
            }
            let Ok(written) = write(tcp, &self.piece, now) else { return Written::Broken };
            self.note_written(written, active, now);
            self.current.output.extend_from_slice(&self.piece[written..]);
        }
    }

    fn note_written(&self, bytes: usize, active: &mut Time, now: Time) {
        self.counters.bytes_out.add(bytes as u64);
        if bytes > 0 {
            *active = now;
        }
    }

    /// Everything is written: ends our direction, and waits for the peer to end its own.
    fn finish(&mut self, entry: &mut Entry<Stream<A>>, now: Time) {
        entry.tcp.finish(now);
        let until = now + self.shared.limits().linger;
        self.current.input.clear();
        (self.current.taken, entry.stream.conn) = (0, None);
        entry.phase = Phase::Lingering(until);
    }

    /// The next request, if all of it has arrived.
    fn next_request(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Next<A> {
        let longest = self.shared.limits().longest_request;
        loop {
            let Entry { tcp, stream, .. } = entry;
            let have = self.current.unparsed().len();
            if have < self.current.needed.max(1) {
                if self.read(tcp) == 0 {
                    return Next::None;
                }
                entry.active = now;
                continue;
            }
            let Some(conn) = &mut stream.conn else { return Next::None };
            let Pending { input, taken, needed, .. } = &mut self.current;
            match self.app.parse(conn, &input[*taken..]) {
                Parsed::Need(more) => {
                    *needed = more.max(have + 1);
                    if *needed > longest {
                        return Next::Broken;
                    }
                }
                Parsed::Request { request, len, class } => {
                    *taken += len.min(have);
                    *needed = 0;
                    return Next::Request(request, class);
                }
                Parsed::Refuse(reply) => return Next::Refused(reply),
            }
        }
    }

    /// Reads what has arrived: a piece, or as much as the next request takes.
    fn read(&mut self, tcp: &mut Connection) -> usize {
        let Pending { input, taken, needed, .. } = &mut self.current;
        let most = needed.saturating_sub(input.len() - *taken).max(PIECE);
        let wanted = tcp.unread().min(most);
        if wanted == 0 {
            return 0;
        }
        if *taken > 0 {
            input.drain(..*taken);
            *taken = 0;
        }
        let start = input.len();
        input.resize(start + wanted, 0);
        let read = tcp.read(&mut input[start..]).unwrap_or(0);
        input.truncate(start + read);
        self.counters.bytes_in.add(read as u64);
        read
    }

    /// Begins the turn of a connection: what was under way on it is. One without input reads into the lane's buffer.
    fn begin(&mut self, stream: &mut Stream<A>) {
        let Some(mut pending) = stream.pending.take() else {
            self.counters.bytes_in.add(self.current.input.len() as u64);
            return;
        };
        std::mem::swap(&mut self.current, &mut pending);
        let own = std::mem::take(&mut pending.input);
        self.reads_own = self.current.input.capacity() == 0;
        match self.reads_own {
            true => self.current.input = own,
            false => self.spare = own,
        }
        if self.boxes.len() < BOXES {
            self.boxes.push(pending);
        }
    }

    /// Ends the turn: what is still under way stays with the connection, bytes that no request has taken in a buffer that fits.
    fn end(&mut self, entry: &mut Entry<Stream<A>>) {
        if !matches!(entry.phase, Phase::Open | Phase::Ending) {
            // Nothing comes of it any more.
            (self.current.request, self.current.reply) = (None, None);
            self.current.replies.clear();
            self.current.is_last = false;
            self.current.output.clear();
            self.current.input.clear();
            self.current.taken = 0;
        }
        if !self.current.is_nothing() {
            let own = if self.reads_own { Vec::new() } else { std::mem::take(&mut self.spare) };
            let mut pending = self.boxes.pop().unwrap_or_else(|| Box::new(Pending::new()));
            pending.input = own;
            std::mem::swap(&mut self.current, &mut pending);
            if pending.unparsed().is_empty() {
                self.keep(&mut pending);
            } else if self.reads_own {
                let rest = pending.unparsed().to_vec();
                self.keep(&mut pending);
                pending.input = rest;
            }
            entry.stream.pending = Some(pending);
        } else if !self.reads_own {
            self.current.input = std::mem::take(&mut self.spare);
        }
        // Of a request only a part of which is there, more is known.
        (self.current.taken, self.current.needed) = (0, 0);
        self.reads_own = true;
        self.current.input.clear();
        self.current.input.shrink_to(2 * PIECE);
    }

    /// Takes the buffer for input back, if it is the lane's.
    fn keep(&mut self, pending: &mut Pending<A>) {
        let input = std::mem::take(&mut pending.input);
        pending.taken = 0;
        if self.reads_own {
            self.current.input = input;
        }
    }
}

/// Requests of one connection that are handled apart at a time.
fn under_way<A: Application>() -> usize {
    if A::SERIAL { 1 } else { UNDER_WAY }
}

/// Writes to the connection; how much, which may be nothing.
fn write(tcp: &mut Connection, bytes: &[u8], now: Time) -> Result<usize, ()> {
    match tcp.write(bytes, now) {
        Ok(written) => Ok(written),
        Err(rheostat_tcp::WriteError::Blocked) => Ok(0),
        Err(rheostat_tcp::WriteError::Closed) => Err(()),
    }
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
