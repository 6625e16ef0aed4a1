//! Counters with one writer and any number of readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread at a time increments and any thread may read. An increment is a plain
/// load and store, so two concurrent writers would lose counts: keep it in a lane, padded to its own
/// cache line with its siblings.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at zero.
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Adds `n`. Only the owner of the counter may call this.
    #[inline]
    pub fn add(&self, n: u64) {
        // Relaxed: counters order nothing; a reader that needs an exact figure first joins the writer.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Overwrites the value; for gauges.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value as last written, possibly a moment ago.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
