//! What can be asked of a device while its queues run elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use rheostat_steer::Fence;

use super::device::Attachment;
use crate::backend::interface_state;
use crate::backend::socket_counters::SocketCounters;
use crate::device::{DeviceCounters, DeviceMonitor, InterfaceMonitor};
use crate::lock::lock;

/// What the device counts; stays when it is gone.
pub(super) struct Counters {
    pub(super) lanes: SocketCounters,
    /// What the kernel has dropped for want of room, by lane, when it was last read.
    queue_full: Mutex<Vec<u64>>,
}

/// Sees the device as long as it is there.
pub(super) struct PacketMonitor {
    pub(super) interface: String,
    pub(super) counters: Arc<Counters>,
    pub(super) attachment: Weak<Attachment>,
    /// Passes when nothing arrives any more; there once the device is told to stop.
    pub(super) stopped: Mutex<Option<Fence>>,
}

impl Counters {
    pub(super) fn new(lanes: usize) -> Counters {
        Counters { lanes: SocketCounters::new(lanes), queue_full: Mutex::new(vec![0; lanes]) }
    }

    pub(super) fn queue_full(&self) -> MutexGuard<'_, Vec<u64>> {
        // Sums only: a panic cannot leave them half changed.
        lock(&self.queue_full)
    }
}

impl DeviceMonitor for PacketMonitor {
    fn counters(&self) -> DeviceCounters {
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.note_drops();
        }
        let mut counters = self.counters.lanes.sum(self.counters.queue_full().clone());
        for (full, lane) in counters.queue_full.iter_mut().zip(&self.counters.lanes.arrivals) {
            *full += lane.no_room.get();
        }
        counters
    }

    fn is_exhausted(&self) -> bool {
        let Some(attachment) = self.attachment.upgrade() else { return true };
        let is_closed = lock(&self.stopped).as_ref().is_some_and(Fence::passed);
        is_closed && attachment.rings.iter().all(|ring| ring.backlog() == 0)
    }

    fn stop(&self) {
        if let Some(attachment) = self.attachment.upgrade() {
            lock(&self.stopped).get_or_insert_with(|| attachment.programs.object.stop());
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = &self.interface;
        if let Some(attachment) = self.attachment.upgrade() {
            let is_same = |index: u32| index == attachment.interface_index;
            match attachment.interface.index().is_ok_and(is_same) {
                true => warnings.extend(interface_state::down(name, &attachment.interface)),
                false => warnings.push(interface_state::gone(name)),
            }
        }
        let refused = self.counters.lanes.sent(|lane| &lane.too_long);
        if refused > 0 {
            warnings.push(format!("`{name}` does not carry {refused} packets: they are too long"));
        }
        warnings
    }

    fn notes(&self) -> Vec<String> {
        let Some(attachment) = self.attachment.upgrade() else { return Vec::new() };
        let alone = if attachment.exclusive { "not " } else { "" };
        vec![format!(
            "AF_PACKET on `{}`, {} lane(s); what it takes is {alone}seen by the kernel's own stack",
            self.interface,
            attachment.sockets.len(),
        )]
    }

    fn interface(&self) -> Option<&dyn InterfaceMonitor> {
        Some(self)
    }
}

impl InterfaceMonitor for PacketMonitor {
    fn let_go(&self) {
        self.stop();
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.unlock();
        }
    }
}
