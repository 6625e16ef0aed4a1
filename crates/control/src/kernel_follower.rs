//! Follows the kernel's routes: what it knows of rheostat's interfaces becomes the routes of the network,
//! and stays so while they change.

mod routes;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_ip::{KernelTables, KnownNeighbours, Progress};
use rheostat_ip::{Network, Route};
use rheostat_kernel::netlink::{LONGEST, NetlinkSocket, Received};
use rheostat_kernel::privileges;
use rheostat_kernel::routing::{GROUPS, Messages};

pub use self::routes::FollowedRoutes;

/// How long is waited for the kernel before it is looked whether the run is over.
const TIMEOUT: Duration = Duration::from_millis(100);
/// Changes that may wait for those behind them.
const MOST_AT_ONCE: usize = 4_096;
/// How long after a failure the kernel is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// A thread that follows the kernel.
#[derive(Debug)]
pub struct KernelFollower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    routes: FollowedRoutes,
}

impl KernelFollower {
    /// Begins to follow the kernel for the devices on interfaces of these names. `given` routes stay, and
    /// go before the kernel's to the same prefix. Of its `neighbours` these count. `report` is called with what cannot be followed.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no thread.
    pub fn start(
        network: Arc<Network>,
        devices: Vec<(String, DeviceId)>,
        given: Vec<Route>,
        neighbours: KnownNeighbours,
        report: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<KernelFollower> {
        let socket = NetlinkSocket::open(GROUPS)?;
        let stop = Arc::new(AtomicBool::new(false));
        let tables = KernelTables::new(devices);
        let applied = BTreeSet::new();
        let routes = FollowedRoutes::new(given);
        let shared = routes.clone();
        let mut follower =
            Follower { socket, tables, network, routes: shared, neighbours, report, applied };
        let stopped = stop.clone();
        let follow = move || {
            // What it could not give up is found when the run makes sure of it.
            let _ = privileges::give_up();
            // Relaxed: the flag publishes nothing.
            while !stopped.load(Ordering::Relaxed) {
                let ended = follower.follow(&stopped);
                if let Err(error) = ended.and_then(|_| follower.begin_anew()) {
                    (follower.report)(&format!("the kernel's routes are not followed: {error}"));
                    thread::sleep(PAUSE);
                }
            }
        };
        let thread = thread::Builder::new().name("rheo-kernel".into()).spawn(follow)?;
        Ok(KernelFollower { stop, thread: Some(thread), routes })
    }

    /// The routes that are given beside the kernel's, to be changed while it goes on.
    pub fn routes(&self) -> FollowedRoutes {
        self.routes.clone()
    }
}

impl Drop for KernelFollower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was printed by the thread.
            let _ = thread.join();
        }
    }
}

struct Follower<T> {
    socket: NetlinkSocket,
    tables: KernelTables,
    network: Arc<Network>,
    routes: FollowedRoutes,
    neighbours: KnownNeighbours,
    report: T,
    /// The kernel's neighbours that the network has.
    applied: BTreeSet<(DeviceId, IpAddr, [u8; 6])>,
}

impl<T: FnMut(&str)> Follower<T> {
    /// Leaves everything unread. A socket that has overrun stays so until all in it was read, and what the
    /// kernel answers meanwhile is lost without a sign; a question on a new one is answered.
    fn begin_anew(&mut self) -> io::Result<()> {
        self.socket = NetlinkSocket::open(GROUPS)?;
        Ok(())
    }

    /// Requests all tables, and then follows changes, until `stop` is set, messages are lost, or the socket fails.
    fn follow(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut buffer = [0; LONGEST];
        let first = self.tables.restart();
        self.go_on(first)?;
        // Datagrams that have changed something that is not in force yet.
        let mut changes = 0;
        while !stop.load(Ordering::Relaxed) {
            // Whatever comes at once is put in force at once: thousands of routes, where a daemon starts.
            let timeout =
                if changes > 0 && self.tables.is_complete() { Duration::ZERO } else { TIMEOUT };
            let received = self.socket.receive(&mut buffer, timeout)?;
            let is_over = matches!(received, Received::Nothing) || changes >= MOST_AT_ONCE;
            if changes > 0 && is_over && self.tables.is_complete() {
                self.apply();
                changes = 0;
            }
            match received {
                Received::Nothing => {}
                Received::Overrun => return Ok(()),
                Received::Messages(length) => {
                    for event in Messages::new(&buffer[..length]) {
                        let progress = self.tables.take(event);
                        changes += usize::from(progress == Progress::Changed);
                        self.go_on(progress)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn go_on(&self, progress: Progress) -> io::Result<()> {
        match progress {
            Progress::Ask(request, sequence) => self.socket.send(&request.bytes(sequence)),
            Progress::Wait | Progress::Changed => Ok(()),
        }
    }

    /// Puts the kernel's routes and neighbours in force.
    fn apply(&mut self) {
        let (network, report) = (&self.network, &mut self.report);
        self.routes.follow(
            self.tables.routes(),
            |routes| network.set_routes(routes),
            |error| {
                report(&format!("a route of the kernel's is left out: {error}"));
            },
        );
        let known: BTreeSet<_> = self.tables.neighbours(self.neighbours).into_iter().collect();
        for &(device, address, _) in self.applied.difference(&known) {
            self.network.unset_neighbour(device, address);
        }
        for &(device, address, mac) in known.difference(&self.applied) {
            self.network.set_neighbour(device, address, mac);
        }
        self.applied = known;
    }
}
