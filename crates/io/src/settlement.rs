//! The order of packets that take a detour, when nothing presses.
//!
//! Fragments and ICMP errors reach the owner of their flow by way of another lane, and may be overtaken
//! by packets of the same flow. On a live network that is in the nature of things. A capture that is read
//! as fast as possible would show it far more often than any network, and differently every time; so
//! there such a packet waits until everything before it is done with, and everything behind waits for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells when everything that was delivered has been processed. Shared by the devices of a run.
pub struct Settlement {
    /// Packets that devices have put into queues. Counted by a device before it asks.
    delivered: AtomicU64,
    /// Packets that lanes have received, if none of them is still under way.
    received_and_done: Box<dyn Fn() -> Option<u64> + Send + Sync>,
}

impl Settlement {
    /// `received_and_done` tells how many packets lanes have received, when all of these have been sent,
    /// dropped, consumed, or are held, and `None` while one has not. It may err on the side of `None`.
    pub fn new(received_and_done: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Settlement {
        Settlement { delivered: AtomicU64::new(0), received_and_done: Box::new(received_and_done) }
    }

    /// Counts a packet that a device has put into a queue.
    pub(crate) fn deliver(&self) {
        // Relaxed: the count orders nothing; packets are ordered by the queues they pass.
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether everything delivered has been processed.
    pub(crate) fn is_settled(&self) -> bool {
        (self.received_and_done)() == Some(self.delivered.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Settlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settlement").field("delivered", &self.delivered).finish_non_exhaustive()
    }
}
