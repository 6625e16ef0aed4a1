//! A lock that threads get in the order in which they ask for it. One that waits spins for a moment and then yields the
//! processor between two looks, because there may be more threads than cores.
//!
//! It is for sections of some hundred nanoseconds that several threads need all the time. Taking costs an atomic increment and
//! a load, giving back a store. A thread keeps the lock from one call to the next through a [`FairAccess`], of which it has one
//! for each lock. A thread that panics while it has the lock gives it back marked: nobody gets the value any more, and nobody
//! waits.
#![allow(unsafe_code)]

use std::fmt;

use super::atomic::{AtomicU32, Ordering};
use super::{Arc, UnsafeCell, hint, thread};

/// Looks in a row before a thread that waits yields the processor between two looks.
const SPINS: u32 = 64;

/// A value behind a lock that is handed on in the order of those who ask.
pub struct FairLock<T> {
    /// The next number to be drawn. Threads draw by an atomic increment, so each number is one thread's.
    next: Line<AtomicU32>,
    /// The number whose thread has the lock, or may take it. Only that thread changes it.
    serving: Line<AtomicU32>,
    content: UnsafeCell<Content<T>>,
}

/// Cache lines of its own (two: the adjacent-line prefetcher pairs them), so that threads that ask do not slow the one that has
/// the lock.
#[repr(align(128))]
struct Line<T>(T);

struct Content<T> {
    value: T,
    /// Whether a thread panicked while it had the lock.
    is_poisoned: bool,
}

// SAFETY: the value crosses threads with the lock, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for FairLock<T> {}
// SAFETY: as above; `&FairLock` gives access to the content only through a `FairAccess` that has the lock, of which there is one
// at a time. The Release store that ends its turn orders all accesses before the Acquire load that begins the next turn.
unsafe impl<T: Send> Sync for FairLock<T> {}

impl<T> FairLock<T> {
    /// A value that no thread has.
    pub fn new(value: T) -> FairLock<T> {
        FairLock {
            next: Line(AtomicU32::new(0)),
            serving: Line(AtomicU32::new(0)),
            content: UnsafeCell::new(Content { value, is_poisoned: false }),
        }
    }

    /// Draws a number, and waits until it is served.
    fn acquire(&self) {
        // Relaxed: the increment only has to be one step; what earlier holders did is seen by the load below.
        let number = self.next.0.fetch_add(1, Ordering::Relaxed);
        let mut looks = 0;
        // Acquire: pairs with the Release store in `hand_on` of the holder before; what holders did is seen.
        while self.serving.0.load(Ordering::Acquire) != number {
            match looks < SPINS {
                true => hint::spin_loop(),
                false => thread::yield_now(),
            }
            looks += 1;
        }
    }

    /// Takes the lock if no thread has it, or waits for it.
    fn try_acquire(&self) -> bool {
        // Acquire: as in `acquire`. If the number that is served is the next to be drawn, nobody has the lock.
        let serving = self.serving.0.load(Ordering::Acquire);
        let after = serving.wrapping_add(1);
        // Relaxed: as the increment above. It fails when another thread has drawn the number.
        self.next.0.compare_exchange(serving, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Lets the next one have the lock. Only the holder may call this.
    fn hand_on(&self) {
        // Relaxed: no other thread changes it while this one has the lock.
        let number = self.serving.0.load(Ordering::Relaxed);
        // Release: pairs with the Acquire loads above; all that was done to the value comes before.
        self.serving.0.store(number.wrapping_add(1), Ordering::Release);
    }
}

impl<T> fmt::Debug for FairLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairLock").finish_non_exhaustive()
    }
}

/// A thread's access to a lock, which it may keep from one call to the next. Dropping it gives the lock back.
pub struct FairAccess<T> {
    lock: Arc<FairLock<T>>,
    has_lock: bool,
}

impl<T> FairAccess<T> {
    /// An access without the lock.
    pub fn new(lock: Arc<FairLock<T>>) -> FairAccess<T> {
        FairAccess { lock, has_lock: false }
    }

    /// Waits for the lock, and returns the value; `None` when a thread panicked while it had it.
    #[inline]
    pub fn lock(&mut self) -> Option<&mut T> {
        if !self.has_lock {
            self.lock.acquire();
            self.has_lock = true;
        }
        self.get()
    }

    /// The value, if no other thread has the lock or waits for it.
    #[inline]
    pub fn try_lock(&mut self) -> Option<&mut T> {
        self.has_lock = self.has_lock || self.lock.try_acquire();
        self.get()
    }

    /// Whether the lock is kept.
    #[inline]
    pub fn has_lock(&self) -> bool {
        self.has_lock
    }

    /// The value, if the lock is kept.
    #[inline]
    pub fn get(&mut self) -> Option<&mut T> {
        if !self.has_lock {
            return None;
        }
        // SAFETY: this access has the lock, and is borrowed mutably for as long as the reference lives.
        let content = self.lock.content.with_mut(|content| unsafe { &mut *content });
        (!content.is_poisoned).then_some(&mut content.value)
    }

    /// Gives the lock back, if it is kept. A thread that panics lets nobody have the value any more.
    #[inline]
    pub fn release(&mut self) {
        if !std::mem::take(&mut self.has_lock) {
            return;
        }
        if std::thread::panicking() {
            // SAFETY: this access has the lock until `hand_on`.
            self.lock.content.with_mut(|content| unsafe { (*content).is_poisoned = true });
        }
        self.lock.hand_on();
    }
}

impl<T> Drop for FairAccess<T> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<T> fmt::Debug for FairAccess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairAccess").field("has_lock", &self.has_lock).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn an_access_keeps_the_lock_until_it_is_released() {
        let lock = Arc::new(FairLock::new(1));
        let (mut one, mut other) = (FairAccess::new(lock.clone()), FairAccess::new(lock));
        *one.lock().unwrap() += 1;
        assert!(one.has_lock() && other.try_lock().is_none() && !other.has_lock());
        assert_eq!(one.lock(), Some(&mut 2), "it has it already");
        one.release();
        one.release();
        assert_eq!(one.get(), None);
        assert_eq!(other.try_lock(), Some(&mut 2));
        drop(other);
        assert_eq!(one.try_lock(), Some(&mut 2));
    }

    #[test]
    fn threads_have_the_lock_one_at_a_time_and_more_of_them_than_cores() {
        let lock = Arc::new(FairLock::new(0_u64));
        let add = |mut access: FairAccess<u64>| {
            for _ in 0..2_000 {
                let value = access.lock().unwrap();
                *value = std::hint::black_box(*value) + 1;
                access.release();
            }
        };
        std::thread::scope(|scope| {
            (0..5).for_each(|_| drop(scope.spawn(|| add(FairAccess::new(lock.clone())))));
        });
        assert_eq!(FairAccess::new(lock).lock(), Some(&mut 10_000));
    }

    #[test]
    fn what_a_thread_has_left_half_changed_is_not_used_and_not_waited_for() {
        let lock = Arc::new(FairLock::new(0));
        let mut access = FairAccess::new(lock.clone());
        let thread = std::thread::spawn(move || {
            *access.lock().unwrap() = 1;
            panic!("half done");
        });
        assert!(thread.join().is_err());
        let mut access = FairAccess::new(lock);
        assert_eq!(access.lock(), None);
        assert_eq!(access.try_lock(), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;

    fn add(access: &mut FairAccess<u32>) -> u32 {
        *access.lock().expect("no thread panics") += 1;
        access.release();
        1
    }

    /// However threads take turns, one at a time has the value, and sees what the one before did. Fails when the load in `acquire`
    /// is relaxed, when the store in `hand_on` is, and when a number is drawn by a load and a store.
    #[test]
    fn holders_follow_one_another() {
        loom::model(|| {
            let lock = Arc::new(FairLock::new(0));
            let mut other = FairAccess::new(lock.clone());
            let other = thread::spawn(move || add(&mut other) + add(&mut other));
            let mut mine = FairAccess::new(lock.clone());
            let changes = add(&mut mine) + other.join().unwrap();
            assert_eq!(mine.lock(), Some(&mut { changes }));
        });
    }

    /// A thread that does not wait gets the lock only when no other has it or waits for it, and then sees what the others did.
    /// Fails when the load in `try_acquire` is relaxed.
    #[test]
    fn a_try_does_not_break_into_a_turn() {
        loom::model(|| {
            let lock = Arc::new(FairLock::new(0));
            let mut other = FairAccess::new(lock.clone());
            let other = thread::spawn(move || add(&mut other));
            let mut mine = FairAccess::new(lock.clone());
            let mut changes = 0;
            while changes == 0 {
                if let Some(value) = mine.try_lock() {
                    *value += 1;
                    changes += 1;
                }
                mine.release();
                thread::yield_now();
            }
            changes += other.join().unwrap();
            assert_eq!(mine.lock(), Some(&mut { changes }));
        });
    }

    /// Three threads.
    #[test]
    fn numbers_are_drawn_once_each() {
        loom::model(|| {
            let lock = Arc::new(FairLock::new(0));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let mut access = FairAccess::new(lock.clone());
                    thread::spawn(move || add(&mut access))
                })
                .collect();
            let mut mine = FairAccess::new(lock);
            let changes = threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>();
            assert_eq!(mine.lock(), Some(&mut { changes }));
        });
    }
}
