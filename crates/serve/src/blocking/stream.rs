//! A connection for threads.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::hub::Hub;
use super::pipe::Pipe;

/// A connection that calls wait for, as [`std::net::TcpStream`]. One thread may read while another writes: `&BlockingStream` is
/// [`Read`] and [`Write`], too, and [`BlockingStream::try_clone`] gives the same connection.
///
/// When the last of its clones is dropped, the connection finishes behind what was written. If something is unread then, it is reset
/// at once, without what was written and not sent; if more arrives later, it is reset then.
#[derive(Debug)]
pub struct BlockingStream {
    shared: Arc<Held>,
}

/// What clones have in common.
#[derive(Debug)]
struct Held {
    hub: Arc<Hub>,
    pipe: Arc<Pipe>,
    /// Nanoseconds; 0 for no bound.
    read_timeout: AtomicU64,
    write_timeout: AtomicU64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pipe.let_go(&self.hub);
    }
}

impl BlockingStream {
    pub(super) fn new(hub: Arc<Hub>, pipe: Arc<Pipe>) -> BlockingStream {
        let timeout = || AtomicU64::new(0);
        let (read_timeout, write_timeout) = (timeout(), timeout());
        BlockingStream { shared: Arc::new(Held { hub, pipe, read_timeout, write_timeout }) }
    }

    /// The address at this end.
    ///
    /// # Errors
    /// Never after the connection is established.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.pipe.local().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.pipe.peer()
    }

    /// The same connection once more.
    ///
    /// # Errors
    /// Never; as in [`std::net::TcpStream::try_clone`].
    pub fn try_clone(&self) -> io::Result<BlockingStream> {
        Ok(BlockingStream { shared: self.shared.clone() })
    }

    /// How long a read waits at most; for ever without.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for no time at all.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        set(&self.shared.read_timeout, timeout)
    }

    /// How long a write waits at most; for ever without.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for no time at all.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        set(&self.shared.write_timeout, timeout)
    }

    /// Ends reads (`Read`, `Both`), those of other threads that wait too: they return no bytes. What is unread, and what the peer
    /// sends from now on, is acknowledged and discarded. Sends the end behind what was written (`Write`, `Both`).
    ///
    /// # Errors
    /// When the connection has ended and its end was to be sent.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let Held { hub, pipe, .. } = &*self.shared;
        if how != Shutdown::Write {
            pipe.end_reads(hub);
        }
        if how != Shutdown::Read {
            pipe.finish(hub)?;
        }
        Ok(())
    }
}

fn set(timeout: &AtomicU64, to: Option<Duration>) -> io::Result<()> {
    if to.is_some_and(|to| to.is_zero()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let nanoseconds = to.map_or(0, |to| u64::try_from(to.as_nanos()).unwrap_or(u64::MAX));
    timeout.store(nanoseconds, Ordering::Relaxed);
    Ok(())
}

fn get(timeout: &AtomicU64) -> Option<Duration> {
    let nanoseconds = timeout.load(Ordering::Relaxed);
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

impl Read for &BlockingStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Held { hub, pipe, read_timeout, .. } = &*self.shared;
        Ok(pipe.read(out, get(read_timeout), hub)?)
    }
}

impl Write for &BlockingStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let Held { hub, pipe, write_timeout, .. } = &*self.shared;
        Ok(pipe.write(data, get(write_timeout), hub)?)
    }

    /// What was written is with the lane already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for BlockingStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(out)
    }
}

impl Write for BlockingStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
