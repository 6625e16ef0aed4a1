//! Times a lane's service.

use std::sync::Arc;

use rheostat_base::{Clock, Counter, Time};
use rheostat_run::{Batch, Output, Service, ShardSet};
use rheostat_state::Shard;
use rheostat_traffic::clients::ClientCounters;

/// Ticks of the time-stamp counter inside a lane's service, written by the lane alone.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ServiceTicks(pub(super) Counter);

/// A service whose time is counted. The clients work inside of it when it sends to them; their time is taken off.
pub(super) struct Metered {
    pub(super) service: Box<dyn Service>,
    pub(super) clock: Clock,
    pub(super) clients: Arc<ClientCounters>,
    pub(super) ticks: Arc<ServiceTicks>,
}

impl Metered {
    fn timed(&mut self, work: impl FnOnce(&mut dyn Service)) {
        let (from, of_clients) = (self.clock.cycles(), self.clients.ticks.get());
        work(&mut *self.service);
        let spent = self.clock.cycles().0.wrapping_sub(from.0);
        let of_clients = self.clients.ticks.get().wrapping_sub(of_clients);
        self.ticks.0.add(spent.wrapping_sub(of_clients));
    }
}

impl Service for Metered {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.timed(|service| service.process(batch, shards, out));
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        self.service.shard_arrived(shard);
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.timed(|service| service.tick(shards, out, now));
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.service.finish(shards, out, now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.service.next_deadline()
    }
}
