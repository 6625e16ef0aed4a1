//! What can be asked of a device while its queues run elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rheostat_base::Counter;
use rheostat_steer::Fence;

use super::attachment::Attachment;
use super::transmit::Sent;
use crate::backend::intake::Arrivals;
use crate::device::{DeviceCounters, DeviceMonitor};

/// What the device counts; stays when it is gone.
pub(super) struct Counters {
    /// By lane.
    pub(super) arrivals: Vec<Arc<Arrivals>>,
    pub(super) sent: Vec<Arc<Sent>>,
}

/// Sees the device as long as it is there.
pub(super) struct TapMonitor {
    pub(super) interface: String,
    pub(super) counters: Arc<Counters>,
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

impl Counters {
    pub(super) fn new(lanes: usize) -> Counters {
        Counters {
            arrivals: (0..lanes).map(|_| Arc::default()).collect(),
            sent: (0..lanes).map(|_| Arc::default()).collect(),
        }
    }

    fn arrived(&self, count: impl Fn(&Arrivals) -> &Counter) -> u64 {
        self.arrivals.iter().map(|lane| count(lane).get()).sum()
    }

    fn sent(&self, count: impl Fn(&Sent) -> &Counter) -> u64 {
        self.sent.iter().map(|lane| count(lane).get()).sum()
    }
}

impl TapMonitor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packets that the kernel dropped for want of room. What it drops because the device has stopped
    /// does not count.
    fn queue_full(&self) -> u64 {
        let mut state = self.state();
        if let Some(attachment) = self.attachment.upgrade().filter(|_| state.stopped.is_none()) {
            // Never back: the interface may have been taken away.
            state.queue_full = attachment.kernel_drops().unwrap_or(0).max(state.queue_full);
        }
        state.queue_full
    }
}

impl DeviceMonitor for TapMonitor {
    fn counters(&self) -> DeviceCounters {
        let counters = &self.counters;
        let queue_full = self.queue_full();
        DeviceCounters {
            arrived: counters.arrived(|lane| &lane.packets) + queue_full,
            arrived_bytes: counters.arrived(|lane| &lane.bytes),
            // The kernel does not distinguish its queues.
            queue_full: vec![queue_full],
            no_buffer: counters.arrived(|lane| &lane.no_buffer),
            fill_empty: 0,
            oversize: counters.arrived(|lane| &lane.oversize),
            malformed: counters.arrived(|lane| &lane.malformed),
            sent: counters.sent(|lane| &lane.packets),
            sent_bytes: counters.sent(|lane| &lane.bytes),
            // The kernel copies each.
            copied: counters.sent(|lane| &lane.packets),
            send_calls: 0,
        }
    }

    fn is_exhausted(&self) -> bool {
        let Some(attachment) = self.attachment.upgrade() else { return true };
        let is_closed = self.state().stopped.as_ref().is_some_and(Fence::passed);
        is_closed && !(0..attachment.queues.len()).any(|lane| attachment.waits(lane))
    }

    fn stop(&self) {
        self.queue_full();
        if let Some(attachment) = self.attachment.upgrade() {
            self.state().stopped.get_or_insert_with(|| attachment.programs.stop());
        }
    }

    fn progress(&self) -> Option<f64> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        let name = &self.interface;
        let Some(attachment) = self.attachment.upgrade() else { return Vec::new() };
        if attachment.interface.index().is_err() {
            vec![format!("interface `{name}` is gone; the device neither gets nor sends")]
        } else if attachment.interface.is_up().is_ok_and(|up| !up) {
            vec![format!("interface `{name}` is down: `ip link set dev {name} up`")]
        } else {
            Vec::new()
        }
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("tap `{}`, {} queue(s)", self.interface, self.counters.arrivals.len())]
    }
}
