//! What the simulated NIC counts.

use rheostat_base::Counter;

/// What arrives. Written by the thread that holds the NIC's lock, so by one at a time.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Arrivals {
    pub(super) arrived: Counter,
    pub(super) arrived_bytes: Counter,
    pub(super) no_buffer: Counter,
    pub(super) oversize: Counter,
    /// By queue.
    pub(super) queue_full: Box<[Counter]>,
}

impl Arrivals {
    pub(super) fn new(queues: u16) -> Arrivals {
        Arrivals {
            arrived: Counter::new(),
            arrived_bytes: Counter::new(),
            no_buffer: Counter::new(),
            oversize: Counter::new(),
            queue_full: (0..queues).map(|_| Counter::new()).collect(),
        }
    }
}

/// What one queue sends. Written by the lane that holds the queue.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Sent {
    pub(super) packets: Counter,
    pub(super) bytes: Counter,
    /// Replies to these packets for which there was no room.
    pub(super) refused_replies: Counter,
    pub(super) refused_reply_bytes: Counter,
}
