//! What a lane runs: a chain of network functions, or a service of one's own.

use rheostat_base::{ShardId, Time};
use rheostat_packet::FlowKey;
use rheostat_state::{DetachedFlow, FlowHash, Shard};

use crate::lane::{Batch, HandoffPacket, Output};
use crate::metrics::Metrics;
use crate::offload::{FlowNumber, OffloadedFlows};
use crate::pool::AnyPoolClient;
use crate::shard_set::ShardSet;

/// The work a lane does on packets. Called once per burst, never per packet: lanes know no more of a service than this, and
/// are compiled once for all.
///
/// What a service keeps for a shard as a whole (ports, limits, random numbers) lies in the shard
/// ([`Shard::local`](rheostat_state::Shard::local)), of which each service has one type.
pub trait Service: Send + 'static {
    /// Whether the service keeps state, so that a packet must reach the lane that owns its flow's shard. Where it does not,
    /// nothing is found out about packets but their time: they stay on the lane that received them, unless the run
    /// reports what shards cost, so that they can move. Then they go by what their devices hashed to the owner of their shard.
    fn is_stateful(&self) -> bool {
        true
    }

    /// Whether the service says what it did with packets ([`LaneMirror::comment_on_received`]), so that their copies have to wait
    /// for that.
    ///
    /// [`LaneMirror::comment_on_received`]: rheostat_capture::LaneMirror::comment_on_received
    fn comments(&self) -> bool {
        false
    }

    /// Processes packets of shards that the lane owns, in order, and leaves `batch` empty: each
    /// packet goes to `out`, or to the service's client, or is freed and counted as consumed or dropped.
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output);

    /// Whether [`Service::process`] and [`Service::tick`] put work off that needs no shard: [`Service::work`] does it.
    fn puts_off(&self) -> bool {
        false
    }

    /// Does one piece of the work that was put off, longest waiting first; `false` when there is none. Called when the lane holds
    /// no shard that others wait for.
    fn work(&mut self, _out: &mut Output) -> bool {
        false
    }

    /// Whether there is such work, and the last took so long that another lane should look for packets meanwhile.
    fn expects_long_work(&self) -> bool {
        false
    }

    /// Whether the service has worked for so long in the poll that began at `now` that the time has changed, as far as it knows.
    fn is_behind(&self, _now: Time) -> bool {
        false
    }

    /// The shard that the next outcome of such work is for.
    fn unsettled(&self) -> Option<ShardId> {
        None
    }

    /// Takes outcomes into their shards, in the order in which they came, until one is for a shard that is not here.
    fn settle(&mut self, _shards: &mut ShardSet, _out: &mut Output) {}

    /// Gives the next outcome up, whose shard no lane may work on.
    fn abandon(&mut self) {}

    /// A shard has come from another lane. Its packets, held meanwhile, follow; timers in it may already be due.
    fn shard_arrived(&mut self, _shard: &mut Shard) {}

    /// The service's client at a [`crate::Pool`], if it has one.
    #[inline(always)]
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        None
    }

    /// Whether lanes that own shards together may run the service though it has a client of a pool: [`Service::unsettled`] names the
    /// shard of the next reply, and [`Service::complete`] stops at a reply whose shard is not here.
    fn completes_by_shard(&self) -> bool {
        false
    }

    /// Goes on with the packets whose replies have come, in the order in which the client gives them, and
    /// leaves none of those there. Called once per poll, when there are any; where lanes own shards together, once for each shard
    /// that [`Service::unsettled`] names, while the lane has it.
    fn complete(&mut self, _shards: &mut ShardSet, _out: &mut Output, _now: Time) {}

    /// Whether other lanes may work on single flows of the lane's shards: [`Service::detach`] and
    /// [`Service::process_offloaded`] are there.
    fn offloads(&self) -> bool {
        false
    }

    /// Detaches the flow with this key from its shard, so that it can leave; `None` when there is none, or it has to stay for now.
    fn detach(
        &mut self,
        _shard: &mut Shard,
        _flow: (FlowHash, &FlowKey),
        _number: FlowNumber,
        _now: Time,
    ) -> Option<DetachedFlow> {
        None
    }

    /// Processes packets of flows that are away from their homes, in order, and leaves `batch` empty. A packet that can be
    /// processed only with its shard is refused ([`Output::refuse`]), and all later ones of its flow are
    /// ([`OffloadedFlows::refuse`]).
    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    ) {
        for (packet, &info) in batch.drain() {
            info.offloaded().into_iter().for_each(|number| flows.refuse(number));
            out.refuse(HandoffPacket { packet, info });
        }
    }

    /// Does what is due by `now` without a packet to cause it: timers, periodic handlers. A bounded
    /// amount per call.
    fn tick(&mut self, _shards: &mut ShardSet, _out: &mut Output, _now: Time) {}

    /// Ends the run at `now`, the time of the last packet of any lane: everything due is done.
    fn finish(&mut self, _shards: &mut ShardSet, _out: &mut Output, _now: Time) {}

    /// When [`Service::tick`] next has something to do; never, for a service that has no timers.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// Adds what was counted in the lane, beside its shards. Called at the end of a run, and during it when a client wants to know.
    fn metrics(&self, _metrics: &mut Metrics) {}

    /// Adds what was counted in a shard that the lane has, as [`Service::metrics`].
    fn shard_metrics(&self, _shard: &Shard, _metrics: &mut Metrics) {}

    /// Adds what was counted for all shards together, and not by lane: called on one lane.
    fn shared_metrics(&self, _metrics: &mut Metrics) {}
}
