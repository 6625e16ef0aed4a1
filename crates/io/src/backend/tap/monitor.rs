//! What can be asked of a device while its queues run elsewhere.

use std::sync::{Arc, Mutex, Weak};

use rheostat_steer::Fence;

use super::attachment::Attachment;
use crate::backend::interface_state;
use crate::backend::socket_counters::SocketCounters;
use crate::device::{DeviceCounters, DeviceMonitor};
use crate::lock::lock;

/// Sees the device as long as it is there.
pub(super) struct TapMonitor {
    pub(super) interface: String,
    pub(super) counters: Arc<SocketCounters>,
    pub(super) attachment: Weak<Attachment>,
    pub(super) state: Mutex<State>,
}

/// What is known of the interface.
#[derive(Default)]
pub(super) struct State {
    /// Passes when nothing arrives any more; there once the device is told to stop.
    stopped: Option<Fence>,
    /// Packets that the kernel dropped for want of room, when that was last read.
    queue_full: u64,
}

impl TapMonitor {
    /// Packets that the kernel dropped for want of room. What it drops because the device has stopped
    /// does not count.
    fn queue_full(&self) -> u64 {
        let mut state = lock(&self.state);
        if let Some(attachment) = self.attachment.upgrade().filter(|_| state.stopped.is_none()) {
            // Never back: the interface may have been taken away.
            state.queue_full = attachment.kernel_drops().unwrap_or(0).max(state.queue_full);
        }
        state.queue_full
    }
}

impl DeviceMonitor for TapMonitor {
    fn counters(&self) -> DeviceCounters {
        // The kernel does not distinguish its queues.
        self.counters.sum(vec![self.queue_full()])
    }

    fn is_exhausted(&self) -> bool {
        let Some(attachment) = self.attachment.upgrade() else { return true };
        let is_closed = lock(&self.state).stopped.as_ref().is_some_and(Fence::passed);
        is_closed && !(0..attachment.queues.len()).any(|lane| attachment.waits(lane))
    }

    fn stop(&self) {
        self.queue_full();
        if let Some(attachment) = self.attachment.upgrade() {
            lock(&self.state).stopped.get_or_insert_with(|| attachment.programs.object.stop());
        }
    }

    fn warnings(&self) -> Vec<String> {
        let name = &self.interface;
        let Some(attachment) = self.attachment.upgrade() else { return Vec::new() };
        match attachment.interface.index() {
            Ok(_) => interface_state::down(name, &attachment.interface).into_iter().collect(),
            Err(_) => vec![interface_state::gone(name)],
        }
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("tap `{}`, {} queue(s)", self.interface, self.counters.arrivals.len())]
    }
}
