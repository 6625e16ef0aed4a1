//! Waking a thread that sleeps because it has nothing to do.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rheostat_base::sync::parker::Parker;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// What other threads wake a worker, or a member of a pool, by.
#[derive(Debug)]
pub(crate) struct EventNotifier {
    bell: Parker,
    event: OwnedFd,
}

impl EventNotifier {
    /// The notifier of a worker that is awake.
    ///
    /// # Errors
    /// What the operating system said: the process has too many files open.
    pub(crate) fn new() -> io::Result<EventNotifier> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(EventNotifier { bell: Parker::new(), event })
    }

    /// Wakes the worker if it sleeps, and returns whether it did. Call it after the work is where the worker will look.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        let sleeps = self.bell.should_notify();
        if sleeps {
            self.ring();
        }
        sleeps
    }

    #[cold]
    fn ring(&self) {
        // Full only after 2^64 - 2 notifications that were not read, and then it is readable anyway.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Announces that the worker is about to sleep; it must then look for work once more.
    pub(crate) fn prepare_park(&self) {
        self.bell.prepare_park();
    }

    /// Blocks until it is notified, but no longer than `longest`, which is less than a second.
    pub(crate) fn block(&self, longest: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        // Interrupted, it looks for work a little early.
        let _ = poll(&mut [PollFd::new(&self.event, PollFlags::IN)], Some(&timeout));
    }

    /// Announces that the worker is awake, and forgets rings.
    pub(crate) fn unpark(&self) {
        self.bell.unpark();
        // Empty when there was no notification.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl AsFd for EventNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
