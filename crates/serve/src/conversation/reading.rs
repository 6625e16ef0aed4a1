//! Bytes of a connection become requests.

use rheostat_base::Time;
use rheostat_tcp::Connection;

use super::stream::Pending;
use super::{Conversations, Stream};
use crate::application::{Application, Parsed};
use crate::entry::{Entry, Phase};

/// Bytes read beyond those that a request is known to take.
const PIECE: usize = 64 << 10;
/// Boxes kept for connections on which something is under way.
const BOXES: usize = 64;

/// What came of looking for a request.
pub(super) enum Next<A: Application> {
    None,
    Request(A::Request, u8),
    Refused(A::Reply),
    Broken,
}

impl<A: Application> Conversations<A> {
    /// The next request, if all of it has arrived.
    pub(super) fn next_request(&mut self, entry: &mut Entry<Stream<A>>, now: Time) -> Next<A> {
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
    pub(super) fn begin(&mut self, stream: &mut Stream<A>) {
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
    pub(super) fn end(&mut self, entry: &mut Entry<Stream<A>>) {
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
