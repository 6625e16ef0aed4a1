//! Services that are as small as a test needs.

use std::marker::PhantomData;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Burst, Mbuf};
use rheostat_run::{Arrival, Arrivals, Output, Service, ShardSet};

/// A service with state that hands each packet to a closure.
pub struct PerPacket<L, F> {
    handle: F,
    local: PhantomData<fn() -> L>,
}

/// A service that calls `handle` for each packet, with `L` as state per shard. `handle` sends, consumes or drops the
/// packet.
pub fn per_packet<L, F>(handle: F) -> PerPacket<L, F>
where
    L: Send + 'static,
    F: FnMut(Mbuf, &Arrival, &mut ShardSet<L>, &mut Output) + Send + 'static,
{
    PerPacket { handle, local: PhantomData }
}

/// A service that sends every packet to the first device.
pub type Bounce = PerPacket<(), fn(Mbuf, &Arrival, &mut ShardSet<()>, &mut Output)>;

/// A [`Bounce`].
pub fn bounce() -> Bounce {
    per_packet(|packet, _, _, out| out.send(DeviceId(0), packet))
}

/// Enters the packet's flow into its shard's table if it is new, and counts the packet as reordered if one that came
/// later was here before it.
///
/// # Panics
/// When the lane does not own the packet's shard, or the table is full.
pub fn note_order<L>(packet: &Mbuf, arrival: &Arrival, shards: &mut ShardSet<L>, out: &Output) {
    let shard = shards.get_mut(arrival.shard).expect("a packet meets its shard");
    if shard.table.find_now(arrival.hash, &arrival.key).is_none() {
        shard.table.insert(arrival.hash, &arrival.key, arrival.now).expect("room");
        out.counters().flows_created.increment();
    }
    let flow = shard.table.find_now(arrival.hash, &arrival.key).expect("there now");
    let mut flow = shard.table.flow(flow).expect("there now");
    if flow.note_arrival(arrival.forward, packet.device(), packet.stamp()) {
        out.counters().reordered.increment();
    }
}

impl<L, F> Service for PerPacket<L, F>
where
    L: Send + 'static,
    F: FnMut(Mbuf, &Arrival, &mut ShardSet<L>, &mut Output) + Send + 'static,
{
    type Local = L;

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, shards: &mut ShardSet<L>, out: &mut Output) {
        arrivals.drain(|packet, arrival| (self.handle)(packet, arrival, shards, out));
    }

    fn relay(&mut self, _: &mut Burst, _: &mut Output, _: Time) {
        unreachable!("a service with state is given arrivals")
    }

    fn tick(&mut self, _: &mut ShardSet<L>, _: &mut Output, _: Time) {}

    fn finish(&mut self, _: &mut ShardSet<L>, _: &mut Output, _: Time) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
