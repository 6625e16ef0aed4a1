//! What a lane runs: a chain of network functions, or a service of one's own.

mod deferred_work;
mod offloading;

pub use deferred_work::DeferredWork;
pub use offloading::OffloadingService;

use rheostat_base::Time;
use rheostat_state::Shard;

use crate::lane::{Batch, Output};
use crate::metrics::Metrics;
use crate::shard_set::ShardSet;

/// The work a lane does on packets. Called once per burst, never per packet: lanes know no more of a service than this, and
/// are compiled once for all.
///
/// What a service keeps for a shard as a whole (ports, limits, random numbers) lies in the shard
/// ([`Shard::local`](rheostat_state::Shard::local)), of which each service has one type.
pub trait Service: Send + 'static {
    /// The properties of the service, which do not change. Read when its lane is assembled.
    fn spec(&self) -> ServiceSpec {
        ServiceSpec::default()
    }

    /// Processes packets of shards that the lane owns, in order, and leaves `batch` empty: each
    /// packet goes to `out`, or to the service's client, or is freed and counted as consumed or dropped.
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output);

    /// A shard has come from another lane. Its packets, held meanwhile, follow; timers in it may already be due.
    fn shard_arrived(&mut self, _shard: &mut Shard) {}

    /// Does what is due by `now` without a packet to cause it: timers, periodic handlers. A bounded
    /// amount per call.
    fn tick(&mut self, _shards: &mut ShardSet, _out: &mut Output, _now: Time) {}

    /// Ends the run at `now`, the time of the last packet of any lane: everything due is done.
    fn finish(&mut self, _shards: &mut ShardSet, _out: &mut Output, _now: Time) {}

    /// When [`Service::tick`] next has something to do; never, for a service that has no timers.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// Adds the counts of `part`. Called at the end of a run, and during it when a client wants to know.
    fn metrics(&self, _part: MetricsPart<'_>, _metrics: &mut Metrics) {}

    /// The work of the service that waits, if it has such. A service that returns one when its lane is assembled returns one always,
    /// and one that returns none never does.
    #[inline(always)]
    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        None
    }

    /// The service, if other lanes may work on single flows of the lane's shards.
    fn offloading(&mut self) -> Option<&mut dyn OffloadingService> {
        None
    }
}

/// The properties of a service that do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    /// Whether the service keeps state, so that a packet must reach the lane that owns its flow's shard. Where it does not,
    /// nothing is found out about packets but their time: they stay on the lane that received them, unless the run
    /// reports what shards cost, so that they can move. Then they go by what their devices hashed to the owner of their shard.
    pub is_stateful: bool,
    /// Whether the service says what it did with packets ([`LaneMirror::comment_on_received`]), so that their copies have to wait
    /// for that.
    ///
    /// [`LaneMirror::comment_on_received`]: rheostat_capture::LaneMirror::comment_on_received
    pub comments: bool,
}

impl Default for ServiceSpec {
    /// With state, and without comments.
    fn default() -> ServiceSpec {
        ServiceSpec { is_stateful: true, comments: false }
    }
}

/// The part of a service whose counts [`Service::metrics`] adds.
#[derive(Clone, Copy)]
pub enum MetricsPart<'a> {
    /// Counts of the lane, beside its shards.
    Lane,
    /// Counts of a shard that the lane has.
    Shard(&'a Shard),
    /// Counts of all shards together, not by lane: added on one lane.
    Shared,
}
