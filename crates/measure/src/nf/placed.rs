//! The least that a service with state does.

use rheostat_run::{Batch, Output, Service, ShardSet};

use crate::memory::{LAN, WAN};

/// Sends on what has come to the owner of its shard, and looks nothing up.
pub(super) struct Forwarder;

impl Service for Forwarder {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, out: &mut Output) {
        for (packet, _) in batch.drain() {
            let device = if packet.device() == LAN { WAN } else { LAN };
            out.send(device, packet);
        }
    }
}
