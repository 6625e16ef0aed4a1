//! The order of packets within flows, for services that keep nothing else of them.

use rheostat_base::Time;
use rheostat_packet::{FlowKey, Mbuf};
use rheostat_state::{FlowHash, Shard};

/// What [`note_arrival`] found: what the counters of the lane are to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The packet is the first of its flow.
    pub is_new: bool,
    /// A packet of the flow that arrived later was noted before it.
    pub is_reordered: bool,
}

/// Notes a packet in the entry of its flow, which is created for the first one. `forward` is whether it travels from the key's
/// first endpoint to the second; each direction has an order of its own.
///
/// # Panics
/// When the shard's table is full.
pub fn note_arrival(
    shard: &mut Shard,
    packet: &Mbuf,
    (hash, key): (FlowHash, &FlowKey),
    forward: bool,
    now: Time,
) -> Noted {
    let found = shard.table.find_now(hash, key);
    let flow = found.unwrap_or_else(|| shard.table.insert(hash, key, now).expect("room"));
    let mut entry = shard.table.flow(flow).expect("found or inserted above");
    let is_reordered = entry.note_arrival(forward, packet.device(), packet.stamp());
    Noted { is_new: found.is_none(), is_reordered }
}
