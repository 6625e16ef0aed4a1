//! The least that a service can do with packets that have an owner.

use rheostat_run::{Arrivals, Output, Service, ShardSet};

/// Sends every packet back to the device it came from, and looks nothing up.
pub(crate) struct Bounce;

impl Service for Bounce {
    fn process(&mut self, arrivals: &mut Arrivals, _: &mut ShardSet, out: &mut Output) {
        for (packet, _) in arrivals.drain() {
            out.send(packet.device(), packet);
        }
    }
}
