//! Services that are as small as a test needs.

use rheostat_base::DeviceId;
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, Output, PacketInfo, Service, ShardSet};

use crate::flow_order::note_arrival;

/// A service with state that hands each packet to a closure.
struct PerPacket<F> {
    handle: F,
}

/// A service that calls `handle` for each packet, which sends, consumes or drops it.
pub fn per_packet<F>(handle: F) -> Box<dyn Service>
where
    F: FnMut(Mbuf, &PacketInfo, &mut ShardSet, &mut Output) + Send + 'static,
{
    Box::new(PerPacket { handle })
}

/// A service that sends every packet to the first device.
pub fn bounce() -> Box<dyn Service> {
    per_packet(|packet, _, _, out| out.send(DeviceId(0), packet))
}

/// Enters the packet's flow into its shard's table if it is new, and counts the packet as reordered if one that came
/// later was here before it.
///
/// # Panics
/// When the lane does not own the packet's shard, or the table is full.
pub fn note_order(packet: &Mbuf, info: &PacketInfo, shards: &mut ShardSet, out: &Output) {
    let shard = shards.get_mut(info.shard).expect("a packet meets its shard");
    let flow = (info.hash, &info.key());
    let noted = note_arrival(shard, packet, flow, info.forward(), info.now);
    out.counters().flows_created.add(noted.is_new.into());
    out.counters().reordered.add(noted.is_reordered.into());
}

impl<F> Service for PerPacket<F>
where
    F: FnMut(Mbuf, &PacketInfo, &mut ShardSet, &mut Output) + Send + 'static,
{
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        for (packet, info) in batch.drain() {
            (self.handle)(packet, info, shards, out);
        }
    }
}
