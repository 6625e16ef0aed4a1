//! What a lane that shares queues sleeps on, and what lanes know of each other.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::device::{Rest, RxQueue};

/// Which lanes are at work. Hints, which order nothing: all accesses are Relaxed.
#[derive(Debug)]
pub(super) struct AtWork(Vec<Flag>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

impl AtWork {
    pub(super) fn new(lanes: usize) -> AtWork {
        AtWork((0..lanes).map(|_| Flag::default()).collect())
    }

    /// A lane has received packets, or found none.
    #[inline]
    pub(super) fn note(&self, lane: usize, works: bool) {
        let Flag(flag) = &self.0[lane];
        if flag.load(Ordering::Relaxed) != works {
            flag.store(works, Ordering::Relaxed);
        }
    }

    /// Whether a lane has received packets and not found its queues empty since.
    #[inline]
    pub(super) fn works(&self, lane: usize) -> bool {
        self.0[lane].0.load(Ordering::Relaxed)
    }

    /// What `lane` may do whose own queue permits `rest`: no more than nap while others work.
    pub(super) fn bound(&self, lane: usize, rest: Rest) -> Rest {
        let others_work = (0..self.0.len()).any(|other| other != lane && self.works(other));
        if others_work { rest.min(Rest::Nap) } else { rest }
    }
}

/// The descriptor of a hardware queue, which is behind a lock: a duplicate, so that it can be waited on without.
#[derive(Debug, Default)]
pub(super) struct Watched {
    duplicate: Option<OwnedFd>,
    /// The number of what it is a duplicate of. A queue that is exchanged for another keeps its descriptor open until the
    /// other has been looked at, so the numbers differ.
    original: Option<i32>,
}

impl Watched {
    /// Watches what the queue has now. What cannot be duplicated, since the process has too many files open, is not watched, and
    /// the lane naps.
    pub(super) fn follow(&mut self, queue: &dyn RxQueue) {
        let descriptor = queue.wait_fd();
        let number = descriptor.map(|descriptor| descriptor.as_raw_fd());
        if number != self.original || (number.is_some() && self.duplicate.is_none()) {
            self.original = number;
            self.duplicate = descriptor.and_then(|found| found.try_clone_to_owned().ok());
        }
    }

    /// What `rest` comes to with what is watched.
    pub(super) fn bound(&self, rest: Rest) -> Rest {
        match self.original.is_some() && self.duplicate.is_none() {
            true => rest.min(Rest::Nap),
            false => rest,
        }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.duplicate.as_ref().map(AsFd::as_fd)
    }
}
