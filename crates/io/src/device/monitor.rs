//! A view of a device while its queues run elsewhere.

use rheostat_base::Time;

use super::{DeviceCounters, SourceWork};
use crate::sharing::SharingCounters;

/// A view of a device while its queues run elsewhere.
pub trait DeviceMonitor: Send + Sync {
    /// The counters as last written.
    fn counters(&self) -> DeviceCounters;

    /// Whether the source behind the device has ended for good and every queue is empty.
    fn is_exhausted(&self) -> bool;

    /// Stops the source: nothing more arrives, and what has arrived can still be received.
    fn stop(&self);

    /// The interface behind the device, where it can be lost or have another MTU.
    fn interface(&self) -> Option<&dyn InterfaceMonitor> {
        None
    }

    /// The source of the packets, where it is part of the process.
    fn source(&self) -> Option<&dyn SourceMonitor> {
        None
    }

    /// The counters of the lanes that share a receive queue, by queue.
    fn sharing(&self) -> Vec<SharingCounters> {
        Vec::new()
    }

    /// Faults of the source, to be shown at the end, such as a capture that is cut off. The records concerned are in
    /// [`DeviceCounters::malformed`].
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// How the device works where that depends on the machine, to be shown at the start.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A view of the interface behind a device.
pub trait InterfaceMonitor {
    /// The interface is gone, or has another name: nothing more is taken from it, and nothing of this
    /// device is in the way of one that opens an interface of the name anew. What has arrived can still be
    /// received. May take a second.
    fn let_go(&self);

    /// Whether another program has detached the device from the interface, which exists: nothing arrives any more. Takes
    /// a system call.
    fn is_detached(&self) -> bool {
        false
    }

    /// Sets another MTU of the device's link, in bytes of IP: transmit queues no longer take longer packets,
    /// where the operating system would not report them.
    fn set_mtu(&self, _mtu: u32) {}

    /// The longest packet that the device can receive as it was opened, in bytes of IP; `None` where only its
    /// link sets a bound.
    fn longest_packet(&self) -> Option<u32> {
        None
    }
}

/// A view of a source of packets.
pub trait SourceMonitor {
    /// All lanes are polled from `now` on: a source that was kept from starting ([`super::Device::await_begin`]) starts.
    fn begin(&self, _now: Time) {}

    /// The part of a source of known size that has been read, between 0 and 1.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// The work of drawing packets ahead of their time, where a device does so.
    fn work(&self) -> Option<SourceWork> {
        None
    }
}
