//! Replies become bytes of a connection.

use rheostat_base::Time;
use rheostat_tcp::Connection;

use super::{Conversations, Stream};
use crate::application::{Application, Encoded, ReplyBuffer};
use crate::entry::{Entry, Phase};
use crate::times::RequestStage;

/// Bytes of a reply that are encoded in one go.
const PIECE: usize = 64 << 10;
/// Bytes encoded for one connection in a row, before other connections have their turn.
const ROW: usize = 4 * PIECE;

/// How writing went on.
pub(super) enum Written {
    All,
    /// There is more to write, after other connections had their turn.
    Again,
    /// There is more to write, once there is room.
    Blocked,
    Broken,
}

impl<A: Application> Conversations<A> {
    /// Writes what was said, as far as the send buffer has room.
    pub(super) fn write(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Written {
        let Entry { tcp, stream, active, phase, .. } = entry;
        let mut row = 0;
        loop {
            if !self.current.output.is_empty() {
                let Ok(written) = write(tcp, self.current.output.left(), now) else {
                    return Written::Broken;
                };
                self.note_written(written, active, now);
                self.current.output.advance(written);
                if !self.current.output.is_empty() {
                    return Written::Blocked;
                }
            }
            if self.current.reply.is_none()
                && let Some((reply, timed)) = self.current.replies.pop()
            {
                (self.current.reply, self.current.timed) = (Some(reply), timed);
                if let Some(times) = &self.times {
                    times.end(&mut self.current.timed, RequestStage::Turn);
                }
            }
            let (Some(reply), Some(conn)) = (&mut self.current.reply, &mut stream.conn) else {
                return Written::All;
            };
            let room = tcp.useful_room();
            if room == 0 {
                return Written::Blocked;
            }
            if row >= ROW {
                return Written::Again;
            }
            self.piece.clear();
            let most = self.shared.limits().reply_memory;
            let mut out = ReplyBuffer::new(&mut self.piece, room.min(PIECE), most);
            let encoded = self.app.encode(conn, reply, &mut out);
            if out.is_exceeded() {
                self.piece = Vec::new();
                self.counters.replies_refused.increment();
                let error = self.app.too_large().filter(|_| !self.current.has_begun);
                if error.is_none() {
                    return Written::Broken;
                }
                // An error reply that is too large itself resets the connection.
                (self.current.reply, self.current.has_begun) = (error, true);
                continue;
            }
            self.current.has_begun = encoded == Encoded::More;
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
            if encoded != Encoded::More
                && let Some(times) = &mut self.times
            {
                times.encoded(self.current.timed.take());
            }
            let Ok(written) = write(tcp, &self.piece, now) else { return Written::Broken };
            self.note_written(written, active, now);
            row += self.piece.len();
            self.current.output.take(&mut self.piece, written);
        }
    }

    /// The reply, or the error reply in place of one that takes more memory than it may.
    pub(super) fn bounded(&self, reply: A::Reply) -> Option<A::Reply> {
        if self.app.reply_memory(&reply) <= self.shared.limits().reply_memory {
            return Some(reply);
        }
        self.counters.replies_refused.increment();
        self.app.too_large()
    }

    fn note_written(&self, bytes: usize, active: &mut Time, now: Time) {
        self.counters.bytes_out.add(bytes as u64);
        if bytes > 0 {
            *active = now;
        }
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
