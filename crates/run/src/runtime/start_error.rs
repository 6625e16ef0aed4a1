//! Why a run could not start.

use rheostat_kernel::core_set::CoreError;
use rheostat_steer::RewriteError;
use thiserror::Error;

use crate::lane::UnusualError;
use crate::queue_map::QueueMapError;

/// Why a run could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Too many offloading lanes, or some where lanes share queues.
    #[error(
        "{offloading} of {lanes} lanes cannot be offloading lanes: at most half of them, and none where lanes share queues"
    )]
    Offloading {
        /// Offloading lanes.
        offloading: usize,
        /// All lanes.
        lanes: usize,
    },
    /// A device has another number of queues than there are lanes.
    #[error("device `{device}` has {queues} queues for {lanes} lanes")]
    Queues {
        /// The device.
        device: String,
        /// Its queues.
        queues: usize,
        /// The lanes.
        lanes: usize,
    },
    /// Lanes cannot own shards together by this number.
    #[error(
        "{lanes} lanes cannot own shards together by {claimants}: each queue needs as many lanes"
    )]
    Claimants {
        /// The lanes.
        lanes: usize,
        /// Lanes to each queue.
        claimants: usize,
    },
    /// A service whose packets wait for a pool cannot run on shards with several owners: replies come in the order of their shard,
    /// to one lane ([`DeferredWork::settles_by_shard`](crate::DeferredWork::settles_by_shard)).
    #[error(
        "lanes own shards together, but packets of their service wait for a pool: give each lane a queue of its own"
    )]
    PoolClient,
    /// Two devices have one number. Packets of one would be taken for packets of the other.
    #[error("devices `{first}` and `{second}` both have number {number}: give each its own")]
    SameNumber {
        /// The first device.
        first: String,
        /// The second.
        second: String,
        /// Their number.
        number: usize,
    },
    /// A device's number is not its place among the devices, by which packets are sent.
    #[error("device `{device}` has number {number}, but stands at place {place} of the devices")]
    Place {
        /// The device.
        device: String,
        /// Its number.
        number: usize,
        /// Its place, counted from 0.
        place: usize,
    },
    /// There are more devices than there are numbers for.
    #[error("the run has {devices} devices: it can have {most} at most")]
    TooManyDevices {
        /// Devices that were given.
        devices: usize,
        /// How many there may be.
        most: usize,
    },
    /// There are more or fewer shards than packets are placed in.
    #[error("the run has {given} shards, but packets are placed in {placed}")]
    Shards {
        /// Shards that were given.
        given: usize,
        /// Shards that packets are placed in.
        placed: usize,
    },
    /// A device's indirection table could not be written.
    #[error("device `{device}`: {error}")]
    Table {
        /// The device.
        device: String,
        /// What is wrong.
        error: RewriteError,
    },
    /// Lanes cannot poll queues as they are to.
    #[error(transparent)]
    Map(#[from] QueueMapError),
    /// The packets to treat as unusual ones are not named as they have to be.
    #[error(transparent)]
    Unusual(#[from] UnusualError),
    /// There are no workers, or no lanes.
    #[error("a run needs at least one worker and one lane")]
    Empty,
    /// A worker thread could not be started.
    #[error("cannot start a worker: {0}")]
    Spawn(#[from] std::io::Error),
    /// A worker could not be pinned to its core.
    #[error(transparent)]
    Pin(#[from] CoreError),
}
