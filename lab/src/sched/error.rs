//! Why a scheduler was not measured.

use rheostat_run::PoolError;
use rheostat_serve::{MembersError, ServeError};
use rheostat_tcp::sched::SchedulerError;
use thiserror::Error;

use super::rig::MOST_CLIENTS;
use crate::error::BenchError;
use crate::sim::sched::SchedError;

/// Why a scheduler was not measured.
#[derive(Debug, Error)]
pub enum SchedBenchError {
    /// The scheduler does not fit the cores.
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// The service could not be built.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Members could not be started.
    #[error(transparent)]
    Members(#[from] MembersError),
    /// Members could not be stopped.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The run could not be made.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The comparison could not be simulated.
    #[error(transparent)]
    Simulation(#[from] SchedError),
    /// No connections, or more than the rig has ports for.
    #[error("{0} connections: the rig has at least 1 for each worker, and {MOST_CLIENTS} at most")]
    Connections(u64),
    /// A load out of range.
    #[error("load {0}: above 0 and at most 2, where 1 is the capacity of the first scheduler")]
    Load(f64),
    /// A rate out of range.
    #[error("{0} requests per second: between 1 and 1000000000 are offered")]
    Rate(f64),
    /// The bytes that came back were wrong, or some did not come.
    #[error(
        "{scheduler}: the run was not sound: {broken} connections broke, {no_buffer} times no \
         buffer was free, {stray} packets were for no client, {unrecorded} replies had no room"
    )]
    Unsound {
        /// The scheduler.
        scheduler: String,
        /// Connections that were reset, or got bytes that were not due.
        broken: u64,
        /// Packets that were not made for want of buffers.
        no_buffer: u64,
        /// Packets for no client.
        stray: u64,
        /// Replies that could not be recorded.
        unrecorded: u64,
    },
    /// Not all clients could open their connections.
    #[error("{scheduler}: not all connections were opened within {seconds} s")]
    Unopened {
        /// The scheduler.
        scheduler: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Requests were not answered.
    #[error("{scheduler}: {under_way} requests were not answered within {seconds} s{odd}")]
    Silent {
        /// The scheduler.
        scheduler: String,
        /// How long it was waited for.
        seconds: u64,
        /// Requests that are under way.
        under_way: i64,
        /// What the service has counted that does not come to pass otherwise: names and counts.
        odd: String,
    },
}

macro_rules! through_bench {
    ($($source:ty),*) => {
        $(impl From<$source> for SchedBenchError {
            fn from(error: $source) -> SchedBenchError {
                SchedBenchError::Bench(error.into())
            }
        })*
    };
}

through_bench!(
    rheostat_kernel::core_set::CoreError,
    rheostat_packet::mbuf::PoolError,
    rheostat_state::ArenaError,
    rheostat_steer::SteeringError,
    rheostat_run::StartError
);
