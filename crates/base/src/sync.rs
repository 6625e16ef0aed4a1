//! The synchronisation facade: the standard library's primitives, or loom's when the crate is built
//! with `--cfg loom`, so that lock-free code is model-checked as it stands, or shuttle's with `--cfg
//! shuttle`, which tries schedules of whole protocols with many threads, too many for loom. Shuttle takes
//! every ordering for the strongest.

pub mod attendance;
pub mod calls;
pub mod fair_lock;
pub mod load_fence;
pub mod locked_queue;
pub mod parker;
pub mod prefetch;
pub mod spsc;
pub mod stamped_ring;
pub mod succession;
pub mod take_cell;
pub mod try_lock;

#[cfg(not(any(loom, shuttle)))]
pub use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
#[cfg(not(any(loom, shuttle)))]
pub use std::{hint, sync::atomic, thread};

#[cfg(shuttle)]
pub use shuttle::sync::{Arc, Mutex, MutexGuard, TryLockError, atomic};
#[cfg(shuttle)]
pub use shuttle::{hint, thread};

#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard, atomic};
#[cfg(loom)]
pub use loom::{hint, thread};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// An `UnsafeCell` with loom's interface: access goes through closures, which under loom check that
/// no two accesses conflict.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for reading.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// The value.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Calls `f` with a pointer for writing.
    #[inline]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
