//! What is done with, out of order, and given back in order.

use rheostat_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::done_bits::DoneBits;

/// Indices that are finished in any order and released in their own. Any thread finishes; whichever gets the lock
/// releases, for all. No thread waits.
pub(crate) struct Completion {
    done: DoneBits,
    /// Everything below is released. Written under the lock.
    tail: AtomicU64,
    is_releasing: AtomicBool,
}

impl Completion {
    /// Nothing finished, for up to `capacity` indices between the tail and the youngest, a power of two.
    pub(crate) fn new(capacity: u64) -> Completion {
        Completion {
            done: DoneBits::new(capacity),
            tail: AtomicU64::new(0),
            is_releasing: AtomicBool::new(false),
        }
    }

    /// The first index that is not released.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        // Acquire: pairs with the Release store in `release`; what was done below the tail, the clearing of its done bits
        // included, is seen.
        self.tail.load(Ordering::Acquire)
    }

    /// Finishes the indices from `first` to `end`, and releases what can be: `release` is called with ranges that follow
    /// one another, under the lock. When this returns without the lock having been free, its holder releases them.
    #[inline]
    pub(crate) fn finish(&self, first: u64, end: u64, release: impl FnMut(u64, u64)) {
        self.done.set(first, end);
        self.release(release);
    }

    /// Releases what is finished, unless another thread is at it, which then does.
    pub(crate) fn release(&self, mut release: impl FnMut(u64, u64)) {
        loop {
            // Acquire: what earlier holders wrote is seen. Release: a holder that gives the lock back after this attempt
            // sees the done bits set before it.
            if self.is_releasing.swap(true, Ordering::AcqRel) {
                return;
            }
            // Relaxed: written under the lock.
            let tail = self.tail.load(Ordering::Relaxed);
            let end = tail + self.done.prefix(tail);
            if end > tail {
                // Before the tail moves: from then on these bits belong to the next lap.
                self.done.clear(tail, end);
                release(tail, end);
                // Release: pairs with the Acquire load of `tail`.
                self.tail.store(end, Ordering::Release);
            }
            // Release: the next holder sees the tail. Acquire: the done bits of every thread that found the lock taken
            // before now are seen below. A plain store would acquire nothing.
            self.is_releasing.swap(false, Ordering::AcqRel);
            // Set just after they were counted, by a thread that found the lock taken.
            if !self.done.is_set(end) {
                return;
            }
        }
    }
}
