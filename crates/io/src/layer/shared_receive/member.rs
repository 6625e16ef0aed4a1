//! A lane among those that share queues: what it sleeps on, and what lanes know of each other.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::Time;
use rheostat_base::sync::Arc;
use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
use rheostat_packet::PoolCache;

use crate::device::{ArrivalOrder, Rest, RxQueue, Stamping};

/// A queue in memory, filled from hardware queues, behind a lock.
pub(super) trait MemoryQueue {
    /// The hardware queue of a lane, which is one of those that fill it.
    fn hardware(&mut self, lane: usize) -> &mut dyn RxQueue;

    /// Packets that wait, here and in the hardware.
    fn backlog(&self) -> usize;
}

/// A lane among those that share queues.
pub(super) struct Member {
    pub(super) lane: usize,
    at_work: Arc<AtWork>,
    watched: Watched,
    /// How packets of its hardware queue are stamped once they have passed a queue in memory.
    stamping: Stamping<'static>,
}

impl Member {
    /// The lanes that these queues belong to.
    pub(super) fn all(hardware: &[Box<dyn RxQueue>]) -> Vec<Member> {
        let at_work = Arc::new(AtWork::new(hardware.len()));
        let member = |(lane, queue): (usize, &dyn RxQueue)| {
            let mut watched = Watched::default();
            watched.follow(queue);
            let stamping = Stamping::by_device(queue.order().stamping.times_arrival());
            Member { lane, at_work: at_work.clone(), watched, stamping }
        };
        hardware.iter().map(|queue| &**queue).enumerate().map(member).collect()
    }

    /// The lane has received packets, or found none.
    #[inline]
    pub(super) fn note(&self, works: bool) {
        self.at_work.note(self.lane, works);
    }

    /// Whether a lane has received packets and not found its queues empty since.
    #[inline]
    pub(super) fn is_at_work(&self, lane: usize) -> bool {
        self.at_work.works(lane)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watched.duplicate.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: self.stamping, rings: None }
    }

    /// What the lane may do after a last look at its queue: no more than nap while others work.
    pub(super) fn rest<Q: MemoryQueue>(
        &mut self,
        access: &mut FairAccess<Q>,
        pool: &mut PoolCache,
        now: Time,
    ) -> Rest {
        let Member { lane, at_work, watched, .. } = self;
        let rest = access.try_lock().map(|queue| {
            let hardware = queue.hardware(*lane);
            let rest = hardware.rest(pool, now);
            watched.follow(hardware);
            if queue.backlog() > 0 { Rest::Awake } else { watched.bound(rest) }
        });
        let rest = match rest {
            Some(rest) => at_work.bound(*lane, rest),
            // A lane that panicked had it: the run ends.
            None if access.has_lock() => Rest::Nap,
            None => Rest::Awake,
        };
        access.release();
        rest
    }
}

/// Packets that wait in a queue and in its hardware. While another lane has the lock, 1: there may be some.
pub(super) fn backlog<Q: MemoryQueue>(lock: &Arc<FairLock<Q>>) -> usize {
    let mut access = FairAccess::new(lock.clone());
    let waiting = access.try_lock().map(|queue| queue.backlog());
    // A lane that panicked had it, if this one has it now and sees nothing.
    waiting.unwrap_or(usize::from(!access.has_lock()))
}

/// Which lanes are at work. Hints, which order nothing: all accesses are Relaxed.
#[derive(Debug)]
struct AtWork(Vec<Flag>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Flag(AtomicBool);

impl AtWork {
    fn new(lanes: usize) -> AtWork {
        AtWork((0..lanes).map(|_| Flag::default()).collect())
    }

    /// A lane has received packets, or found none.
    #[inline]
    fn note(&self, lane: usize, works: bool) {
        let Flag(flag) = &self.0[lane];
        if flag.load(Ordering::Relaxed) != works {
            flag.store(works, Ordering::Relaxed);
        }
    }

    /// Whether a lane has received packets and not found its queues empty since.
    #[inline]
    fn works(&self, lane: usize) -> bool {
        self.0[lane].0.load(Ordering::Relaxed)
    }

    /// What `lane` may do whose own queue permits `rest`: no more than nap while others work.
    fn bound(&self, lane: usize, rest: Rest) -> Rest {
        let others_work = (0..self.0.len()).any(|other| other != lane && self.works(other));
        if others_work { rest.min(Rest::Nap) } else { rest }
    }
}

/// The descriptor of a hardware queue, which is behind a lock: a duplicate, so that it can be waited on without.
#[derive(Debug, Default)]
struct Watched {
    duplicate: Option<OwnedFd>,
    /// The number of what it is a duplicate of. A queue that is exchanged for another keeps its descriptor open until the
    /// other has been looked at, so the numbers differ.
    original: Option<i32>,
}

impl Watched {
    /// Watches what the queue has now. What cannot be duplicated, since the process has too many files open, is not watched, and
    /// the lane naps.
    fn follow(&mut self, queue: &dyn RxQueue) {
        let descriptor = queue.wait_fd();
        let number = descriptor.map(|descriptor| descriptor.as_raw_fd());
        if number != self.original || (number.is_some() && self.duplicate.is_none()) {
            self.original = number;
            self.duplicate = descriptor.and_then(|original| original.try_clone_to_owned().ok());
        }
    }

    /// What `rest` comes to with what is watched.
    fn bound(&self, rest: Rest) -> Rest {
        match self.original.is_some() && self.duplicate.is_none() {
            true => rest.min(Rest::Nap),
            false => rest,
        }
    }
}
