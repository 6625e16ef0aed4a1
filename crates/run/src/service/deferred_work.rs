//! Work of a service that waits: pieces that the lane does without its shards, or tasks at a pool.

use rheostat_base::ShardId;

use crate::lane::Output;
use crate::pool::AnyPoolClient;
use crate::shard_set::ShardSet;

/// Work that [`Service::process`](super::Service::process) and [`Service::tick`](super::Service::tick) put off. Members of a pool do it
/// if there is a client of one, and otherwise the lane; each piece has an outcome, which enters a shard.
pub trait DeferredWork {
    /// The client of the pool whose members do the work; none if the lane does it.
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        None
    }

    /// Does one piece of the work, longest waiting first; `false` when there is none. Called when the lane holds no shard that
    /// others wait for.
    fn work(&mut self, _out: &mut Output) -> bool {
        false
    }

    /// Whether there is work for the lane, and the last took so long that another lane should look for packets meanwhile.
    fn expects_long_work(&mut self) -> bool {
        false
    }

    /// Whether [`DeferredWork::unsettled`] names the shards of a pool's outcomes, too. Lanes that own shards together run no service
    /// with a client of a pool without that.
    fn settles_by_shard(&self) -> bool {
        false
    }

    /// The shard that the next outcome is for; none if there is no outcome.
    fn unsettled(&mut self) -> Option<ShardId> {
        None
    }

    /// Takes outcomes into their shards, in the order in which they came, until one is for a shard that is not here, or, without
    /// [`DeferredWork::settles_by_shard`], until none is left. [`Output::now`] is the time of the poll if they came from a pool.
    fn settle(&mut self, shards: &mut ShardSet, out: &mut Output);

    /// Gives the next outcome up, whose shard no lane may work on.
    fn abandon(&mut self) {}
}
