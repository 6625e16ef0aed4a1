//! A service of whose offloaded packets a test sees, or takes, all.

use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_run::{
    AnyPoolClient, Batch, FlowNumber, Metrics, OffloadedFlows, Output, Service, ShardSet,
};
use rheostat_state::{DetachedFlow, FlowHash, Shard};

/// The service `inner`, in which `hook` is called in place of [`Service::process_offloaded`]. The hook gets the service, to call
/// that itself.
#[derive(Debug)]
pub struct Intercepted<S, H> {
    inner: S,
    hook: H,
}

impl<S, H> Intercepted<S, H>
where
    S: Service,
    H: FnMut(&mut S, &mut Batch, &mut OffloadedFlows, &mut Output) + Send + 'static,
{
    /// Puts `hook` before `inner`.
    pub fn new(inner: S, hook: H) -> Intercepted<S, H> {
        Intercepted { inner, hook }
    }
}

impl<S, H> Service for Intercepted<S, H>
where
    S: Service,
    H: FnMut(&mut S, &mut Batch, &mut OffloadedFlows, &mut Output) + Send + 'static,
{
    fn is_stateful(&self) -> bool {
        self.inner.is_stateful()
    }

    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.inner.process(batch, shards, out);
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        self.inner.shard_arrived(shard);
    }

    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        self.inner.pool_client()
    }

    fn complete(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.inner.complete(shards, out, now);
    }

    fn offloads(&self) -> bool {
        self.inner.offloads()
    }

    fn detach(
        &mut self,
        shard: &mut Shard,
        flow: (FlowHash, &FlowKey),
        number: FlowNumber,
        now: Time,
    ) -> Option<DetachedFlow> {
        self.inner.detach(shard, flow, number, now)
    }

    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    ) {
        (self.hook)(&mut self.inner, batch, flows, out);
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.inner.tick(shards, out, now);
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.inner.finish(shards, out, now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.inner.next_deadline()
    }

    fn metrics(&self, metrics: &mut Metrics) {
        self.inner.metrics(metrics);
    }

    fn shard_metrics(&self, shard: &Shard, metrics: &mut Metrics) {
        self.inner.shard_metrics(shard, metrics);
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        self.inner.shared_metrics(metrics);
    }
}
