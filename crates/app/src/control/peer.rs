//! The running instance's end of one connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rheostat_observe::control::{self, LONGEST_REQUEST, Reply};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv, sockopt::socket_peercred};
use rustix::process::geteuid;

/// How often a waiting connection looks whether the run has ended.
const GLANCE: Duration = Duration::from_millis(100);
/// How long a client may leave an answer unread before it is given up.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;
/// How long a client may say nothing.
const SILENCE: Duration = Duration::from_secs(300);

/// A client.
#[derive(Debug)]
pub(crate) struct Peer {
    reader: BufReader<UnixStream>,
    over: Arc<AtomicBool>,
}

impl Peer {
    /// Takes a connection; `over` is set when the run ends.
    pub(super) fn new(stream: UnixStream, over: Arc<AtomicBool>) -> io::Result<Peer> {
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Peer { reader: BufReader::new(stream), over })
    }

    /// Whether the client runs under the same user as we do, or as root. The mode of the socket restricts
    /// clients as well, but not those that were passed a descriptor of the socket.
    pub(super) fn is_entitled(&self) -> bool {
        let owner = socket_peercred(self.reader.get_ref()).map(|credentials| credentials.uid);
        owner.is_ok_and(|owner| owner == geteuid() || owner.is_root())
    }

    /// The user that the client runs under, and its process.
    pub(super) fn user_and_process(&self) -> Option<(u32, i32)> {
        let credentials = socket_peercred(self.reader.get_ref()).ok()?;
        Some((credentials.uid.as_raw(), credentials.pid.as_raw_nonzero().get()))
    }

    /// The next line, without its end; `None` when the client has gone, sends nothing for long, or the
    /// run is over. A line that is too long ends the conversation with an error.
    pub(super) fn next_line(&mut self) -> io::Result<Option<String>> {
        let since = Instant::now();
        let mut line = Vec::new();
        loop {
            let room = (LONGEST_REQUEST + 1).saturating_sub(line.len()) as u64;
            match self.reader.by_ref().take(room).read_until(b'\n', &mut line) {
                Ok(0) => return Ok(None),
                Ok(_) if line.ends_with(b"\n") => {
                    line.pop();
                    return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
                }
                Ok(_) if line.len() > LONGEST_REQUEST => {
                    let message = format!("a request has {LONGEST_REQUEST} bytes at most");
                    self.send(&Reply::Error { message })?;
                    return Ok(None);
                }
                // The client's side ended within a line.
                Ok(_) => return Ok(None),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            if self.run_is_over() || since.elapsed() > SILENCE {
                return Ok(None);
            }
        }
    }

    /// The next `count` bytes, which follow a request; `None` when the client has gone, sends nothing for long, or the run is over.
    /// Memory is taken as they come.
    pub(super) fn next_bytes(&mut self, count: u64) -> io::Result<Option<Vec<u8>>> {
        let mut since = Instant::now();
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let room = (count - bytes.len() as u64).min(PIECE) as usize;
            let start = bytes.len();
            bytes.resize(start + room, 0);
            let read = self.reader.read(&mut bytes[start..]);
            bytes.truncate(start + read.as_ref().copied().unwrap_or_default());
            match read {
                Ok(0) => return Ok(None),
                Ok(_) => since = Instant::now(),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            if self.run_is_over() || since.elapsed() > TIMEOUT {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Sends a line. A client that does not read it in time is an error.
    pub(crate) fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.reader.get_mut().write_all(control::line(reply).as_bytes())
    }

    /// Sends lines that were put together, and empties them.
    pub(super) fn send_lines(&mut self, lines: &mut String) -> io::Result<()> {
        if !lines.is_empty() {
            self.reader.get_mut().write_all(lines.as_bytes())?;
            lines.clear();
        }
        Ok(())
    }

    /// Whether the client has closed its side, which ends an answer that goes on.
    pub(crate) fn has_had_enough(&self) -> bool {
        let stream = self.reader.get_ref();
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(stream, &mut [0_u8; 1], flags) {
            Ok((_, received)) => received == 0,
            Err(error) => error != rustix::io::Errno::AGAIN && error != rustix::io::Errno::INTR,
        }
    }

    /// Whether the client has closed its connection and waits for no answer. One that has closed only its sending direction still
    /// waits.
    pub(super) fn has_gone(&self) -> bool {
        let mut stream = [PollFd::new(self.reader.get_ref(), PollFlags::empty())];
        let gone = PollFlags::HUP | PollFlags::ERR;
        poll(&mut stream, Some(&Timespec::default())).is_ok()
            && stream[0].revents().intersects(gone)
    }

    /// Sleeps for `time`. Returns early, within a tenth of a second, when the run ends or the client has gone.
    pub(super) fn pause(&self, time: Duration) {
        let start = Instant::now();
        while !self.run_is_over() && !self.has_gone() {
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(GLANCE));
        }
    }

    /// Whether the run has ended.
    pub(crate) fn run_is_over(&self) -> bool {
        // Relaxed: the flag publishes nothing.
        self.over.load(Ordering::Relaxed)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock, sockets.

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn peer() -> (Peer, UnixStream, Arc<AtomicBool>) {
        let (near, far) = UnixStream::pair().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        (Peer::new(near, over.clone()).unwrap(), far, over)
    }

    #[test]
    fn a_pause_ends_with_the_run_and_when_the_client_goes() {
        let (peer, _client, over) = peer();
        let paused = thread::spawn(move || peer.pause(HOUR));
        over.store(true, Ordering::Relaxed);
        paused.join().unwrap();
        let (peer, client, _over) = self::peer();
        let paused = thread::spawn(move || peer.pause(HOUR));
        drop(client);
        paused.join().unwrap();
    }

    #[test]
    fn bytes_behind_a_line_come_in_pieces_and_what_follows_them_is_the_next_line() {
        let (mut peer, mut client, _over) = peer();
        let sender = thread::spawn(move || {
            let text = vec![b'x'; 200_000];
            client.write_all(b"first\n").unwrap();
            client.write_all(&text).unwrap();
            client.write_all(b"second\nend").unwrap();
        });
        assert_eq!(peer.next_line().unwrap().as_deref(), Some("first"));
        assert_eq!(peer.next_bytes(200_000).unwrap().map(|bytes| bytes.len()), Some(200_000));
        assert_eq!(peer.next_line().unwrap().as_deref(), Some("second"));
        assert_eq!(peer.next_bytes(4).unwrap(), None, "the client has gone");
        sender.join().unwrap();
    }

    #[test]
    fn a_pause_lasts_as_long_as_requested() {
        let (peer, _client, _over) = peer();
        let start = Instant::now();
        peer.pause(Duration::from_millis(150));
        assert!(start.elapsed() >= Duration::from_millis(150));
    }
}
