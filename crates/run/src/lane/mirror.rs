//! What is noted about packets that are followed.

use rheostat_base::LaneId;
use rheostat_capture::LaneMirror;
use rheostat_capture::trace::Step;
use rheostat_packet::Mbuf;
use rheostat_steer::Side;

use super::{PacketInfo, PacketKind};

/// Notes where a packet belongs, and that it goes there if that is another lane.
#[cold]
pub(super) fn note_place(
    mirror: &mut LaneMirror,
    packet: &Mbuf,
    info: &PacketInfo,
    (here, owner): (LaneId, LaneId),
) {
    let kind = match info.kind() {
        PacketKind::Flow => "flow",
        PacketKind::IcmpError => "icmp error",
        PacketKind::Fragment => "fragment",
        PacketKind::NonFlow => "no flow",
    };
    let key = (info.kind() != PacketKind::NonFlow).then_some(info.key());
    let from_inside = info.side() == Side::Inside;
    mirror.note(packet, Step::Placed { kind, key, from_inside, shard: info.shard, owner });
    if owner != here {
        mirror.note(packet, Step::HandedTo(owner));
    }
}
