//! What tests of fast paths state about their packets.

use rheostat_base::{ShardId, Time};
use rheostat_packet::{FlowKey, Headers, LinkType};
use rheostat_run::{PacketInfo, PacketKind, Placement};
use rheostat_state::FlowHash;
use rheostat_steer::Side;

/// What is known of a packet of IP without a link header, of the flow of this key, in the first shard, from inside if it goes out.
pub(crate) fn usual_info(packet: &[u8], key: FlowKey, outbound: bool) -> PacketInfo {
    let headers = Headers::parse_bytes(packet, packet.len(), LinkType::Raw).expect("whole headers");
    let placement = Placement {
        key,
        hash: FlowHash(0),
        shard: ShardId(0),
        side: if outbound { Side::Inside } else { Side::Outside },
        forward: outbound,
        kind: PacketKind::Flow,
        is_usual: true,
    };
    PacketInfo::of(headers, Time::ZERO, &placement)
}
