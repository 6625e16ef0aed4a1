//! The thread that receives replies, and opens connections that have ended again.

use std::fmt;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::error::LoadError;
use crate::ledger::Ledger;
use crate::link::{LoadLink, lock};
use crate::protocol::{Progress, Protocol, Reading};
use crate::socket;

/// Events taken at once.
const EVENTS: usize = 256;
/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// How long it waits for events at most.
const TICK: Duration = Duration::from_millis(5);
/// How long a connection that brought nothing waits before it is opened again, and a server may take to end one it said it ends.
const PAUSE: u64 = 100_000_000;
/// How long no connection may be open.
const GONE: Duration = Duration::from_secs(3);

/// How connections ended, and what of it was noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Closed by the server.
    pub closed: u64,
    /// Reset.
    pub reset: u64,
    /// Not accepted again.
    pub refused: u64,
    /// Closed here because of what the server said.
    pub garbage: u64,
    /// Opened again.
    pub reopened: u64,
}

impl Ends {
    /// What came since `before`.
    pub(crate) fn since(self, before: Ends) -> Ends {
        Ends {
            closed: self.closed - before.closed,
            reset: self.reset - before.reset,
            refused: self.refused - before.refused,
            garbage: self.garbage - before.garbage,
            reopened: self.reopened - before.reopened,
        }
    }

    pub(crate) fn add(&mut self, other: Ends) {
        self.closed += other.closed;
        self.reset += other.reset;
        self.refused += other.refused;
        self.garbage += other.garbage;
        self.reopened += other.reopened;
    }
}

/// The receiving ends of all connections.
pub(crate) struct LoadReceiver {
    epoll: OwnedFd,
    epoch: Instant,
    server: SocketAddr,
    protocol: Protocol,
    ends: Vec<ReceiverEnd>,
    events: Vec<epoll::Event>,
    piece: Vec<u8>,
    pub(crate) counts: Ends,
    /// Whether there ever was a reply.
    has_answered: bool,
    last_garbage: Option<&'static str>,
    last_refusal: Option<String>,
    none_open_since: Option<Instant>,
}

/// The receiving end of a connection.
#[derive(Debug)]
struct ReceiverEnd {
    state: ReceiverState,
    port: Option<u16>,
    /// What was received and is no whole reply yet.
    bytes: Vec<u8>,
    /// When to look at it again.
    needed: usize,
    /// What is known of the reply that begins there.
    reading: Reading,
    replies: u64,
}

#[derive(Debug)]
enum ReceiverState {
    Opening(TcpStream),
    Open(Arc<TcpStream>),
    /// The server said that it ends the connection.
    Ending(Arc<TcpStream>, u64),
    /// To be opened again, not before this moment.
    Down(u64),
}

/// Why a connection ends.
enum ReceiverCause {
    Closed,
    Reset,
    Garbage(&'static str),
}

impl fmt::Debug for LoadReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("server", &self.server)
            .field("ends", &self.ends)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl LoadReceiver {
    /// Takes connections that are open, each with the port it has to have, if any.
    pub(crate) fn new(
        server: SocketAddr,
        protocol: Protocol,
        epoch: Instant,
        streams: Vec<(TcpStream, Option<u16>)>,
        links: &[Mutex<LoadLink>],
    ) -> Result<LoadReceiver, LoadError> {
        let wrong = |source| LoadError::Socket { task: "watch connections", source };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| wrong(error.into()))?;
        let mut ends = Vec::with_capacity(streams.len());
        for (number, (stream, port)) in streams.into_iter().enumerate() {
            let data = EventData::new_u64(number as u64);
            epoll::add(&epoll, &stream, data, EventFlags::IN)
                .map_err(|error| wrong(error.into()))?;
            let stream = Arc::new(stream);
            lock(&links[number]).open(stream.clone());
            let state = ReceiverState::Open(stream);
            ends.push(ReceiverEnd {
                state,
                port,
                bytes: Vec::new(),
                needed: 0,
                reading: Reading::default(),
                replies: 0,
            });
        }
        Ok(LoadReceiver {
            epoll,
            epoch,
            server,
            protocol,
            ends,
            events: Vec::with_capacity(EVENTS),
            piece: vec![0; PIECE],
            counts: Ends::default(),
            has_answered: false,
            last_garbage: None,
            last_refusal: None,
            none_open_since: None,
        })
    }

    /// Receives until the sender is done and everything is answered, or for `wait` longer. An error ends it, and sets `over`.
    pub(crate) fn run(
        &mut self,
        links: &[Mutex<LoadLink>],
        ledgers: &mut [Ledger; 2],
        sender_done: &AtomicBool,
        over: &AtomicBool,
        wait: Duration,
    ) -> Option<LoadError> {
        let mut done_at = None;
        loop {
            if let Err(error) = self.poll(links, ledgers) {
                // Relaxed: nothing is read that was written before.
                over.store(true, Ordering::Relaxed);
                return Some(error);
            }
            // Acquire: pairs with the Release behind the sender's last request, which is among those expected then.
            if sender_done.load(Ordering::Acquire) {
                let since = *done_at.get_or_insert_with(Instant::now);
                let is_answered = || links.iter().all(|link| lock(link).expected.is_empty());
                if since.elapsed() >= wait || is_answered() {
                    return None;
                }
            }
        }
    }

    fn poll(
        &mut self,
        links: &[Mutex<LoadLink>],
        ledgers: &mut [Ledger; 2],
    ) -> Result<(), LoadError> {
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        self.events.clear();
        let events = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, events, Some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                return Err(LoadError::Socket { task: "wait for replies", source: error.into() });
            }
        }
        let events = std::mem::take(&mut self.events);
        for event in &events {
            let number = event.data.u64() as usize;
            match self.ends.get(number).map(|end| &end.state) {
                Some(ReceiverState::Opening(_)) => self.opened(number, &links[number]),
                Some(ReceiverState::Open(stream) | ReceiverState::Ending(stream, _)) => {
                    let stream = stream.clone();
                    self.read(number, &stream, &links[number], ledgers);
                }
                Some(ReceiverState::Down(_)) | None => {}
            }
        }
        self.events = events;
        self.reopen(links);
        self.check()
    }

    /// Reads what there is on a connection.
    fn read(
        &mut self,
        number: usize,
        mut stream: &TcpStream,
        link: &Mutex<LoadLink>,
        ledgers: &mut [Ledger; 2],
    ) {
        let mut piece = std::mem::take(&mut self.piece);
        let outcome = stream.read(&mut piece);
        let at = self.now();
        let cause = match outcome {
            Ok(0) => self
                .take(number, &[], true, at, link, ledgers)
                .err()
                .or(Some(ReceiverCause::Closed)),
            Ok(count) => self.take(number, &piece[..count], false, at, link, ledgers).err(),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => None,
                _ => Some(ReceiverCause::Reset),
            },
        };
        self.piece = piece;
        if let Some(cause) = cause {
            self.end(number, cause, link, ledgers);
        }
    }

    /// Takes the replies from what was received.
    fn take(
        &mut self,
        number: usize,
        bytes: &[u8],
        ended: bool,
        at: u64,
        link: &Mutex<LoadLink>,
        ledgers: &mut [Ledger; 2],
    ) -> Result<(), ReceiverCause> {
        let end = &mut self.ends[number];
        end.bytes.extend_from_slice(bytes);
        let mut link = lock(link);
        let mut start = 0;
        while start < end.bytes.len() && (ended || end.bytes.len() - start >= end.needed) {
            let Some(expected) = link.expected.front().copied() else {
                if ended || matches!(end.state, ReceiverState::Ending(..)) {
                    break;
                }
                return Err(ReceiverCause::Garbage("there is more than was asked for"));
            };
            let bytes = &end.bytes[start..];
            match self.protocol.parse(expected.number, bytes, ended, &mut end.reading) {
                Progress::Whole(len, reply) => {
                    link.expected.pop_front();
                    ledgers.iter_mut().for_each(|ledger| ledger.reply(&expected, &reply, at));
                    (start, end.needed) = (start + len, 0);
                    end.reading = Reading::default();
                    end.replies += 1;
                    self.has_answered = true;
                    if let (true, ReceiverState::Open(stream)) = (reply.closes, &end.state) {
                        end.state = ReceiverState::Ending(stream.clone(), at + PAUSE);
                        link.close();
                    }
                }
                Progress::Need(needed) => {
                    end.needed = needed;
                    break;
                }
                Progress::Garbage(what) => return Err(ReceiverCause::Garbage(what)),
            }
        }
        end.bytes.drain(..start);
        Ok(())
    }

    /// Ends a connection: what it still owed is lost.
    fn end(
        &mut self,
        number: usize,
        cause: ReceiverCause,
        link: &Mutex<LoadLink>,
        ledgers: &mut [Ledger; 2],
    ) {
        match cause {
            ReceiverCause::Closed => self.counts.closed += 1,
            ReceiverCause::Reset => self.counts.reset += 1,
            ReceiverCause::Garbage(what) => {
                self.counts.garbage += 1;
                self.last_garbage = Some(what);
            }
        }
        let mut link = lock(link);
        link.close();
        for expected in link.expected.drain(..) {
            ledgers.iter_mut().for_each(|ledger| ledger.lost(&expected));
        }
        let now = self.now();
        let end = &mut self.ends[number];
        let pause = if end.replies > 0 { 0 } else { PAUSE };
        end.state = ReceiverState::Down(now + pause);
        end.bytes.clear();
        (end.needed, end.reading, end.replies) = (0, Reading::default(), 0);
    }

    /// A connection that was being opened is there, or not.
    fn opened(&mut self, number: usize, link: &Mutex<LoadLink>) {
        let again = self.now() + PAUSE;
        let end = &mut self.ends[number];
        let ReceiverState::Opening(stream) =
            std::mem::replace(&mut end.state, ReceiverState::Down(again))
        else {
            return;
        };
        let data = EventData::new_u64(number as u64);
        let ready = socket::finish(&stream).and_then(|()| {
            epoll::modify(&self.epoll, &stream, data, EventFlags::IN).map_err(io::Error::from)
        });
        match ready {
            Ok(()) => {
                let stream = Arc::new(stream);
                lock(link).open(stream.clone());
                end.state = ReceiverState::Open(stream);
                self.counts.reopened += 1;
            }
            Err(error) => {
                self.counts.refused += 1;
                self.last_refusal = Some(error.to_string());
            }
        }
    }

    /// Opens connections again that are down, and ends those that the server does not end.
    fn reopen(&mut self, links: &[Mutex<LoadLink>]) {
        let now = self.now();
        let mut open = 0;
        for (number, end) in self.ends.iter_mut().enumerate() {
            match &end.state {
                ReceiverState::Ending(_, by) if now >= *by => {
                    self.counts.closed += 1;
                    lock(&links[number]).close();
                    end.bytes.clear();
                    (end.needed, end.reading, end.replies) = (0, Reading::default(), 0);
                    end.state = ReceiverState::Down(now);
                }
                ReceiverState::Down(from) if now >= *from => {
                    let begun = socket::begin(self.server, end.port).and_then(|stream| {
                        let data = EventData::new_u64(number as u64);
                        epoll::add(&self.epoll, &stream, data, EventFlags::OUT)?;
                        Ok(stream)
                    });
                    match begun {
                        Ok(stream) => end.state = ReceiverState::Opening(stream),
                        Err(error) => {
                            self.counts.refused += 1;
                            self.last_refusal = Some(error.to_string());
                            end.state = ReceiverState::Down(now + PAUSE);
                        }
                    }
                }
                ReceiverState::Open(stream) => {
                    open += 1;
                    // The sender met an error: what it was, reading shows.
                    if !lock(&links[number]).is_open() {
                        let _ = stream.shutdown(std::net::Shutdown::Both);
                    }
                }
                ReceiverState::Ending(..) => open += 1,
                ReceiverState::Opening(_) | ReceiverState::Down(_) => {}
            }
        }
        // Connections that end without an answer, again and again, are of no use either.
        let is_useful = open > 0 && (self.has_answered || self.counts == Ends::default());
        self.none_open_since = match is_useful {
            true => None,
            false => self.none_open_since.or_else(|| Some(Instant::now())),
        };
    }

    /// Gives up when no connection has been of use for long.
    fn check(&self) -> Result<(), LoadError> {
        let Some(since) = self.none_open_since.filter(|since| since.elapsed() > GONE) else {
            return Ok(());
        };
        let (server, protocol) = (self.server, self.protocol.name());
        Err(match (self.has_answered, self.last_garbage, &self.last_refusal) {
            (false, Some(what), _) => LoadError::Garbage { server, protocol, what },
            (false, None, None) => LoadError::Closed { server, protocol },
            (_, _, reason) => LoadError::Gone {
                server,
                for_how_long: since.elapsed(),
                reason: reason.clone().unwrap_or_else(|| "it was closed".to_owned()),
            },
        })
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}
