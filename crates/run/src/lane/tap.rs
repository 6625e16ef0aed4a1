//! What is noted about packets that are followed.

use rheostat_base::LaneId;
use rheostat_io::layer::capture::LaneTap;
use rheostat_io::layer::trace::Step;
use rheostat_packet::Mbuf;
use rheostat_steer::Side;

use super::{Arrival, ArrivalKind};

/// Notes where a packet belongs, and that it goes there if that is another lane.
#[cold]
pub(super) fn note_place(
    tap: &mut LaneTap,
    packet: &Mbuf,
    arrival: &Arrival,
    (here, owner): (LaneId, LaneId),
) {
    let kind = match arrival.kind {
        ArrivalKind::Flow => "flow",
        ArrivalKind::IcmpError => "icmp error",
        ArrivalKind::Fragment => "fragment",
        ArrivalKind::Orphan => "no flow",
    };
    let key = (arrival.kind != ArrivalKind::Orphan).then_some(arrival.key);
    let from_inside = arrival.side == Side::Inside;
    tap.note(packet, Step::Placed { kind, key, from_inside, shard: arrival.shard, owner });
    if owner != here {
        tap.note(packet, Step::HandedTo(owner));
    }
}
