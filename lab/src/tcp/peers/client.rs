//! The client of all peers: sockets of the kernel, and `epoll`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::delays::delays;
use crate::live::LiveError;
use hdrhistogram::Histogram;

/// Bytes of a request, and of a reply.
pub(super) const REQUEST: usize = 128;
/// Events taken at once.
const EVENTS: usize = 256;
/// How long no reply may come.
const TIMEOUT: Duration = Duration::from_secs(5);

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClientPace {
    /// A new one whenever fewer than so many are under way.
    Saturated { under_way: usize },
    /// So many, whatever is answered, each when it is due.
    PerSecond(u32),
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct ClientOutcome {
    /// Replies, each compared with its request.
    pub(super) replies: u64,
    /// From the moment when a request was due to its reply, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    /// From the moment when a request was due to the call that sends it, in nanoseconds; a part of its latency.
    pub(super) lateness: Histogram<u64>,
}

impl ClientOutcome {
    fn new() -> ClientOutcome {
        ClientOutcome { replies: 0, latency: delays(), lateness: delays() }
    }
}

/// Connections, each of which has one request under way at most.
pub(super) struct PeerClient {
    epoll: OwnedFd,
    connections: Vec<PeerConnection>,
    idle: Vec<u32>,
    random: SmallRng,
    events: Vec<epoll::Event>,
    number: u64,
}

struct PeerConnection {
    stream: TcpStream,
    request: u64,
    due: Instant,
    received: usize,
    reply: [u8; REQUEST],
}

impl PeerClient {
    /// Connects from the calling thread's namespace.
    pub(super) fn connect(to: SocketAddr, count: u32) -> Result<PeerClient, LiveError> {
        let begin = || -> io::Result<PeerClient> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            let mut connections = Vec::with_capacity(count as usize);
            for number in 0..count {
                let stream = TcpStream::connect_timeout(&to, TIMEOUT)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                let data = EventData::new_u64(number.into());
                epoll::add(&epoll, &stream, data, EventFlags::IN)?;
                let (due, reply) = (Instant::now(), [0; REQUEST]);
                connections.push(PeerConnection { stream, request: 0, due, received: 0, reply });
            }
            Ok(PeerClient {
                epoll,
                connections,
                idle: (0..count).collect(),
                random: SmallRng::seed_from_u64(7),
                events: Vec::with_capacity(EVENTS),
                number: 0,
            })
        };
        begin().map_err(|error| LiveError::Socket { task: "connect", error })
    }

    /// Sends for `span`, and waits until all is answered.
    pub(super) fn run(
        &mut self,
        pace: ClientPace,
        span: Duration,
    ) -> Result<ClientOutcome, LiveError> {
        // Refused, waits end up to 50 us late, which the lateness shows.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let run = self.send_and_receive(pace, span);
        // A server that this thread starts later has the slack that it would have elsewhere.
        let _ = set_current_timer_slack(None);
        run.map_err(|error| LiveError::Socket { task: "exchange", error })
    }

    fn send_and_receive(&mut self, pace: ClientPace, span: Duration) -> io::Result<ClientOutcome> {
        let mut outcome = ClientOutcome::new();
        let begin = Instant::now();
        let mut due = begin;
        loop {
            let now = Instant::now();
            let is_over = now >= begin + span;
            let under_way = self.connections.len() - self.idle.len();
            let wait = match pace {
                _ if is_over && under_way == 0 => return Ok(outcome),
                _ if is_over => TIMEOUT,
                ClientPace::Saturated { under_way: wanted } => {
                    for _ in under_way..wanted {
                        self.send(now, &mut outcome)?;
                    }
                    TIMEOUT
                }
                ClientPace::PerSecond(0) => begin + span - now,
                ClientPace::PerSecond(rate) => {
                    while due <= now {
                        self.send(due, &mut outcome)?;
                        due += Duration::from_secs(1) / rate;
                    }
                    due - now
                }
            };
            let count = self.receive(wait, &mut outcome)?;
            if count == 0 && wait == TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Sends a request on an idle connection chosen uniformly; none when all wait for replies.
    fn send(&mut self, due: Instant, outcome: &mut ClientOutcome) -> io::Result<()> {
        if self.idle.is_empty() {
            return Ok(());
        }
        let at = self.random.random_range(0..self.idle.len());
        let connection = &mut self.connections[self.idle.swap_remove(at) as usize];
        self.number += 1;
        (connection.request, connection.due, connection.received) = (self.number, due, 0);
        outcome.lateness.saturating_record(due.elapsed().as_nanos() as u64);
        connection.stream.write_all(&request(self.number))
    }

    /// Takes what has come within `wait`; how many connections had something.
    fn receive(&mut self, wait: Duration, outcome: &mut ClientOutcome) -> io::Result<usize> {
        self.events.clear();
        let timeout =
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        // epoll_pwait(2) counts whole milliseconds, ppoll(2) nanoseconds.
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(0),
            // As if something had come: the time is up later.
            Err(Errno::INTR) => return Ok(1),
            ready => ready?,
        };
        let events = rustix::buffer::spare_capacity(&mut self.events);
        let count = epoll::wait(&self.epoll, events, Some(&Timespec::default()))?;
        for event in &self.events {
            let number = event.data.u64() as u32;
            let connection = &mut self.connections[number as usize];
            let room = &mut connection.reply[connection.received..];
            match connection.stream.read(room)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => connection.received += bytes,
            }
            if connection.received < REQUEST {
                continue;
            }
            if connection.reply != request(connection.request) {
                return Err(io::Error::other("a reply differs from its request"));
            }
            outcome.replies += 1;
            let nanos = connection.due.elapsed().as_nanos() as u64;
            outcome.latency.saturating_record(nanos);
            self.idle.push(number);
        }
        Ok(count)
    }
}

/// A request, each with bytes of its own.
fn request(number: u64) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    for (place, word) in bytes.chunks_exact_mut(8).zip(number..) {
        place.copy_from_slice(&word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    bytes
}
