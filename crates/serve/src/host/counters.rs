//! Counters of a service over the kernel's sockets.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters that all lanes add to.
        #[derive(Debug, Default)]
        pub(super) struct SharedCounters {
            $(pub(super) $name: AtomicU64,)*
        }

        /// The counters of all lanes together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct HostTotals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl SharedCounters {
            pub(super) fn totals(&self) -> HostTotals {
                HostTotals { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl HostTotals {
            /// Each counter by its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Connections accepted.
    accepted,
    /// Connections that were reset at once: beyond the bound of connections or of memory.
    refused,
    /// Times that the kernel had no descriptor or memory for a connection; the listener rests for a while.
    accept_failed,
    /// Connections that ended as both ends wished.
    finished,
    /// Connections that the peer reset, or whose path failed.
    reset,
    /// Connections that this end reset: a request that made no sense or was too long, a panic, scarce memory, the end of the run.
    aborted,
    /// Connections ended because nothing moved on them.
    idle_closed,
    /// Connections ended because the rest of a request did not arrive in time.
    late,
    /// Requests handled.
    requests,
    /// Replies that took more memory than they may.
    too_large,
    /// Panics of the application.
    panics,
    /// Connections reset since all together would have taken more memory than they may.
    memory_exceeded,
    /// Bytes of requests.
    bytes_read,
    /// Bytes of replies.
    bytes_written,
}

impl HostTotals {
    /// Connections that have ended, however they did.
    pub fn ended(&self) -> u64 {
        self.finished
            + self.reset
            + self.aborted
            + self.memory_exceeded
            + self.idle_closed
            + self.late
    }
}

impl SharedCounters {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}
