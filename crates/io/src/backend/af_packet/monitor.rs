//! What can be asked of a device while its queues run elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rheostat_base::Counter;
use rheostat_steer::Fence;

use super::device::Attachment;
use super::transmit::Sent;
use crate::backend::intake::Arrivals;
use crate::device::{DeviceCounters, DeviceMonitor};

/// What the device counts; stays when it is gone.
pub(super) struct Counters {
    /// By lane.
    pub(super) arrivals: Vec<Arc<Arrivals>>,
    pub(super) sent: Vec<Arc<Sent>>,
    /// What the kernel has dropped for want of room, by lane, when it was last read.
    pub(super) queue_full: Mutex<Vec<u64>>,
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
        Counters {
            arrivals: (0..lanes).map(|_| Arc::default()).collect(),
            sent: (0..lanes).map(|_| Arc::default()).collect(),
            queue_full: Mutex::new(vec![0; lanes]),
        }
    }

    fn arrived(&self, count: impl Fn(&Arrivals) -> &Counter) -> u64 {
        self.arrivals.iter().map(|lane| count(lane).get()).sum()
    }

    fn sent(&self, count: impl Fn(&Sent) -> &Counter) -> u64 {
        self.sent.iter().map(|lane| count(lane).get()).sum()
    }

    pub(super) fn queue_full(&self) -> MutexGuard<'_, Vec<u64>> {
        // Sums only: a panic cannot leave them half changed.
        self.queue_full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacketMonitor {
    fn stopped(&self) -> MutexGuard<'_, Option<Fence>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceMonitor for PacketMonitor {
    fn counters(&self) -> DeviceCounters {
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.note_drops();
        }
        let counters = &self.counters;
        let mut queue_full = counters.queue_full().clone();
        let arrived = counters.arrived(|lane| &lane.packets) + queue_full.iter().sum::<u64>();
        for (full, lane) in queue_full.iter_mut().zip(&counters.arrivals) {
            *full += lane.no_room.get();
        }
        DeviceCounters {
            arrived,
            arrived_bytes: counters.arrived(|lane| &lane.bytes),
            queue_full,
            no_buffer: counters.arrived(|lane| &lane.no_buffer),
            fill_empty: 0,
            oversize: counters.arrived(|lane| &lane.oversize),
            malformed: counters.arrived(|lane| &lane.malformed),
            sent: counters.sent(|lane| &lane.packets),
            sent_bytes: counters.sent(|lane| &lane.bytes),
            // The kernel copies each.
            copied: counters.sent(|lane| &lane.packets),
            send_calls: counters.sent(|lane| &lane.calls),
        }
    }

    fn is_exhausted(&self) -> bool {
        let Some(attachment) = self.attachment.upgrade() else { return true };
        let is_closed = self.stopped().as_ref().is_some_and(Fence::passed);
        is_closed && attachment.rings.iter().all(|ring| ring.backlog() == 0)
    }

    fn stop(&self) {
        if let Some(attachment) = self.attachment.upgrade() {
            self.stopped().get_or_insert_with(|| attachment.programs.stop());
        }
    }

    fn let_go(&self) {
        self.stop();
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.unlock();
        }
    }

    fn progress(&self) -> Option<f64> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = &self.interface;
        if let Some(attachment) = self.attachment.upgrade() {
            let is_same = |index: u32| index == attachment.interface_index;
            if !attachment.interface.index().is_ok_and(is_same) {
                warnings
                    .push(format!("interface `{name}` is gone; the device neither gets nor sends"));
            } else if attachment.interface.is_up().is_ok_and(|up| !up) {
                warnings.push(format!("interface `{name}` is down: `ip link set dev {name} up`"));
            }
        }
        let refused = self.counters.sent(|lane| &lane.too_long);
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
}
