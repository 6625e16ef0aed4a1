//! Packets that leave on several devices.

use rheostat_base::DropReason;
use rheostat_packet::{AllocError, Mbuf, PoolCache};
use rheostat_run::{Egress, LaneCounters};

use crate::device_set::DeviceSet;

/// Sends a packet on each of `devices`: itself on the last, copies on the others. A copy for which there is no
/// buffer is counted as made and dropped, so that what enters the account still leaves it.
#[cold]
#[inline(never)]
pub(super) fn send(
    packet: Mbuf,
    devices: DeviceSet,
    pool: &mut PoolCache,
    counters: &LaneCounters,
    out: &mut Egress,
) {
    let Some(last) = devices.iter().last() else {
        return out.discard(packet, DropReason::NoRoute, pool, counters);
    };
    for device in devices.without(last).iter() {
        counters.copied.increment();
        match pool.copy(&packet) {
            Ok(mut copy) => {
                // Only one of them is followed: it would seem to leave several times.
                copy.set_mark(0);
                out.send(device, copy, pool, counters);
            }
            Err(AllocError::Empty) => counters.dropped.add(DropReason::NoBuffer, 1),
            Err(AllocError::Oversize) => counters.dropped.add(DropReason::Oversize, 1),
        }
    }
    out.send(last, packet, pool, counters);
}
