//! Bytes of a connection become requests.

use rheostat_base::Time;
use rheostat_tcp::Connection;

use super::stream::Pending;
use super::unwritten::Unwritten;
use super::{Conversations, Stream};
use crate::application::{Application, Parsed};
use crate::entry::{Entry, Phase};

/// Bytes read beyond those that a request is known to take, and where memory is scarce: unread, they close the peer's window.
const PIECE: usize = 64 << 10;
const SCARCE_PIECE: usize = 4 << 10;
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
            let have = self.unparsed().len();
            if have < self.current.needed.max(1) {
                if self.read(tcp) == 0 {
                    return Next::None;
                }
                entry.active = now;
                continue;
            }
            let Some(conn) = &mut stream.conn else { return Next::None };
            let Pending { input, taken, needed, since, .. } = &mut *self.current;
            let input = if self.reads_here { &self.input } else { input };
            match self.app.parse(conn, &input[*taken..]) {
                Parsed::Need(more) => {
                    *needed = more.max(have + 1);
                    *since = (*since).min(now);
                    if *needed > longest {
                        return Next::Broken;
                    }
                }
                Parsed::Request { request, len, class } => {
                    *taken += len.min(have);
                    (*needed, *since) = (0, Time::NEVER);
                    return Next::Request(request, class);
                }
                Parsed::Refuse(reply) => return Next::Refused(reply),
            }
        }
    }

    /// Reads what has arrived: a piece, or as much as the next request takes.
    fn read(&mut self, tcp: &mut Connection) -> usize {
        let Pending { input, taken, needed, .. } = &mut *self.current;
        let input = if self.reads_here { &mut self.input } else { input };
        let is_scarce = tcp.memory().is_some_and(|memory| memory.is_under_pressure());
        let piece = if is_scarce { SCARCE_PIECE } else { PIECE };
        let most = needed.saturating_sub(input.len() - *taken).max(piece);
        let wanted = tcp.unread().min(most);
        if wanted == 0 {
            return 0;
        }
        if *taken > 0 {
            input.drain(..*taken);
            *taken = 0;
        }
        let start = input.len();
        grow(input, start + wanted, *needed);
        input.resize(start + wanted, 0);
        let read = tcp.read(&mut input[start..]).unwrap_or(0);
        input.truncate(start + read);
        self.counters.bytes_in.add(read as u64);
        read
    }

    /// Bytes read that no request has taken.
    pub(super) fn unparsed(&self) -> &[u8] {
        let input = if self.reads_here { &self.input } else { &self.current.input };
        &input[self.current.taken..]
    }

    /// Takes no further bytes of those that were read.
    pub(super) fn forget_input(&mut self) {
        let input = if self.reads_here { &mut self.input } else { &mut self.current.input };
        input.clear();
        self.current.taken = 0;
    }

    /// Begins the turn of a connection: what was under way on it is.
    pub(super) fn begin(&mut self, stream: &mut Stream<A>) {
        let Some(pending) = stream.pending.take() else {
            self.counters.bytes_in.add(self.input.len() as u64);
            return;
        };
        self.reads_here = pending.input.is_empty();
        let nothing = std::mem::replace(&mut self.current, pending);
        if self.boxes.len() < BOXES {
            self.boxes.push(nothing);
        }
    }

    /// Ends the turn: what is still under way stays with the connection, bytes that no request has taken in a buffer that fits.
    pub(super) fn end(&mut self, entry: &mut Entry<Stream<A>>) {
        if !matches!(entry.phase, Phase::Open | Phase::Ending) {
            // Nothing comes of it any more.
            (self.current.request, self.current.reply) = (None, None);
            self.current.replies.clear();
            self.current.is_last = false;
            self.current.output = Unwritten::new();
            self.forget_input();
        }
        let reply = self.current.reply.as_ref();
        self.current.reply_memory = reply.map_or(0, |reply| self.app.reply_memory(reply));
        if self.unparsed().is_empty() {
            if !self.reads_here {
                self.current.input = Vec::new();
            }
            self.current.taken = 0;
        } else if self.reads_here {
            self.current.input = self.unparsed().to_vec();
            self.current.taken = 0;
        }
        if self.current.input.is_empty() && self.current.is_nothing() {
            // Of a request only a part of which is there, more is known.
            (self.current.needed, self.current.since) = (0, Time::NEVER);
        } else {
            let nothing = self.boxes.pop().unwrap_or_else(|| Box::new(Pending::new()));
            entry.stream.pending = Some(std::mem::replace(&mut self.current, nothing));
        }
        self.reads_here = true;
        self.input.clear();
        self.input.shrink_to(2 * PIECE);
    }
}

/// Makes room for `len` bytes of a request that takes at least `needed`: by doubling, but not far beyond the request. So a byte is
/// moved a few times at most, and memory is taken as bytes come, not as a peer announces them.
fn grow(input: &mut Vec<u8>, len: usize, needed: usize) {
    if len > input.capacity() {
        let most = if needed > len { needed.max(len + len / 8) } else { usize::MAX };
        let capacity = (2 * input.capacity()).min(most).max(len);
        input.reserve_exact(capacity - input.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows to `total` bytes, `step` at a time, and returns the bytes that were moved. `needed` is what is known at each length.
    fn moved(total: usize, step: usize, needed: impl Fn(usize) -> usize) -> usize {
        let (mut input, mut moved) = (Vec::new(), 0);
        while input.len() < total {
            let (before, capacity) = (input.len(), input.capacity());
            let len = (before + step).min(total);
            grow(&mut input, len, needed(before));
            input.resize(len, 0);
            assert!(input.capacity() <= 2 * len, "{len}");
            moved += if input.capacity() == capacity { 0 } else { before };
        }
        assert!(needed(0) < total || input.capacity() == total, "{}", input.capacity());
        moved
    }

    #[test]
    fn a_long_request_takes_memory_as_it_comes_and_its_bytes_move_seldom() {
        const TOTAL: usize = 10 << 20;
        assert!(moved(TOTAL, 1_448, |_| TOTAL) < 2 * TOTAL);
        // Only the next word is known, or nothing.
        assert!(moved(TOTAL, 1_448, |have| have + 3_000) < 9 * TOTAL);
        assert!(moved(TOTAL, 1_448, |have| have + 1) < 2 * TOTAL);
    }
}
