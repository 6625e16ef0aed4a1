//! A value that threads take out, work on, and put back: one that finds it taken tries again, or goes on to something else.
//!
//! Taking and putting back cost a compare-and-swap and a store each. Unlike what is behind a
//! [`TryLock`](super::try_lock::TryLock), the value moves to the thread that takes it, so that it can be put where code expects a
//! value of its own, and a thread that panics puts it back while it unwinds.
#![allow(unsafe_code)]

use std::fmt;

use super::UnsafeCell;
use super::atomic::{AtomicU8, Ordering};

/// The value is in the cell.
const HERE: u8 = 0;
/// A thread moves the value in or out.
const BUSY: u8 = 1;
/// The value is with the thread that took it.
const TAKEN: u8 = 2;

/// A place for a value that one thread at a time takes out. It has cache lines of its own (two: the adjacent-line prefetcher
/// pairs them).
#[repr(align(128))]
pub struct TakeCell<T> {
    /// `HERE` → `BUSY` (Acquire) → `TAKEN` (Release) by the thread that takes, `TAKEN` → `BUSY` (Acquire) → `HERE` (Release) by the one
    /// that puts back. The value is accessed in `BUSY` alone, by the thread that made the cell busy.
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value crosses threads by `take` and `put_back`, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for TakeCell<T> {}
// SAFETY: as above. `&TakeCell` accesses the value only while the cell is busy, and one thread at a time makes it so: each
// Release store that ends that orders all accesses before the Acquire compare-and-swap that begins the next.
unsafe impl<T: Send> Sync for TakeCell<T> {}

impl<T> TakeCell<T> {
    /// A cell with a value in it.
    pub fn new(value: T) -> TakeCell<T> {
        TakeCell { state: AtomicU8::new(HERE), value: UnsafeCell::new(Some(value)) }
    }

    /// Takes the value out, unless another thread has it. Never waits.
    #[inline]
    pub fn take(&self) -> Option<T> {
        // A look first: a thread that waits for the value keeps no line from the one that has it. Relaxed: it decides nothing.
        if self.state.load(Ordering::Relaxed) != HERE || !self.make_busy(HERE) {
            return None;
        }
        // SAFETY: this thread made the cell busy, so no other accesses the value.
        let value = self.value.with_mut(|value| unsafe { (*value).take() });
        // Release: pairs with the Acquire in `make_busy` of the thread that puts a value back; the move out comes before.
        self.state.store(TAKEN, Ordering::Release);
        value
    }

    /// Puts a value back that was taken.
    ///
    /// # Errors
    /// The value, when none was taken.
    #[inline]
    pub fn put_back(&self, value: T) -> Result<(), T> {
        if !self.make_busy(TAKEN) {
            return Err(value);
        }
        // SAFETY: this thread made the cell busy, so no other accesses the value.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        // Release: pairs with the Acquire in `make_busy` of the thread that takes it; all that was done to the value comes
        // before.
        self.state.store(HERE, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn make_busy(&self, from: u8) -> bool {
        // Acquire: pairs with the Release stores above. A try that is lost has accessed nothing: Relaxed.
        self.state.compare_exchange(from, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

impl<T> fmt::Debug for TakeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeCell").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_is_taken_by_one_at_a_time_and_put_back_once() {
        let cell = TakeCell::new(Box::new(1));
        assert_eq!(cell.put_back(Box::new(9)), Err(Box::new(9)), "none was taken");
        let mut value = cell.take().unwrap();
        assert_eq!(cell.take(), None);
        *value += 1;
        assert_eq!(cell.put_back(value), Ok(()));
        assert_eq!(cell.take(), Some(Box::new(2)));
    }

    #[test]
    fn a_thread_that_panics_puts_the_value_back() {
        struct CellVisit<'a>(&'a TakeCell<u32>, u32);
        impl Drop for CellVisit<'_> {
            fn drop(&mut self) {
                self.0.put_back(self.1).unwrap();
            }
        }
        let cell = Arc::new(TakeCell::new(0));
        let taken = cell.clone();
        let thread = std::thread::spawn(move || {
            let mut visit = CellVisit(&taken, taken.take().unwrap());
            visit.1 = 1;
            panic!("half done");
        });
        assert!(thread.join().is_err());
        assert_eq!(cell.take(), Some(1));
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// However threads take turns, one at a time has the value, and sees what the one before did. Fails when the Release store
    /// of `put_back` is relaxed, and when the Acquire of `make_busy` is.
    #[test]
    fn holders_follow_one_another() {
        loom::model(|| {
            let cell = Arc::new(TakeCell::new(Box::new(0)));
            let change = |cell: &TakeCell<Box<u32>>| match cell.take() {
                Some(mut value) => {
                    *value += 1;
                    cell.put_back(value).expect("it was taken");
                    1
                }
                None => 0,
            };
            let other = {
                let cell = cell.clone();
                thread::spawn(move || change(&cell) + change(&cell))
            };
            let mine = change(&cell) + change(&cell);
            let changes = mine + other.join().unwrap();
            assert!(changes > 0, "one of them was first");
            assert_eq!(cell.take().map(|value| *value), Some(changes));
        });
    }

    /// A thread that puts a value back which it has not taken itself follows the one that took it. Fails when the Release store
    /// of `take` is relaxed.
    #[test]
    fn a_value_of_another_thread_is_put_behind_the_one_taken() {
        loom::model(|| {
            let cell = Arc::new(TakeCell::new(Box::new(1)));
            let other = {
                let cell = cell.clone();
                thread::spawn(move || cell.put_back(Box::new(2)).is_ok())
            };
            let taken = cell.take().map(|value| *value);
            assert_eq!(taken, Some(1));
            let was_put = other.join().unwrap();
            assert_eq!(cell.take().map(|value| *value), was_put.then_some(2));
        });
    }
}
