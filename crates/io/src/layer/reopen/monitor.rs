//! What stands behind the queues of a device, and what is counted over all that did.

use std::sync::Arc;

use rheostat_steer::IndirectionTable;

use super::device::Shared;
use crate::device::{Device, DeviceCounters, DeviceMonitor, InterfaceMonitor};
use crate::lock::lock;
use crate::sharing::SharingCounters;

/// What stands behind the queues of a device.
pub(super) struct Behind {
    /// Absent once the device is closed.
    pub(super) device: Option<Box<dyn Device>>,
    pub(super) monitor: Arc<dyn DeviceMonitor>,
    pub(super) table: Option<Arc<dyn IndirectionTable>>,
    /// Devices before it from which lanes may still receive.
    leaving: Vec<Arc<dyn DeviceMonitor>>,
    /// What those before them have counted.
    past: DeviceCounters,
    past_sharing: Vec<SharingCounters>,
    is_stopped: bool,
}

impl Behind {
    pub(super) fn new(device: Box<dyn Device>) -> Behind {
        Behind {
            monitor: device.monitor(),
            table: device.table(),
            device: Some(device),
            leaving: Vec::new(),
            past: DeviceCounters::default(),
            past_sharing: Vec::new(),
            is_stopped: false,
        }
    }

    /// Puts a device in the place of the old one, which is returned; `None`, and nothing is changed, when no
    /// packets are to arrive any more.
    pub(super) fn replace(&mut self, device: Box<dyn Device>) -> Option<Box<dyn Device>> {
        if self.is_stopped || self.device.is_none() {
            return None;
        }
        let table = device.table();
        if let (Some(old), Some(new)) = (&self.table, &table) {
            let entries = old.read();
            if new.read() != entries {
                // Fits: the same configuration has made both. A lane that gets a packet late hands it over.
                let _ = new.rewrite(&entries);
            }
        }
        self.leaving.push(std::mem::replace(&mut self.monitor, device.monitor()));
        self.table = table;
        self.device.replace(device)
    }

    /// The devices before this one are closed.
    pub(super) fn settle(&mut self) {
        for monitor in std::mem::take(&mut self.leaving) {
            add(&mut self.past, &monitor.counters());
            add_sharing(&mut self.past_sharing, &monitor.sharing());
        }
    }

    pub(super) fn close(&mut self) -> Option<Box<dyn Device>> {
        self.device.take()
    }
}

/// Adds counters up, field by field.
fn add(sum: &mut DeviceCounters, other: &DeviceCounters) {
    sum.queue_full.resize(sum.queue_full.len().max(other.queue_full.len()), 0);
    for (sum, full) in sum.queue_full.iter_mut().zip(&other.queue_full) {
        *sum += full;
    }
    sum.arrived += other.arrived;
    sum.arrived_bytes += other.arrived_bytes;
    sum.no_buffer += other.no_buffer;
    sum.fill_empty += other.fill_empty;
    sum.oversize += other.oversize;
    sum.send_calls += other.send_calls;
    sum.malformed += other.malformed;
    sum.sent += other.sent;
    sum.sent_bytes += other.sent_bytes;
    sum.copied += other.copied;
}

/// Adds up what lanes that share queues have counted, queue by queue.
fn add_sharing(sum: &mut Vec<SharingCounters>, other: &[SharingCounters]) {
    sum.resize(sum.len().max(other.len()), SharingCounters::default());
    sum.iter_mut().zip(other).for_each(|(sum, other)| sum.add(other));
}

/// Sees whatever stands behind the queues.
pub(super) struct ReopenableMonitor(pub(super) Arc<Shared>);

impl ReopenableMonitor {
    /// The view of the device behind the queues now.
    fn latest(&self) -> Arc<dyn DeviceMonitor> {
        lock(&self.0.behind).monitor.clone()
    }
}

impl DeviceMonitor for ReopenableMonitor {
    fn counters(&self) -> DeviceCounters {
        let behind = lock(&self.0.behind);
        let mut sum = behind.past.clone();
        for monitor in behind.leaving.iter().chain([&behind.monitor]) {
            add(&mut sum, &monitor.counters());
        }
        sum
    }

    fn is_exhausted(&self) -> bool {
        let behind = lock(&self.0.behind);
        let mut monitors = behind.leaving.iter().chain([&behind.monitor]);
        behind.is_stopped && monitors.all(|monitor| monitor.is_exhausted())
    }

    fn stop(&self) {
        let mut behind = lock(&self.0.behind);
        behind.is_stopped = true;
        let monitor = behind.monitor.clone();
        // Stopping may take a moment.
        drop(behind);
        monitor.stop();
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        let behind = lock(&self.0.behind);
        let mut sum = behind.past_sharing.clone();
        for monitor in behind.leaving.iter().chain([&behind.monitor]) {
            add_sharing(&mut sum, &monitor.sharing());
        }
        sum
    }

    fn warnings(&self) -> Vec<String> {
        self.latest().warnings()
    }

    fn notes(&self) -> Vec<String> {
        self.latest().notes()
    }

    fn interface(&self) -> Option<&dyn InterfaceMonitor> {
        Some(self)
    }
}

impl InterfaceMonitor for ReopenableMonitor {
    /// Letting go of the interface is up to the [`super::Reopener`].
    fn let_go(&self) {
        self.stop();
    }

    fn set_mtu(&self, mtu: u32) {
        if let Some(interface) = self.latest().interface() {
            interface.set_mtu(mtu);
        }
    }

    fn longest_packet(&self) -> Option<u32> {
        self.latest().interface()?.longest_packet()
    }

    fn is_detached(&self) -> bool {
        self.latest().interface().is_some_and(|interface| interface.is_detached())
    }
}
