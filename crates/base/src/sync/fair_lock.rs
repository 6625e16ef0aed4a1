//! A lock of which no thread gets more than its share, and which no thread that does not run holds up unless it has it.
//!
//! It is for sections of up to some microseconds that several threads need all the time. A thread that waits says so. The one
//! that gives the lock back names the next of those that wait, in the order of their numbers, beginning behind its own; all others
//! leave the lock to that one for some looks, and take it then: the named one may not run, since there may be more threads than
//! cores, or have given up. So threads that run have the lock in turn. (A lock that is handed on in a strict order stands still
//! whenever a thread in that order does not run: with threads that are often interrupted, once for each turn.)
//!
//! Taking costs a load and an atomic exchange, giving back a load and a store. A thread keeps the lock from one call to the next
//! through a [`FairAccess`], of which it has one for each lock. A thread that panics while it has the lock gives it back marked:
//! nobody gets the value any more, and nobody waits.
#![allow(unsafe_code)]

use std::fmt;

use super::atomic::{AtomicU32, AtomicU64, Ordering};
use super::{Arc, UnsafeCell, hint, thread};

/// Looks in a row of a thread that waits, before it does something else: some ten microseconds, as long as reading a burst from the
/// operating system takes. (Models cannot wait for long.)
const LOOKS: u32 = if cfg!(loom) { 2 } else { 512 };
/// Looks for which a thread leaves the lock to the one that is named.
const COURTESY: u32 = if cfg!(loom) { 1 } else { 8 };
/// In `state`: a thread has the lock. Otherwise it is 0, or 1 more than the number of the thread that is named.
const TAKEN: u32 = 1 << 31;

/// A value behind a lock that threads have in turn.
pub struct FairLock<T> {
    state: LockLine<AtomicU32>,
    /// A bit for each number whose thread waits.
    waiting: LockLine<AtomicU64>,
    /// Accesses made.
    accesses: LockLine<AtomicU32>,
    content: UnsafeCell<Content<T>>,
}

/// Cache lines of its own (two: the adjacent-line prefetcher pairs them), so that threads that ask do not slow the one that has
/// the lock.
#[repr(align(128))]
struct LockLine<T>(T);

struct Content<T> {
    value: T,
    /// Whether a thread panicked while it had the lock.
    is_poisoned: bool,
}

// SAFETY: the value crosses threads with the lock, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for FairLock<T> {}
// SAFETY: as above; `&FairLock` gives access to the content only through a `FairAccess` that has the lock, of which there is one
// at a time. The Release store that gives the lock back orders all accesses before the Acquire exchange that takes it next.
unsafe impl<T: Send> Sync for FairLock<T> {}

impl<T> FairLock<T> {
    /// A value that no thread has.
    pub fn new(value: T) -> FairLock<T> {
        FairLock {
            state: LockLine(AtomicU32::new(0)),
            waiting: LockLine(AtomicU64::new(0)),
            accesses: LockLine(AtomicU32::new(0)),
            content: UnsafeCell::new(Content { value, is_poisoned: false }),
        }
    }

    /// Gives the lock back, and names the next one of those that wait behind `number`. Only the thread that has it may call this.
    fn hand_on(&self, number: u32) {
        // Relaxed: who is named decides about nothing but turns.
        let waiting = self.waiting.0.load(Ordering::Relaxed);
        let next = match waiting {
            0 => 0,
            _ => {
                let first = (number + 1) % u64::BITS;
                let behind = waiting.rotate_right(first).trailing_zeros();
                (first + behind) % u64::BITS + 1
            }
        };
        // Release: pairs with the Acquire exchange in `FairAccess::acquire`; all that was done to the value comes before.
        self.state.0.store(next, Ordering::Release);
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
    /// By which the lock is handed on, below 64. Of more accesses, several have the same, and share a turn.
    number: u32,
    /// Looks at which the lock was left to another thread, since this one had it.
    left: u32,
    has_lock: bool,
}

impl<T> FairAccess<T> {
    /// An access without the lock.
    pub fn new(lock: Arc<FairLock<T>>) -> FairAccess<T> {
        // Relaxed: it only has to be one step.
        let number = lock.accesses.0.fetch_add(1, Ordering::Relaxed) % u64::BITS;
        FairAccess { lock, number, left: 0, has_lock: false }
    }

    /// Waits for the lock, and returns the value; `None` when a thread panicked while it had it.
    pub fn lock(&mut self) -> Option<&mut T> {
        while !self.has_lock && !self.acquire() && !self.wait() {
            thread::yield_now();
        }
        self.get()
    }

    /// Waits for the lock for some microseconds, and returns the value. `None` when other threads have it for longer, or one panicked
    /// while it had it.
    #[inline]
    pub fn lock_soon(&mut self) -> Option<&mut T> {
        if !self.has_lock && !self.acquire() && !self.wait() {
            // The thread that has it may need the processor.
            thread::yield_now();
        }
        self.get()
    }

    /// The value, if no other thread has the lock, or is to have it next.
    #[inline]
    pub fn try_lock(&mut self) -> Option<&mut T> {
        if !self.has_lock {
            self.acquire();
        }
        self.get()
    }

    /// Looks whether the lock may be taken, and takes it.
    #[inline]
    fn acquire(&mut self) -> bool {
        let state = &self.lock.state.0;
        // Relaxed: what counts is what the exchange finds.
        let found = state.load(Ordering::Relaxed);
        if found == TAKEN {
            return false;
        }
        if found != 0 && found != self.number + 1 && self.left < COURTESY {
            self.left += 1;
            return false;
        }
        // Acquire: pairs with the Release store in `FairLock::hand_on`; what threads did that had the lock is seen.
        self.has_lock =
            state.compare_exchange(found, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if self.has_lock {
            self.left = 0;
        }
        self.has_lock
    }

    /// Waits for some looks.
    #[cold]
    fn wait(&mut self) -> bool {
        let bit = 1_u64 << self.number;
        // Relaxed, here and below: it decides about nothing but turns.
        self.lock.waiting.0.fetch_or(bit, Ordering::Relaxed);
        let has_lock = (0..LOOKS).any(|_| {
            hint::spin_loop();
            self.acquire()
        });
        self.lock.waiting.0.fetch_and(!bit, Ordering::Relaxed);
        has_lock
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
        self.lock.hand_on(self.number);
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
        assert!(one.lock_soon().is_none(), "it does not wait for long");
        drop(other);
        assert_eq!(one.try_lock(), Some(&mut 2));
    }

    #[test]
    fn the_next_of_those_that_wait_has_a_turn_unless_it_does_not_take_it() {
        let lock = Arc::new(FairLock::new(()));
        let mut accesses: Vec<_> = (0..4).map(|_| FairAccess::new(lock.clone())).collect();
        // Two and three wait.
        lock.waiting.0.store(0b1100, Ordering::Relaxed);
        assert!(accesses[3].try_lock().is_some());
        accesses[3].release();
        for other in [0, 1, 3] {
            let left = (1..COURTESY).all(|_| accesses[other].try_lock().is_none());
            assert!(left, "it is two's turn");
        }
        assert!(accesses[2].try_lock().is_some());
        accesses[2].release();
        lock.waiting.0.store(0, Ordering::Relaxed);
        // Three is named, and does not come.
        assert!(accesses[0].try_lock().is_none());
        assert!(accesses[0].try_lock().is_some(), "it has waited long enough");
        accesses[0].release();
        assert!(accesses[1].try_lock().is_some(), "nobody waits");
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

    /// However threads take turns, one at a time has the value, and sees what the one before did. Fails when the exchange in
    /// `acquire` or the store in `hand_on` is relaxed, and when the exchange is a load and a store.
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

    /// A thread that does not wait gets the lock only when no other has it, and then sees what the others did.
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

    #[test]
    fn three_threads_have_it_one_at_a_time() {
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
