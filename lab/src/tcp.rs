//! `rheo bench tcp`: what a request costs that a service over TCP answers in its lane.
//!
//! Clients are in the process ([`rheostat_traffic::clients`]), and send requests as fast as lanes take them, each of a connection
//! chosen uniformly. The cost of a request is the time, by the time-stamp counter, inside `process`, `complete` and `tick` of the
//! service, less the time that clients take meanwhile. Beside it stands a harness: the same clients, polled in the same bursts, whose
//! packets are turned round. Each row is a process of its own, so that memory and allocations are the row's.

mod applications;
mod harness;
mod measurement;
mod meter;
mod moves;
mod peers;
mod processes;
mod reflection;
mod resident;
mod row;
mod testbed;

use std::time::Duration;

use rheostat_traffic::clients::{ClientsConfig, Pace};

use crate::error::BenchError;
pub use measurement::Load;
pub use moves::{Moves, MovesBench};
pub use peers::{IdleBench, IdleRow, Peer, PeerRow, PeersBench};
pub use processes::TcpProcesses;
pub use row::{RequestKind, TcpRow};

/// Measures one row, in this process.
#[derive(Clone, Copy, Debug)]
pub struct TcpBench {
    /// What is measured.
    pub load: Load,
    /// The first core; each lane has one.
    pub core: usize,
    /// How long a window is.
    pub window: Duration,
    /// Windows; the median counts.
    pub windows: usize,
    /// The allocations of this process so far, all threads together.
    pub allocations: fn() -> u64,
}

impl TcpBench {
    /// Measures.
    ///
    /// # Errors
    /// [`BenchError`] when the row cannot be run, or its run was not sound.
    pub fn run(&self) -> Result<TcpRow, BenchError> {
        match self.load.kind {
            RequestKind::Harness => harness::measure(self),
            RequestKind::Requests | RequestKind::Connections | RequestKind::Bulk => {
                measurement::measure(self)
            }
        }
    }
}

/// Clients of this load.
fn adapted(load: &Load, config: ClientsConfig) -> ClientsConfig {
    ClientsConfig {
        pace: Pace::Saturated { under_way: load.under_way },
        reply: measurement::reply(load.kind),
        requests_per_connection: (load.kind == RequestKind::Connections).then_some(1),
        ack_delay: load.ack_delay,
        ..config
    }
}
