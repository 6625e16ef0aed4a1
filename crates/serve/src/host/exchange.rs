//! Requests and replies of one connection, without its socket.

use std::net::SocketAddr;

use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use crate::config::ServeConfig;

/// Bytes of replies that wait for the socket at most, before the last one of them.
const ROOM: usize = 64 << 10;
/// Requests of one connection that are handled before others have their turn.
const REQUESTS: u64 = 64;
/// Capacity that an empty buffer keeps.
const KEPT: usize = 16 << 10;

/// Bytes in, bytes out, and the request at hand.
pub(super) struct Exchange<A: Application> {
    conn: A::Conn,
    input: Vec<u8>,
    /// Bytes of `input` that requests have taken.
    taken: usize,
    /// Bytes that the next look at the input needs.
    need: usize,
    pub(super) output: Vec<u8>,
    /// Bytes of `output` that were sent.
    pub(super) sent: usize,
    step: Step<A>,
    /// Whether the connection ends behind the reply at hand.
    is_ending: bool,
}

/// The state of the request at hand.
enum Step<A: Application> {
    Parsing,
    Handling(A::Request),
    Writing(Writing<A::Reply>),
    /// The connection ends behind the output.
    Over,
}

struct Writing<Reply> {
    reply: Reply,
    /// Whether the connection ends behind it.
    is_last: bool,
    /// Whether no other reply may take its place: a part was written, or it is an error reply already.
    is_begun: bool,
}

/// How far an exchange came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It needs more input.
    Input,
    /// It needs room in the output.
    Room,
    /// It goes on when others had their turn.
    Again,
    /// The connection ends behind the output.
    Close,
    /// The connection is reset.
    Abort,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) requests: u64,
    pub(super) too_large: u64,
}

impl<A: Application> Exchange<A> {
    pub(super) fn new(app: &A, peer: SocketAddr) -> Exchange<A> {
        Exchange {
            conn: app.accept(peer),
            input: Vec::new(),
            taken: 0,
            need: 1,
            output: Vec::new(),
            sent: 0,
            step: Step::Parsing,
            is_ending: false,
        }
    }

    /// Whether input is taken now: there is no request at hand.
    pub(super) fn wants_input(&self) -> bool {
        matches!(self.step, Step::Parsing)
    }

    /// Whether a request has begun to arrive.
    pub(super) fn is_arriving(&self) -> bool {
        self.wants_input() && self.taken < self.input.len()
    }

    /// Whether nothing is under way but perhaps a part of a request.
    pub(super) fn is_idle(&self) -> bool {
        self.wants_input() && !self.has_output()
    }

    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self, app: &A) -> usize {
        let reply = match &self.step {
            Step::Writing(writing) => app.reply_memory(&writing.reply),
            _ => 0,
        };
        self.input.capacity() + self.output.capacity() + reply
    }

    /// Has the connection end behind the reply at hand, if there is one.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    /// Has the connection end with the application's last reply to a request that arrives too slowly. `false` if it has none.
    pub(super) fn time_out(&mut self, app: &A) -> bool {
        let Some(reply) = app.time_out(&mut self.conn) else { return false };
        self.step = Step::Writing(Writing { reply, is_last: true, is_begun: false });
        true
    }

    /// Forgets what was sent and taken.
    pub(super) fn compact(&mut self) {
        if !self.has_output() {
            self.output.clear();
            self.sent = 0;
            if self.output.capacity() > KEPT {
                self.output = Vec::new();
            }
        }
        self.input.drain(..self.taken);
        self.taken = 0;
        if self.input.is_empty() && self.input.capacity() > KEPT {
            self.input = Vec::new();
        }
    }

    /// Goes on until input or room is missing, or others are to have their turn.
    pub(super) fn advance(
        &mut self,
        app: &A,
        worker: &mut A::Worker,
        limits: &ServeConfig,
        done: &mut Done,
    ) -> Turn {
        loop {
            let turn = match std::mem::replace(&mut self.step, Step::Over) {
                Step::Over => Some(Turn::Close),
                Step::Parsing if self.is_ending => Some(Turn::Close),
                Step::Parsing if done.requests >= REQUESTS => {
                    self.step = Step::Parsing;
                    Some(Turn::Again)
                }
                Step::Parsing => self.parse(app, limits),
                Step::Handling(request) => {
                    let handled = app.handle(worker, request);
                    self.note_handled(handled, done)
                }
                Step::Writing(writing) => self.write(app, writing, limits, done),
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    fn parse(&mut self, app: &A, limits: &ServeConfig) -> Option<Turn> {
        let bytes = &self.input[self.taken..];
        if bytes.is_empty() || bytes.len() < self.need {
            self.step = Step::Parsing;
            return Some(Turn::Input);
        }
        match app.parse(&mut self.conn, bytes) {
            Parsed::Need(need) => {
                self.need = need.max(bytes.len() + 1);
                self.step = Step::Parsing;
                match self.need > limits.longest_request {
                    true => Some(Turn::Abort),
                    false => Some(Turn::Input),
                }
            }
            Parsed::Request { len, .. } if len > bytes.len() => Some(Turn::Abort),
            Parsed::Request { request, len, .. } => {
                self.taken += len;
                self.need = 1;
                self.step = Step::Handling(request);
                None
            }
            Parsed::Refuse(reply) => {
                self.step = Step::Writing(Writing { reply, is_last: true, is_begun: false });
                None
            }
        }
    }

    fn note_handled(
        &mut self,
        handled: Handled<A::Request, A::Reply>,
        done: &mut Done,
    ) -> Option<Turn> {
        match handled {
            Handled::Done(reply) => {
                done.requests += 1;
                self.step = Step::Writing(Writing { reply, is_last: false, is_begun: false });
                None
            }
            Handled::More(request) => {
                self.step = Step::Handling(request);
                Some(Turn::Again)
            }
        }
    }

    fn write(
        &mut self,
        app: &A,
        mut writing: Writing<A::Reply>,
        limits: &ServeConfig,
        done: &mut Done,
    ) -> Option<Turn> {
        let (before, most) = (self.output.len(), limits.reply_memory);
        if before >= ROOM {
            self.step = Step::Writing(writing);
            return Some(Turn::Room);
        }
        let mut is_exceeded = app.reply_memory(&writing.reply) > most;
        let mut encoded = Encoded::Done;
        if !is_exceeded {
            let mut out = ReplyBuffer::new(&mut self.output, ROOM, before.saturating_add(most));
            encoded = app.encode(&mut self.conn, &mut writing.reply, &mut out);
            is_exceeded = out.is_exceeded();
        }
        if is_exceeded {
            self.output.truncate(before);
            done.too_large += 1;
            let Some(reply) = app.too_large().filter(|_| !writing.is_begun) else {
                return Some(Turn::Abort);
            };
            let is_last = writing.is_last;
            self.step = Step::Writing(Writing { reply, is_last, is_begun: true });
            return None;
        }
        match encoded {
            Encoded::Done if !writing.is_last => self.step = Step::Parsing,
            Encoded::Done | Encoded::Close => self.step = Step::Over,
            Encoded::Abort => return Some(Turn::Abort),
            // All the room, and nothing to write: it would never end.
            Encoded::More if self.output.is_empty() => return Some(Turn::Abort),
            Encoded::More => {
                writing.is_begun = true;
                self.step = Step::Writing(writing);
                return Some(Turn::Room);
            }
        }
        None
    }
}
