//! Applications over the kernel's sockets: parse, handle and encode of an [`Application`] as in lanes, TCP by Linux. For
//! development: it needs no privileges, and has neither schedulers nor moving shards.
//!
//! ```text
//! listeners (SO_REUSEPORT, one for each lane and address) ─► lane (a thread, an epoll) ─► connections
//! ```
//!
//! Each lane has its connections for good. A connection takes at most [`ServeConfig::longest_request`](crate::ServeConfig) bytes of a
//! request and one reply: while a reply waits for its reader, nothing more is read or parsed. All connections together take at most
//! [`ServeConfig::memory`](crate::ServeConfig) bytes. A peer that is silent, or slow to send a request, is ended by the same
//! time-outs as in lanes.

mod connection;
mod counters;
mod exchange;
mod lane;
mod listeners;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rheostat_base::LaneId;
use rheostat_run::Metrics;
use rustix::event::{EventfdFlags, eventfd};
use thiserror::Error;

pub use self::counters::HostTotals;
use self::counters::SharedCounters;
use self::lane::Lane;
use self::listeners::Listeners;
use crate::application::Application;
use crate::budget::Budget;
use crate::config::ServeConfig;
use crate::shared::ReadMetrics;

/// A service over the kernel's sockets: where, and within which bounds.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where connections are accepted. The kernel picks a port in place of 0.
    pub listen: Vec<SocketAddr>,
    /// Threads, each with listeners and connections of its own; at least 1.
    pub lanes: usize,
    /// Bounds of the whole service. Those of half-open and closed connections are the kernel's.
    pub limits: ServeConfig,
    /// How long a connection may be silent.
    pub idle_timeout: Duration,
    /// How long a request may take to arrive; for ever without.
    pub request_timeout: Option<Duration>,
}

/// Why a service over the kernel's sockets does not run.
#[derive(Debug, Error)]
pub enum HostError {
    /// A program listens there.
    #[error(
        "{0} is in use: `ss -tlnp` shows the program that listens there; stop it, or choose another port (0 lets the kernel choose)"
    )]
    InUse(SocketAddr),
    /// The address is none of this machine.
    #[error("{0} is no address of this machine: `ip -brief address` lists them")]
    NoSuchAddress(SocketAddr),
    /// The port needs privileges.
    #[error(
        "port {} needs privileges: choose one from 1024 on, or run `sysctl net.ipv4.ip_unprivileged_port_start={}` as root",
        .0.port(), .0.port()
    )]
    NotPermitted(SocketAddr),
    /// The application takes events of connections.
    #[error(
        "it has no requests, and is not run over the kernel's sockets: use a device of kind tap, af_packet or af_xdp"
    )]
    NoRequests,
    /// The kernel refused something else.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A thread, an epoll or an event could not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Listeners that are open, and not yet served.
pub struct Host {
    config: HostConfig,
    listeners: Vec<Listeners>,
    addresses: Vec<SocketAddr>,
}

impl Host {
    /// Opens the listeners.
    ///
    /// # Errors
    /// [`HostError`] names the address that cannot be listened at, and the fix.
    pub fn bind(config: HostConfig) -> Result<Host, HostError> {
        let (listeners, addresses) = Listeners::open(&config.listen, config.lanes.max(1))?;
        Ok(Host { config, listeners, addresses })
    }

    /// Looks whether a service could listen there, without listening.
    ///
    /// # Errors
    /// As [`Host::bind`].
    pub fn check(address: SocketAddr) -> Result<(), HostError> {
        Listeners::check(address)
    }

    /// Starts a thread for each lane.
    ///
    /// # Errors
    /// [`HostError::Io`] when a thread or its epoll cannot be made.
    pub fn start<A: Application>(self, app: A) -> Result<RunningHost, HostError> {
        let app = Arc::new(app);
        let counting = app.clone();
        let shared = Arc::new(Shared {
            budget: Budget::new(self.config.limits),
            idle_timeout: self.config.idle_timeout,
            request_timeout: self.config.request_timeout,
            counters: SharedCounters::default(),
            is_draining: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        });
        let metrics = Arc::new(move |metrics: &mut Metrics| counting.metrics(metrics));
        let mut running = RunningHost {
            control: HostControl { shared: shared.clone(), metrics },
            lanes: Vec::new(),
            addresses: self.addresses,
        };
        for (number, listeners) in self.listeners.into_iter().enumerate() {
            let wake = Arc::new(
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(io::Error::from)?,
            );
            let id = LaneId(number as u16);
            let lane = Lane::new(id, app.clone(), listeners, wake.clone(), shared.clone())?;
            let thread = thread::Builder::new().name(format!("host-{number}"));
            let thread = thread.spawn(move || lane.run())?;
            running.lanes.push(LaneThread { wake, thread });
        }
        Ok(running)
    }
}

/// State that lanes share.
struct Shared {
    budget: Budget,
    idle_timeout: Duration,
    request_timeout: Option<Duration>,
    counters: SharedCounters,
    /// Whether connections are to end behind the reply at hand.
    is_draining: AtomicBool,
    /// Whether they are to be reset.
    is_ending: AtomicBool,
}

struct LaneThread {
    wake: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

/// Looks at a service while it runs.
#[derive(Clone)]
pub struct HostControl {
    shared: Arc<Shared>,
    /// Adds the application's own counts.
    metrics: ReadMetrics,
}

impl HostControl {
    /// Connections at present.
    pub fn connections(&self) -> usize {
        self.shared.budget.taken()[0]
    }

    /// The counters so far, of all lanes together.
    pub fn totals(&self) -> HostTotals {
        self.shared.counters.totals()
    }

    /// What the application has counted by itself ([`Application::metrics`]).
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        (self.metrics)(&mut metrics);
        metrics
    }
}

impl std::fmt::Debug for HostControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostControl").field("connections", &self.connections()).finish()
    }
}

/// A service that runs. Dropping it ends its threads, and resets its connections.
pub struct RunningHost {
    control: HostControl,
    lanes: Vec<LaneThread>,
    addresses: Vec<SocketAddr>,
}

impl RunningHost {
    /// Where it listens, with the ports that the kernel chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Looks at it, for as long as it is wanted.
    pub fn control(&self) -> HostControl {
        self.control.clone()
    }

    /// Whether a lane has ended by itself, which none should.
    pub fn is_finished(&self) -> bool {
        self.lanes.iter().any(|lane| lane.thread.is_finished())
    }

    /// Accepts nothing more; closes idle connections, and the others behind the reply at hand.
    pub fn drain(&self) {
        self.control.shared.is_draining.store(true, Ordering::Release);
        self.wake();
    }

    /// Ends it: resets the connections that are left. A lane whose call of the application does not return within `patience` is
    /// left alone, and its number is in the report.
    pub fn finish(mut self, patience: Duration) -> HostReport {
        self.end();
        let until = Instant::now() + patience;
        let lanes = std::mem::take(&mut self.lanes);
        while lanes.iter().any(|lane| !lane.thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let mut report = HostReport::default();
        for (number, lane) in lanes.into_iter().enumerate() {
            match lane.thread.is_finished() {
                false => report.running.push(number),
                true if lane.thread.join().is_err() => report.failed.push(number),
                true => {}
            }
        }
        HostReport { totals: self.control.totals(), metrics: self.control.metrics(), ..report }
    }

    fn end(&self) {
        self.control.shared.is_draining.store(true, Ordering::Release);
        self.control.shared.is_ending.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        for lane in &self.lanes {
            // It fails only while the counter is full, and the lane wakes then, too.
            let _ = rustix::io::write(&*lane.wake, &1_u64.to_ne_bytes());
        }
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        self.end();
    }
}

/// The outcome of a service over the kernel's sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostReport {
    /// The counters of all lanes together.
    pub totals: HostTotals,
    /// What the application has counted by itself.
    pub metrics: Metrics,
    /// Lanes that had not returned from the application in time.
    pub running: Vec<usize>,
    /// Lanes that ended by a panic outside of the application.
    pub failed: Vec<usize>,
}

#[cfg(test)]
mod tests;
