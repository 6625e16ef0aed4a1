//! Counters of a device whose packets the kernel copies.

use std::sync::Arc;

use rheostat_base::Counter;

use super::intake::Arrivals;
use crate::device::DeviceCounters;

/// Packets that a lane sends. Written by the lane.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Sent {
    pub(super) packets: Counter,
    pub(super) bytes: Counter,
    /// System calls, where one may send several packets.
    pub(super) calls: Counter,
    /// Packets that are longer than the interface carries.
    pub(super) too_long: Counter,
}

/// Counters of a device, by lane; they outlive it.
pub(super) struct SocketCounters {
    pub(super) arrivals: Vec<Arc<Arrivals>>,
    pub(super) sent: Vec<Arc<Sent>>,
}

impl SocketCounters {
    pub(super) fn new(lanes: usize) -> SocketCounters {
        SocketCounters {
            arrivals: (0..lanes).map(|_| Arc::default()).collect(),
            sent: (0..lanes).map(|_| Arc::default()).collect(),
        }
    }

    fn arrived(&self, count: impl Fn(&Arrivals) -> &Counter) -> u64 {
        self.arrivals.iter().map(|lane| count(lane).get()).sum()
    }

    pub(super) fn sent(&self, count: impl Fn(&Sent) -> &Counter) -> u64 {
        self.sent.iter().map(|lane| count(lane).get()).sum()
    }

    /// All lanes together, with the packets that the kernel dropped since queues were full.
    pub(super) fn sum(&self, queue_full: Vec<u64>) -> DeviceCounters {
        DeviceCounters {
            arrived: self.arrived(|lane| &lane.packets) + queue_full.iter().sum::<u64>(),
            arrived_bytes: self.arrived(|lane| &lane.bytes),
            queue_full,
            no_buffer: self.arrived(|lane| &lane.no_buffer),
            fill_empty: 0,
            oversize: self.arrived(|lane| &lane.oversize),
            malformed: self.arrived(|lane| &lane.malformed),
            sent: self.sent(|lane| &lane.packets),
            sent_bytes: self.sent(|lane| &lane.bytes),
            // The kernel copies each.
            copied: self.sent(|lane| &lane.packets),
            send_calls: self.sent(|lane| &lane.calls),
        }
    }
}
