//! The least that a service can do with packets that have an owner.

use rheostat_base::Time;
use rheostat_packet::Burst;
use rheostat_run::{Arrivals, Output, Service, ShardSet};

/// Sends every packet back to the device it came from, and looks nothing up.
pub(crate) struct Bounce;

impl Service for Bounce {
    type Local = ();

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, _: &mut ShardSet<()>, out: &mut Output) {
        arrivals.drain(|packet, _| out.send(packet.device(), packet));
    }

    fn relay(&mut self, _: &mut Burst, _: &mut Output, _: Time) {
        unreachable!("a service with state is given arrivals")
    }

    fn tick(&mut self, _: &mut ShardSet<()>, _: &mut Output, _: Time) {}

    fn finish(&mut self, _: &mut ShardSet<()>, _: &mut Output, _: Time) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
