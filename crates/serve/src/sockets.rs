//! Connections of a shard, as a handler reads and writes them.

use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;

use rheostat_base::Time;
use rheostat_tcp::{Info, ReadError, WriteError};

use crate::connections::{ConnectionId, Connections, Found};
use crate::connector::ConnectError;
use crate::counters::Counters;
use crate::driver::Surroundings;
use crate::ends::Ends;
use crate::entry::{Entry, Phase};
use crate::readiness::Watched;

/// The connections of one shard while a handler runs. Calls never block and make no system call; what is written leaves when the
/// handler returns. Each costs a constant time, and the copying.
///
/// A connection is named by its id. Of one that is gone, everything is [`ReadError::Closed`], [`WriteError::Closed`], or nothing.
pub struct Sockets<'a, T> {
    pub(crate) connections: &'a mut Connections<Watched<T>>,
    pub(crate) around: &'a mut Surroundings,
    pub(crate) counters: &'a Counters,
    /// The slot whose turn it is.
    pub(crate) current: u32,
}

impl<T> Sockets<'_, T> {
    /// The time, as of the packet or timeout at hand.
    pub fn now(&self) -> Time {
        self.around.now
    }

    /// The user data of a connection.
    pub fn data(&mut self, id: ConnectionId) -> Option<&mut T> {
        self.connections.live_mut(id)?.stream.data.as_mut()
    }

    /// Our address, and the peer's.
    pub fn addresses(&mut self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        let Ends { local, remote } = Ends::of(&self.connections.live_mut(id)?.key);
        Some((local, remote))
    }

    /// Figures of a connection.
    pub fn info(&mut self, id: ConnectionId) -> Option<Info> {
        Some(self.connections.live_mut(id)?.tcp.info())
    }

    /// Opens a connection to `remote`. It belongs to the same shard, and stays with the other connections of it wherever that
    /// moves. [`SocketEvent::Connected`](crate::SocketEvent::Connected) or a close reports how it went; what is written before is
    /// sent then.
    ///
    /// # Errors
    /// [`ConnectError`] when there can be no such connection.
    pub fn connect(&mut self, remote: SocketAddr, data: T) -> Result<ConnectionId, ConnectError> {
        let Surroundings { egress, listeners, connector, now, touched, .. } = &mut *self.around;
        let stream = Watched::of(data);
        let ways = (&*egress, listeners);
        let opened = connector.open(remote, stream, self.connections, ways, *now);
        let slot = opened.inspect_err(|error| {
            self.counters.connect_failed.increment();
            if let ConnectError::PortsExhausted(_) = error {
                self.counters.ports_exhausted.increment();
            }
        })?;
        self.counters.active_opens.increment();
        touched.push(slot);
        Ok(self.connections.id(slot))
    }

    /// Reads what has arrived; none at the end of what the peer has sent.
    ///
    /// # Errors
    /// [`ReadError`] when nothing can be read.
    pub fn read(&mut self, id: ConnectionId, out: &mut [u8]) -> Result<usize, ReadError> {
        self.read_vectored(id, &mut [IoSliceMut::new(out)])
    }

    /// As [`Sockets::read`], into several buffers in turn.
    ///
    /// # Errors
    /// [`ReadError`] when nothing can be read.
    pub fn read_vectored(
        &mut self,
        id: ConnectionId,
        out: &mut [IoSliceMut<'_>],
    ) -> Result<usize, ReadError> {
        let entry = self.connections.live_mut(id).ok_or(ReadError::Closed)?;
        let mut total = 0;
        for buffer in out.iter_mut().filter(|buffer| !buffer.is_empty()) {
            match entry.tcp.read(buffer) {
                Ok(read) => total += read,
                Err(error) if total == 0 => return Err(error),
                Err(_) => {}
            }
            if entry.tcp.info().unread == 0 {
                break;
            }
        }
        self.counters.bytes_in.add(total as u64);
        self.touch(id);
        Ok(total)
    }

    /// What has arrived and was not read, where it lies: in two pieces at most, in order.
    pub fn peek(&mut self, id: ConnectionId) -> [&[u8]; 2] {
        match self.connections.live_mut(id) {
            Some(entry) => entry.tcp.peek(),
            None => [&[], &[]],
        }
    }

    /// Takes as many bytes of [`Sockets::peek`] as read; returns how many there were of them.
    pub fn skip(&mut self, id: ConnectionId, bytes: usize) -> usize {
        let Some(entry) = self.connections.live_mut(id) else { return 0 };
        let skipped = entry.tcp.skip(bytes);
        self.counters.bytes_in.add(skipped as u64);
        self.touch(id);
        skipped
    }

    /// Whether the peer has sent all that it had to send, and all of it was read.
    pub fn is_at_end(&mut self, id: ConnectionId) -> bool {
        let entry = self.connections.live_mut(id);
        entry.is_some_and(|entry| entry.tcp.has_peer_finished() && entry.tcp.info().unread == 0)
    }

    /// Takes as much of `data` as there is room for, to be sent, and returns how much that is. After less than all,
    /// [`SocketEvent::Writable`](crate::SocketEvent::Writable) comes when there is room again.
    ///
    /// # Errors
    /// [`WriteError`] when nothing can be written.
    pub fn write(&mut self, id: ConnectionId, data: &[u8]) -> Result<usize, WriteError> {
        self.write_vectored(id, &[IoSlice::new(data)])
    }

    /// As [`Sockets::write`], from several buffers in turn.
    ///
    /// # Errors
    /// [`WriteError`] when nothing can be written.
    pub fn write_vectored(
        &mut self,
        id: ConnectionId,
        data: &[IoSlice<'_>],
    ) -> Result<usize, WriteError> {
        let now = self.around.now;
        let entry = self.connections.live_mut(id).ok_or(WriteError::Closed)?;
        let mut total = 0;
        for piece in data.iter().filter(|piece| !piece.is_empty()) {
            match entry.tcp.write(piece, now) {
                Ok(written) => total += written,
                Err(error) if total == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if total > 0 {
            entry.active = now;
        }
        self.counters.bytes_out.add(total as u64);
        self.touch(id);
        Ok(total)
    }

    /// Moves what has arrived on `from` to what `to` sends, as far as there is room there, with one copy; returns how many bytes.
    /// When that was not all, [`SocketEvent::Writable`](crate::SocketEvent::Writable) comes for `to`.
    ///
    /// # Errors
    /// [`WriteError::Closed`] when `to` takes nothing any more, or one of them is gone.
    pub fn transfer(&mut self, from: ConnectionId, to: ConnectionId) -> Result<usize, WriteError> {
        let now = self.around.now;
        let pair = self.connections.pair_mut([from, to]).ok_or(WriteError::Closed)?;
        let [source, sink] = pair;
        let mut total = 0;
        for piece in source.tcp.peek().into_iter().filter(|piece| !piece.is_empty()) {
            match sink.tcp.write(piece, now) {
                Ok(written) => total += written,
                Err(WriteError::Closed) => return Err(WriteError::Closed),
                Err(WriteError::Blocked) => break,
            }
        }
        if total > 0 {
            source.tcp.skip(total);
            sink.active = now;
            self.counters.bytes_in.add(total as u64);
            self.counters.bytes_out.add(total as u64);
            self.touch(from);
            self.touch(to);
        }
        Ok(total)
    }

    /// Sends the end behind what was written. What the peer sends can still be read (half close).
    pub fn finish(&mut self, id: ConnectionId) {
        let now = self.around.now;
        self.with(id, |entry| entry.tcp.finish(now));
    }

    /// Finishes, and wants no more data: with unread bytes, or when more arrive, the connection is reset.
    pub fn close(&mut self, id: ConnectionId) {
        let now = self.around.now;
        self.with(id, |entry| {
            entry.stream.is_closed = true;
            entry.tcp.close(now);
        });
    }

    /// Resets the connection.
    pub fn abort(&mut self, id: ConnectionId) {
        self.with(id, |entry| {
            entry.stream.is_closed = true;
            entry.tcp.abort();
        });
    }

    /// Has [`SocketEvent::Woken`](crate::SocketEvent::Woken) come for a connection, after others had their turn.
    pub fn wake(&mut self, id: ConnectionId) {
        let Some(entry) = self.connections.live_mut(id) else { return };
        if entry.phase == Phase::Done {
            return;
        }
        entry.stream.is_woken = true;
        self.connections.arm(id.slot, Time::ZERO);
        self.around.due.note(id.shard, Time::ZERO);
    }

    fn with(&mut self, id: ConnectionId, call: impl FnOnce(&mut Entry<Watched<T>>)) {
        if let Some(entry) = self.connections.live_mut(id) {
            call(entry);
            self.touch(id);
        }
    }

    /// Lets a connection send what it has to, when the handler is done. The one whose turn it is does so anyway.
    fn touch(&mut self, id: ConnectionId) {
        if id.slot == self.current {
            return;
        }
        if let Found::Live(slot, entry) = self.connections.get(id.slot)
            && !std::mem::replace(&mut entry.stream.is_touched, true)
        {
            self.around.touched.push(slot);
        }
    }
}

impl<T> std::fmt::Debug for Sockets<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").field("now", &self.around.now).finish_non_exhaustive()
    }
}
