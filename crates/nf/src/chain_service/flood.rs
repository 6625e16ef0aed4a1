//! Packets that leave on several devices.

use rheostat_base::DropReason;
use rheostat_packet::Mbuf;
use rheostat_run::Output;

use crate::device_set::DeviceSet;

/// Sends a packet on each of `devices`: itself on the last, copies on the others. A copy for which there is no
/// buffer is counted as made and dropped, so that what enters the account still leaves it.
#[cold]
#[inline(never)]
pub(super) fn send(packet: Mbuf, devices: DeviceSet, out: &mut Output) {
    let Some(last) = devices.iter().last() else {
        return out.drop(packet, DropReason::NoRoute);
    };
    for device in devices.without(last).iter() {
        if let Some(mut copy) = out.copy(&packet) {
            // Only one of them is traced: it would seem to leave several times.
            copy.set_mark(0);
            out.send(device, copy);
        }
    }
    out.send(last, packet);
}
