//! Requests that are handled apart from their connections: their outcomes enter the shards of these.

use rheostat_base::ShardId;
use rheostat_run::{AnyPoolClient, DeferredWork, Output, ShardSet};

use super::TcpService;
use super::notes::Cause;
use crate::connections::Connections;
use crate::driver::Driver;

impl<D: Driver> DeferredWork for TcpService<D> {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        self.driver.deferred()?.pool_client()
    }

    fn work(&mut self, out: &mut Output) -> bool {
        let worked = self.driver.deferred().is_some_and(|requests| requests.work());
        if worked {
            self.pace.end_work(out);
        }
        worked
    }

    fn expects_long_work(&mut self) -> bool {
        self.pace.had_long_work() && self.driver.deferred().is_some_and(|of| of.has_work())
    }

    fn settles_by_shard(&self) -> bool {
        true
    }

    fn unsettled(&mut self) -> Option<ShardId> {
        self.driver.deferred()?.unsettled()
    }

    fn settle(&mut self, shards: &mut ShardSet, out: &mut Output) {
        self.pace.advance(out);
        self.noted.begin_without_packet(Cause::Handled);
        while let Some(requests) = self.driver.deferred()
            && let Some(id) = requests.unsettled()
            && let Some(shard) = shards.get_mut(id)
        {
            let (_, connections) = shard.split::<Connections<D::Stream>>();
            if let Some(slot) = requests.settle(Some(&mut *connections)) {
                self.advance(slot, None, connections, out);
                self.pace.flush_if_due(out);
            }
        }
        self.pace.advance(out);
    }

    fn abandon(&mut self) {
        if let Some(requests) = self.driver.deferred() {
            requests.settle(None);
        }
    }
}
