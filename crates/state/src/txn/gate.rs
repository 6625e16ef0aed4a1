//! Running alone: what a transaction does that was aborted too often, so that none starves. (NFOS leaves that open,
//! section 6.)
//!
//! A transaction that is to run alone draws a ticket and waits for its turn, then closes the clock: no other transaction gets a
//! commit time any more. Those that have one finish, and the one that runs alone waits for the locks it finds, which all belong
//! to those. So it cannot be aborted, and others read on meanwhile.

use rheostat_base::sync::atomic::{AtomicU64, Ordering};
use rheostat_base::sync::{hint, thread};

use super::version_clock::VersionClock;

/// Lets transactions run alone, one after the other in the order they came.
#[derive(Debug)]
pub(super) struct Gate {
    next: AtomicU64,
    serving: AtomicU64,
}

impl Gate {
    pub(super) fn new() -> Gate {
        Gate { next: AtomicU64::new(0), serving: AtomicU64::new(0) }
    }

    /// Waits until the caller may run alone.
    pub(super) fn enter(&self, clock: &VersionClock) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire, with the release in `leave`: the clock is open again.
        wait_until(|| self.serving.load(Ordering::Acquire) == number);
        clock.close();
    }

    /// Ends the caller's turn.
    pub(super) fn leave(&self, clock: &VersionClock) {
        clock.open();
        // Release: the next one finds the clock open. One writer, the holder of the turn.
        let number = self.serving.load(Ordering::Relaxed);
        self.serving.store(number + 1, Ordering::Release);
    }
}

/// Waits for another lane, which may have lost its core.
pub(super) fn wait_until(mut reached: impl FnMut() -> bool) {
    let mut looked = 0_u32;
    while !reached() {
        looked += 1;
        if cfg!(any(loom, shuttle)) || looked.is_multiple_of(64) {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}
