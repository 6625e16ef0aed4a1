//! What passes between a connection and the application: bytes in, requests, replies, bytes out.

mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rheostat_base::{LaneId, Time};
use rheostat_tcp::Connection;

use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use crate::connections::{Connections, Found};
use crate::counters::Counters;
use crate::driver::{Driver, Surroundings, Turn};
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::shared::Shared;
pub(crate) use stream::Stream;

/// Bytes of a reply that are encoded in one go, and bytes read beyond those that a request is known to take.
const PIECE: usize = 64 << 10;
/// Requests of one connection that are handled in a row, before other connections have their turn.
const ROW: usize = 64;

/// A lane's part in the application.
pub(crate) struct Conversations<A: Application> {
    lane: LaneId,
    app: Arc<A>,
    worker: A::Worker,
    shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    /// A buffer for input, lent to the connection whose turn it is.
    spare: Vec<u8>,
    /// For pieces of replies.
    piece: Vec<u8>,
}

impl<A: Application> Driver for Conversations<A> {
    type Stream = Stream<A>;

    fn accept() -> Stream<A> {
        Stream::new()
    }

    fn allocated(stream: &Stream<A>) -> usize {
        stream.allocated()
    }

    fn advance(
        &mut self,
        slot: u32,
        connections: &mut Connections<Stream<A>>,
        around: &mut Surroundings<'_>,
    ) -> Turn {
        match connections.get(slot) {
            Found::Live(_, entry) => self.advance_entry(entry, around.now),
            _ => Turn::Over,
        }
    }

    /// In good order if nothing is under way.
    fn end_idle(&mut self, entry: &mut Entry<Stream<A>>, _now: Time) {
        match entry.stream.is_idle() {
            true => entry.phase = Phase::Ending,
            false => abort(entry),
        }
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
    Request(A::Request),
    Refused(A::Reply),
    Broken,
}

impl<A: Application> Conversations<A> {
    pub(crate) fn new(lane: LaneId, app: Arc<A>, shared: Arc<Shared>) -> Conversations<A> {
        let worker = app.worker(lane);
        let counters = shared.counters(lane);
        let (spare, piece) = (Vec::new(), Vec::new());
        Conversations { lane, app, worker, shared, counters, spare, piece }
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
        // Whatever it was about is in doubt.
        if let Ok(worker) = catch_unwind(AssertUnwindSafe(|| self.app.worker(self.lane))) {
            self.worker = worker;
        }
    }

    fn go_on(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Turn {
        if entry.phase == Phase::Open && entry.stream.conn.is_none() {
            let peer = Ends::of(&entry.key).remote;
            entry.stream.conn = Some(self.app.accept(peer));
        }
        self.lend(&mut entry.stream);
        let turn = self.converse(entry, now);
        self.take_back(&mut entry.stream);
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
            let request = match entry.stream.request.take() {
                Some(request) => request,
                None => match self.next_request(entry, now) {
                    Next::Request(request) => request,
                    Next::None if self.is_over(entry) => {
                        entry.phase = Phase::Ending;
                        continue;
                    }
                    Next::None => return Turn::Over,
                    Next::Refused(reply) => {
                        self.counters.refused.increment();
                        entry.stream.reply = Some(reply);
                        entry.phase = Phase::Ending;
                        continue;
                    }
                    Next::Broken => {
                        self.counters.refused.increment();
                        abort(entry);
                        return Turn::Over;
                    }
                },
            };
            match self.app.handle(&mut self.worker, request) {
                Handled::Done(reply) => {
                    self.counters.requests.increment();
                    entry.stream.reply = Some(reply);
                }
                Handled::More(request) => {
                    entry.stream.request = Some(request);
                    return Turn::Again;
                }
            }
        }
        Turn::Again
    }

    /// Whether no request will come: the peer has finished, or the run ends and nothing is under way.
    fn is_over(&self, entry: &Entry<Stream<A>>) -> bool {
        entry.peer_finished || self.shared.is_draining() && entry.stream.unparsed().is_empty()
    }

    /// Writes what was said, as far as the send buffer has room.
    fn write(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Written {
        let Entry { tcp, stream, send_buffer, phase, .. } = entry;
        let limit = *send_buffer;
        loop {
            if !stream.output.is_empty() {
                let Ok(written) = write(tcp, &stream.output, now) else { return Written::Broken };
                self.note_written(written, &mut entry.active, now);
                stream.output.drain(..written);
                if !stream.output.is_empty() {
                    return Written::Blocked;
                }
                stream.output = Vec::new();
            }
            let (Some(reply), Some(conn)) = (&mut stream.reply, &mut stream.conn) else {
                return Written::All;
            };
            let waiting = tcp.info().unacknowledged;
            // Not in small pieces: what is unacknowledged will be acknowledged.
            if waiting > limit - limit / 4 {
                return Written::Blocked;
            }
            self.piece.clear();
            let mut out = ReplyBuffer::new(&mut self.piece, (limit - waiting).min(PIECE));
            let encoded = self.app.encode(conn, reply, &mut out);
            match encoded {
                Encoded::Done => stream.reply = None,
                Encoded::Close => {
                    stream.reply = None;
                    *phase = Phase::Ending;
                }
                Encoded::More if !self.piece.is_empty() => {}
                // It would say so for ever.
                Encoded::More | Encoded::Abort => return Written::Broken,
            }
            let Ok(written) = write(tcp, &self.piece, now) else { return Written::Broken };
            self.note_written(written, &mut entry.active, now);
            stream.output.extend_from_slice(&self.piece[written..]);
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
        entry.stream.input = Vec::new();
        (entry.stream.taken, entry.stream.conn) = (0, None);
        entry.phase = Phase::Lingering(until);
    }

    /// The next request, if all of it has arrived.
    fn next_request(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Next<A> {
        let longest = self.shared.limits().longest_request;
        loop {
            let Entry { tcp, stream, .. } = entry;
            let have = stream.unparsed().len();
            if have < stream.needed.max(1) {
                let read = self.read(tcp, stream);
                if read == 0 {
                    return Next::None;
                }
                entry.active = now;
                continue;
            }
            let Some(conn) = &mut stream.conn else { return Next::None };
            match self.app.parse(conn, &stream.input[stream.taken..]) {
                Parsed::Need(more) => {
                    stream.needed = more.max(have + 1);
                    if stream.needed > longest {
                        return Next::Broken;
                    }
                }
                Parsed::Request { request, len, .. } => {
                    stream.taken += len.min(have);
                    stream.needed = 0;
                    return Next::Request(request);
                }
                Parsed::Refuse(reply) => return Next::Refused(reply),
            }
        }
    }

    /// Reads what has arrived: a piece, or as much as the next request takes.
    fn read(&self, tcp: &mut Connection, stream: &mut Stream<A>) -> usize {
        let most = stream.needed.saturating_sub(stream.unparsed().len()).max(PIECE);
        let wanted = tcp.info().unread.min(most);
        if wanted == 0 {
            return 0;
        }
        if stream.taken > 0 {
            stream.input.drain(..stream.taken);
            stream.taken = 0;
        }
        let start = stream.input.len();
        stream.input.resize(start + wanted, 0);
        let read = tcp.read(&mut stream.input[start..]).unwrap_or(0);
        stream.input.truncate(start + read);
        self.counters.bytes_in.add(read as u64);
        read
    }

    /// A connection without input of its own reads into the lane's buffer.
    fn lend(&mut self, stream: &mut Stream<A>) {
        if stream.input.capacity() == 0 {
            std::mem::swap(&mut stream.input, &mut self.spare);
        }
    }

    /// What no request has taken stays with the connection, in a buffer that fits; the lane's comes back.
    fn take_back(&mut self, stream: &mut Stream<A>) {
        if self.spare.capacity() > 0 {
            // It has one of its own.
            if stream.unparsed().is_empty() {
                (stream.input, stream.taken) = (Vec::new(), 0);
            }
            return;
        }
        let rest = match stream.unparsed() {
            [] => Vec::new(),
            rest => rest.to_vec(),
        };
        self.spare = std::mem::replace(&mut stream.input, rest);
        self.spare.clear();
        self.spare.shrink_to(2 * PIECE);
        stream.taken = 0;
    }
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
