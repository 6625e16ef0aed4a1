//! Locks for lanes that have a core each: they spin. A virtual core may lose its processor while it holds one,
//! so a thread that waits long yields its own.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// How often to look before the core is let go.
const LOOKS: u32 = 1_000;

/// Waits until something is over.
pub(super) fn wait_while(busy: impl Fn() -> bool) {
    let mut looks = 0;
    while busy() {
        looks += 1;
        if looks % LOOKS == 0 {
            thread::yield_now();
        }
        spin_loop();
    }
}

/// For one at a time, on cache lines of its own: two, which processors fetch together.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Exclusive(AtomicBool);

impl Exclusive {
    /// Runs something under the lock.
    #[inline]
    pub(super) fn with<R>(&self, act: impl FnOnce() -> R) -> R {
        // Others read their own copy of the line until it changes.
        while self.0.swap(true, Ordering::Acquire) {
            wait_while(|| self.0.load(Ordering::Relaxed));
        }
        let result = act();
        self.0.store(false, Ordering::Release);
        result
    }
}

/// For one writer, or for readers.
#[derive(Debug, Default)]
pub(super) struct ReadWrite(AtomicU32);

/// Beside it, the number of readers that are in or look whether they may be.
const WRITER: u32 = 1 << 31;

impl ReadWrite {
    #[inline]
    pub(super) fn lock(&self, writes: bool) {
        if writes {
            while self.0.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                wait_while(|| self.0.load(Ordering::Relaxed) != 0);
            }
        } else {
            while self.0.fetch_add(1, Ordering::Acquire) & WRITER != 0 {
                self.0.fetch_sub(1, Ordering::Relaxed);
                wait_while(|| self.0.load(Ordering::Relaxed) & WRITER != 0);
            }
        }
    }

    #[inline]
    pub(super) fn unlock(&self, wrote: bool) {
        self.0.fetch_sub(if wrote { WRITER } else { 1 }, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// Two threads that read, let the other one run, and write back lose nothing under either lock, and a reader
    /// never sees what a writer has in between.
    #[test]
    fn locks_keep_others_out() {
        const TIMES: u64 = 50;
        let (exclusive, read_write) = (Exclusive::default(), ReadWrite::default());
        let counts = [AtomicU64::new(0), AtomicU64::new(0)];
        let add = |count: &AtomicU64| {
            let before = count.swap(u64::MAX, Ordering::Relaxed);
            thread::yield_now();
            count.store(before.wrapping_add(1), Ordering::Relaxed);
        };
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..TIMES {
                        exclusive.with(|| add(&counts[0]));
                        read_write.lock(true);
                        add(&counts[1]);
                        read_write.unlock(true);
                        // Time for the other one to come in.
                        thread::yield_now();
                        read_write.lock(false);
                        let seen = counts[1].load(Ordering::Relaxed);
                        read_write.unlock(false);
                        assert_ne!(seen, u64::MAX);
                    }
                });
            }
        });
        assert_eq!(counts.map(AtomicU64::into_inner), [2 * TIMES; 2]);
    }
}
