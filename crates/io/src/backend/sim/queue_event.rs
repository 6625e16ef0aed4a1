//! What the thread of a simulated NIC wakes a lane by, as the interrupt of a hardware queue does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rheostat_base::sync::parker::Parker;
use rustix::event::{EventfdFlags, eventfd};

/// The interrupt of one receive queue: armed by the lane that is about to sleep, raised by the NIC that has put a packet
/// into the queue. While the lane is awake, raising it takes no system call.
#[derive(Debug)]
pub(super) struct QueueEvent {
    /// Whether it is armed.
    bell: Parker,
    event: OwnedFd,
}

impl QueueEvent {
    /// Not armed.
    ///
    /// # Errors
    /// What the operating system said: the process has too many files open.
    pub(super) fn new() -> io::Result<QueueEvent> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(QueueEvent { bell: Parker::new(), event })
    }

    /// Arms it. The lane must then look into the queue once more.
    pub(super) fn arm(&self) {
        self.bell.prepare_park();
    }

    /// The lane is awake: forgets that it was raised.
    pub(super) fn disarm(&self) {
        self.bell.unpark();
        // Empty where it was not.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }

    /// Makes the descriptor readable if it is armed, and returns whether it was. To be called once the packet is in the
    /// queue.
    #[inline]
    pub(super) fn raise(&self) -> bool {
        let is_armed = self.bell.should_notify();
        if is_armed {
            // Full only after 2^64 - 2 times, and then it is readable anyway.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
        is_armed
    }
}

impl AsFd for QueueEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
