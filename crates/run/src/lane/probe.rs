//! The second stage of a packet's way: where in its shard's table its flow may be. For many packets in one loop, so that what
//! the functions read behind it is on its way while others are looked at. The line of the index that it reads was asked for
//! when the packet was placed.

use rheostat_state::Probe;

use super::PacketInfo;
use crate::shard_set::ShardSet;

/// Probes the flows of all packets that have not been probed behind their classification. A hint for the lookup, as packets of
/// the same burst make and end flows.
#[inline(never)]
pub(super) fn all(infos: &[PacketInfo], shards: &ShardSet, probes: &mut [Probe]) {
    for (info, probe) in infos.iter().zip(probes).filter(|(_, probe)| probe.is_pending()) {
        *probe = if info.has_key() { shards.probe(info) } else { Probe::NONE };
    }
}
