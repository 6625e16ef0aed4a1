//! Services that are as small as a test needs.

use rheostat_base::DeviceId;
use rheostat_packet::Mbuf;
use rheostat_run::{Batch, Output, PacketInfo, Service, ShardSet};

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
    if shard.table.find_now(info.hash, &info.key()).is_none() {
        shard.table.insert(info.hash, &info.key(), info.now).expect("room");
        out.counters().flows_created.increment();
    }
    let flow = shard.table.find_now(info.hash, &info.key()).expect("there now");
    let mut flow = shard.table.flow(flow).expect("there now");
    if flow.note_arrival(info.forward(), packet.device(), packet.stamp()) {
        out.counters().reordered.increment();
    }
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
