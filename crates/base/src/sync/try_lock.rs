//! A value that one thread at a time uses, and that no thread waits for: one that finds it taken goes on to something else.
//!
//! Taking costs one compare-and-swap, giving back one store. A thread that panics while it has the value leaves it taken: no
//! other thread uses a half-changed value.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::UnsafeCell;
use super::atomic::{AtomicBool, Ordering};

/// A value behind a lock that is tried and not waited for. It has cache lines of its own (two: the adjacent-line
/// prefetcher pairs them), so that tries for one value do not slow the users of another.
#[repr(align(128))]
pub struct TryLock<T> {
    /// Taken by a compare-and-swap (Acquire), given back by a store (Release), so that a holder sees all that earlier ones did.
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value crosses threads with the lock, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for TryLock<T> {}
// SAFETY: as above; `&TryLock` gives access to the value only through a guard, of which there is one at a time. The
// Release store that ends one orders all its accesses before the Acquire compare-and-swap that makes the next.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// A value that is not taken.
    pub fn new(value: T) -> TryLock<T> {
        TryLock { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes the value, unless another thread has it. Never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<TryGuard<'_, T>> {
        // Acquire: pairs with the Release store in the guard's drop; what earlier holders did is seen. A try that is lost
        // has read nothing but the flag, and writes nothing: Relaxed.
        let taken =
            self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(|_| TryGuard { lock: self })
    }

    /// The value, or nothing when a thread panicked while it had it.
    pub fn into_inner(self) -> Option<T> {
        // Relaxed: the owner of the lock has joined all threads that had the value, or got the lock from them.
        let is_left_taken = self.is_taken.load(Ordering::Relaxed);
        (!is_left_taken).then(|| self.value.into_inner())
    }
}

impl<T> fmt::Debug for TryLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryLock").field("is_taken", &self.is_taken).finish_non_exhaustive()
    }
}

/// A value that was taken. Dropping it gives the value back.
#[derive(Debug)]
pub struct TryGuard<'a, T> {
    lock: &'a TryLock<T>,
}

impl<T> Deref for TryGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time, so no other thread accesses the value.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for TryGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time, and it is borrowed mutably.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for TryGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // Release: pairs with the Acquire compare-and-swap in `try_lock`; all that was done to the value comes before.
        self.lock.is_taken.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Timed: threads.

    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_taken_by_one_at_a_time() {
        let lock = TryLock::new(1);
        let mut first = lock.try_lock().unwrap();
        assert!(lock.try_lock().is_none());
        *first += 1;
        drop(first);
        assert_eq!(lock.try_lock().as_deref(), Some(&2));
        assert_eq!(lock.into_inner(), Some(2));
    }

    #[test]
    fn what_a_thread_has_left_half_changed_is_not_used() {
        let lock = Arc::new(TryLock::new(0));
        let held = lock.clone();
        let thread = std::thread::spawn(move || {
            let mut value = held.try_lock().unwrap();
            *value = 1;
            panic!("half done");
        });
        assert!(thread.join().is_err());
        assert!(lock.try_lock().is_none());
        assert_eq!(Arc::into_inner(lock).unwrap().into_inner(), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// However threads take turns, one at a time has the value, and sees what the one before did. Fails when the
    /// compare-and-swap is relaxed, when the store is, and when the lock is taken by a load and a store.
    #[test]
    fn holders_follow_one_another() {
        loom::model(|| {
            let lock = Arc::new(TryLock::new(Box::new(0)));
            let change = |lock: &TryLock<Box<u32>>| match lock.try_lock() {
                Some(mut value) => {
                    **value += 1;
                    1
                }
                None => 0,
            };
            let other = {
                let lock = lock.clone();
                thread::spawn(move || change(&lock) + change(&lock))
            };
            let mine = change(&lock) + change(&lock);
            let changes = mine + other.join().unwrap();
            assert!(changes > 0, "one of them was first");
            let value = lock.try_lock().expect("all have given it back");
            assert_eq!(**value, changes);
        });
    }
}
