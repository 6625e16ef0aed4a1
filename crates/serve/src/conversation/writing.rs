//! Replies become bytes of a connection.

use rheostat_base::Time;
use rheostat_tcp::Connection;

use super::{Conversations, Stream};
use crate::application::{Application, Encoded, ReplyBuffer};
use crate::entry::{Entry, Phase};
use crate::times::RequestStage;

/// Bytes of a reply that are encoded in one go.
const PIECE: usize = 64 << 10;

/// How writing went on.
pub(super) enum Written {
    All,
    Blocked,
    Broken,
}

impl<A: Application> Conversations<A> {
    /// Writes what was said, as far as the send buffer has room.
    pub(super) fn write(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Written {
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
            if encoded != Encoded::More
                && let Some(times) = &mut self.times
            {
                times.encoded(self.current.timed.take());
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
}

/// Writes to the connection; how much, which may be nothing.
fn write(tcp: &mut Connection, bytes: &[u8], now: Time) -> Result<usize, ()> {
    match tcp.write(bytes, now) {
        Ok(written) => Ok(written),
        Err(rheostat_tcp::WriteError::Blocked) => Ok(0),
        Err(rheostat_tcp::WriteError::Closed) => Err(()),
    }
}
