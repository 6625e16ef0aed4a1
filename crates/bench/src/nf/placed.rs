//! The least that a service with state does.

use rheostat_base::Time;
use rheostat_packet::Burst;
use rheostat_run::{Arrivals, Output, Service, ShardSet};

use crate::memory::{LAN, WAN};

/// Sends on what has come to the owner of its shard, and looks nothing up.
pub(super) struct Placed;

impl Service for Placed {
    type Local = ();

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, _: &mut ShardSet<()>, out: &mut Output) {
        arrivals.drain(|packet, _| {
            let device = if packet.device() == LAN { WAN } else { LAN };
            out.send(device, packet);
        });
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
