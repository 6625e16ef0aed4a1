//! Connections to a server, and runs over them.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use crate::arrivals::{ArrivalProcess, Arrivals};
use crate::classes::ClassMix;
use crate::error::LoadError;
use crate::ledger::Ledger;
use crate::link::{LoadLink, lock};
use crate::protocol::Protocol;
use crate::receiver::LoadReceiver;
use crate::run_result::RunResult;
use crate::schedule::{Schedule, Window};
use crate::sender::LoadSender;
use crate::socket;
use crate::spread::{QueueHash, Spread};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Before the first request of a run is due, in nanoseconds: the threads have started.
const LEAD: u64 = 2_000_000;

/// What is measured, and over which connections.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The server.
    pub server: SocketAddr,
    /// What it is asked.
    pub protocol: Protocol,
    /// Connections.
    pub connections: usize,
    /// Requests under way on a connection at most.
    pub outstanding: usize,
    /// How connections are spread over the server's queues.
    pub spread: Spread,
    /// What the server makes of ports.
    pub hash: Option<QueueHash>,
    /// Whether the sender never sleeps.
    pub spins: bool,
    /// What everything random starts from.
    pub seed: u64,
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The gaps between requests.
    pub process: ArrivalProcess,
    /// Requests a second.
    pub rate: f64,
    /// Their classes.
    pub mix: ClassMix,
    /// How long requests are sent.
    pub duration: Duration,
    /// The part of it that is not measured.
    pub warm_up: Duration,
    /// How long replies are waited for after the last request.
    pub wait: Duration,
    /// What everything random starts from.
    pub seed: u64,
}

/// Connections to a server.
#[derive(Debug)]
pub struct Session {
    plan: LoadPlan,
    links: Vec<Mutex<LoadLink>>,
    receiver: LoadReceiver,
    epoch: Instant,
    number: u64,
    cursor: usize,
    /// Connections on each queue, where that is known.
    queues: Option<Vec<usize>>,
}

impl Session {
    /// Opens all connections.
    ///
    /// # Errors
    /// [`LoadError`] when the server does not accept one within five seconds, or no port is left.
    pub fn open(plan: LoadPlan) -> Result<Session, LoadError> {
        let mut streams = Vec::with_capacity(plan.connections);
        let mut ports = Ports::of(&plan)?;
        let mut queues = ports.as_ref().map(|ports| vec![0; ports.by_queue.len()]);
        for number in 0..plan.connections {
            let failed = |source| LoadError::Connect {
                server: plan.server,
                source,
                open: number,
                wanted: plan.connections,
            };
            let queue = match &plan.hash {
                Some(hash) => plan.spread.queue(number, plan.connections, hash.queues()),
                None => None,
            };
            let stream = match (queue, &mut ports) {
                (Some(queue), Some(ports)) => {
                    let (stream, port) = ports.connect(plan.server, queue, failed)?;
                    (stream, Some(port))
                }
                _ => (socket::open(plan.server, None, CONNECT_TIMEOUT).map_err(failed)?, None),
            };
            if let (Some(hash), Some(queues)) = (&plan.hash, &mut queues) {
                let local = stream.0.local_addr().map_err(failed)?;
                queues[hash.queue(local, plan.server)] += 1;
            }
            streams.push(stream);
        }
        let links: Vec<_> =
            (0..plan.connections).map(|_| Mutex::new(LoadLink::default())).collect();
        let epoch = Instant::now();
        let receiver =
            LoadReceiver::new(plan.server, plan.protocol.clone(), epoch, streams, &links)?;
        Ok(Session { plan, links, receiver, epoch, number: 1, cursor: 0, queues })
    }

    /// Connections on each queue of the server, where its hash is known.
    pub fn queues(&self) -> Option<&[usize]> {
        self.queues.as_deref()
    }

    /// Sends for a while, or until `stop` is set, and says what came of it.
    pub fn run(&mut self, run: &RunPlan, stop: &AtomicBool) -> RunResult {
        let start = self.epoch.elapsed().as_nanos() as u64 + LEAD;
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let end = start.saturating_add(nanos(run.duration));
        let window = Window { from: start.saturating_add(nanos(run.warm_up)).min(end), to: end };
        let arrivals = Arrivals::new(run.process, run.rate, start, run.seed);
        let schedule = Schedule::new(arrivals, run.mix.clone(), window, run.seed);
        let warm_up = Window { from: start, to: window.from };
        let mut ledgers = [Ledger::new(warm_up), Ledger::new(window)];
        let (over, sender_done) = (AtomicBool::new(false), AtomicBool::new(false));
        let ends = self.receiver.counts;
        let Session { plan, links, receiver, epoch, number, cursor, .. } = self;
        let (plan, links, epoch): (&LoadPlan, &[Mutex<LoadLink>], Instant) = (plan, links, *epoch);
        let (finished, problem) = thread::scope(|scope| {
            let sending = || {
                exact_sleeps();
                let _done = Done(&sender_done);
                let mut sender = LoadSender {
                    links,
                    protocol: &plan.protocol,
                    epoch,
                    outstanding: plan.outstanding,
                    spins: plan.spins,
                    number,
                    cursor,
                };
                sender.run(schedule, end, [stop, &over])
            };
            let sender = scope.spawn(sending);
            exact_sleeps();
            let problem = receiver.run(links, &mut ledgers, &sender_done, &over, run.wait);
            // A sender that panics has no counts, and the panic is on standard error.
            (sender.join().unwrap_or_default(), problem)
        });
        let unanswered = |ledger: &Ledger| {
            let window = ledger.window();
            let open = links.iter().map(|link| {
                lock(link).expected.iter().filter(|expected| window.has(expected.due)).count()
            });
            open.sum::<usize>() as u64
        };
        let unanswered = [unanswered(&ledgers[0]), unanswered(&ledgers[1])];
        let is_early = finished.at < end;
        RunResult::new(
            finished,
            is_early,
            ledgers,
            unanswered,
            receiver.counts.since(ends),
            problem,
        )
    }
}

/// Says that the sender is done when it is dropped, also by a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the receiver, which then sees every request that was sent.
        self.0.store(true, Ordering::Release);
    }
}

/// Sleeps of this thread end within microseconds; refused, up to 50 us late, which the lateness shows.
fn exact_sleeps() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// The ports that are left for each queue.
struct Ports {
    by_queue: Vec<Vec<u16>>,
}

impl Ports {
    fn of(plan: &LoadPlan) -> Result<Option<Ports>, LoadError> {
        let Some(hash) = &plan.hash else { return Ok(None) };
        let client = socket::local_address(plan.server)
            .map_err(|source| LoadError::Socket { task: "find the way to the server", source })?;
        Ok(Some(Ports { by_queue: hash.ports(client, plan.server, plan.seed) }))
    }

    /// Connects from the next port of a queue that is free.
    fn connect(
        &mut self,
        server: SocketAddr,
        queue: usize,
        failed: impl Fn(std::io::Error) -> LoadError,
    ) -> Result<(std::net::TcpStream, u16), LoadError> {
        loop {
            let port = self.by_queue[queue].pop().ok_or(LoadError::Ports { server, queue })?;
            match socket::open(server, Some(port), CONNECT_TIMEOUT) {
                Ok(stream) => return Ok((stream, port)),
                Err(error) => match error.kind() {
                    std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable => {}
                    _ => return Err(failed(error)),
                },
            }
        }
    }
}
