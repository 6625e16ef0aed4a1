//! A service of whose offloaded packets a test sees, or takes, all.

use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_run::{
    Batch, DeferredWork, FlowNumber, Metrics, MetricsPart, OffloadedFlows, OffloadingService,
    Output, Service, ServiceSpec, ShardSet,
};
use rheostat_state::{DetachedFlow, FlowHash, Shard};

/// The service `inner`, in which `hook` is called in place of [`OffloadingService::process_offloaded`]. The hook gets the service, to call
/// that itself.
#[derive(Debug)]
pub struct Intercepted<S, H> {
    inner: S,
    hook: H,
}

impl<S, H> Intercepted<S, H>
where
    S: OffloadingService,
    H: FnMut(&mut S, &mut Batch, &mut OffloadedFlows, &mut Output) + Send + 'static,
{
    /// Puts `hook` before `inner`.
    pub fn new(inner: S, hook: H) -> Intercepted<S, H> {
        Intercepted { inner, hook }
    }
}

impl<S, H> Service for Intercepted<S, H>
where
    S: OffloadingService,
    H: FnMut(&mut S, &mut Batch, &mut OffloadedFlows, &mut Output) + Send + 'static,
{
    fn spec(&self) -> ServiceSpec {
        self.inner.spec()
    }

    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.inner.process(batch, shards, out);
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        self.inner.shard_arrived(shard);
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

    fn metrics(&self, part: MetricsPart<'_>, metrics: &mut Metrics) {
        self.inner.metrics(part, metrics);
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        self.inner.deferred()
    }

    fn offloading(&mut self) -> Option<&mut dyn OffloadingService> {
        match self.inner.offloading().is_some() {
            true => Some(self),
            false => None,
        }
    }
}

impl<S, H> OffloadingService for Intercepted<S, H>
where
    S: OffloadingService,
    H: FnMut(&mut S, &mut Batch, &mut OffloadedFlows, &mut Output) + Send + 'static,
{
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
}
