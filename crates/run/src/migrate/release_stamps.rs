//! When shards left a lane, told by the stamps of devices.
//!
//! Some devices can only stamp packets as lanes receive them. There, a packet that comes to a shard's former
//! owner late has a younger stamp than what the next owner processed meanwhile, although it is older: it was
//! placed by the old entries of the table. With the stamp of the departure, the check of order sees it as it is.

use std::collections::HashMap;

use rheostat_base::{DeviceId, ShardId};
use rheostat_io::RxQueue;

/// The last departure of each shard that has ever left.
#[derive(Debug, Default)]
pub(crate) struct ReleaseStamps(HashMap<ShardId, Box<[Option<u32>]>>);

impl ReleaseStamps {
    /// Notes that a shard leaves now.
    pub(crate) fn note(&mut self, shard: ShardId, queues: &[Box<dyn RxQueue>]) {
        let stamps = queues.iter().map(|queue| queue.order().stamping.draw());
        // Moves are not to allocate again and again.
        match self.0.get_mut(&shard) {
            Some(known) => known.iter_mut().zip(stamps).for_each(|(old, new)| *old = new),
            None => {
                self.0.insert(shard, stamps.collect());
            }
        }
    }

    /// The stamp of a packet that `device` had placed here before the shard left; `None` where the
    /// device's own stamps show the order of arrival.
    pub(crate) fn stamp(&self, shard: ShardId, device: DeviceId) -> Option<u32> {
        self.0.get(&shard).and_then(|stamps| *stamps.get(device.index())?)
    }
}
