//! The least that a service can do with packets that have an owner.

use rheostat_run::{Batch, Output, Service, ShardSet};

/// Sends every packet back to the device it came from, and looks nothing up.
pub(crate) struct Bounce;

impl Service for Bounce {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, out: &mut Output) {
        for (packet, _) in batch.drain() {
            out.send(packet.device(), packet);
        }
    }
}
