//! What the simulated NIC counts.

use std::sync::Arc;

use rheostat_base::Counter;

use crate::device::DeviceCounters;

/// What arrives, of one queue, or of one ring of the NIC: drops before a ring is known are with those of the first. Written by
/// the thread that holds the lock of the queue, or that of the NIC.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Arrivals {
    pub(super) arrived: Counter,
    pub(super) arrived_bytes: Counter,
    pub(super) queue_full: Counter,
    pub(super) oversize: Counter,
    pub(super) no_buffer: Counter,
}

/// What one queue sends. Written by the lane that holds the queue.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Sent {
    pub(super) packets: Counter,
    pub(super) bytes: Counter,
    /// Replies to these packets for which there was no room. They count as drops of the receive queue of this number.
    pub(super) refused_replies: Counter,
    pub(super) refused_reply_bytes: Counter,
}

/// What a device has counted in all.
pub(super) fn sum<'a>(
    arrivals: impl Iterator<Item = &'a Arrivals> + Clone,
    sent: &[Arc<Sent>],
) -> DeviceCounters {
    let arrived = |of: fn(&Arrivals) -> &Counter| -> u64 {
        arrivals.clone().map(|queue| of(queue).get()).sum()
    };
    let left =
        |of: fn(&Sent) -> &Counter| -> u64 { sent.iter().map(|queue| of(queue).get()).sum() };
    let mut queue_full: Vec<u64> = arrivals.clone().map(|queue| queue.queue_full.get()).collect();
    for (drops, queue) in queue_full.iter_mut().zip(sent) {
        *drops += queue.refused_replies.get();
    }
    DeviceCounters {
        arrived: arrived(|queue| &queue.arrived) + left(|queue| &queue.refused_replies),
        arrived_bytes: arrived(|queue| &queue.arrived_bytes)
            + left(|queue| &queue.refused_reply_bytes),
        queue_full,
        no_buffer: arrived(|queue| &queue.no_buffer),
        oversize: arrived(|queue| &queue.oversize),
        sent: left(|queue| &queue.packets),
        sent_bytes: left(|queue| &queue.bytes),
        ..DeviceCounters::default()
    }
}
