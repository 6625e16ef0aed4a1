//! The second stage of a packet's way: where in its shard's table its flow may be. For all packets of a burst in one loop, so
//! that what the functions read behind it is on its way while others are looked at. The line of the index that it reads was
//! asked for when the packet was placed.

use rheostat_run::{PacketInfo, ShardSet};
use rheostat_state::Probe;

use super::has_key;

/// Appends what is found out about each packet. A hint for the lookup, as packets of the same burst make and end flows.
#[inline(never)]
pub(super) fn all(found: &[PacketInfo], shards: &ShardSet, probes: &mut Vec<Probe>) {
    probes.extend(found.iter().map(
        |info| match shards.get(info.shard).filter(|_| has_key(info)) {
            Some(shard) => shard.table.probe(info.hash),
            None => Probe::default(),
        },
    ));
}
