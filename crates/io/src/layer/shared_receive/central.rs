//! One receive queue for all lanes.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::Time;
use rheostat_base::sync::Arc;
use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::watched::{AtWork, Watched};
use crate::device::{ArrivalOrder, Rest, RxQueue, SharedQueue, Stamping};

/// A lane's part in the queue.
struct CentralRx {
    lane: usize,
    /// Packets that it takes at a time.
    pop: usize,
    access: FairAccess<CentralQueue>,
    shared: Arc<Shared>,
    watched: Watched,
    stamping: Stamping<'static>,
    /// Packets that the last call has read and left.
    left: usize,
}

/// What lanes see without the lock.
struct Shared {
    lock: Arc<FairLock<CentralQueue>>,
    /// Whether the last lane has left packets in the queue. A hint, which orders nothing: Relaxed.
    has_packets: AtomicBool,
    at_work: AtWork,
}

/// The queue.
struct CentralQueue {
    packets: VecDeque<Mbuf>,
    hardware: Vec<Box<dyn RxQueue>>,
    /// The hardware queue that is read first next time.
    turn: usize,
    /// What lanes without the lock were told.
    told: bool,
}

pub(super) fn share(hardware: Vec<Box<dyn RxQueue>>, pop: usize) -> Vec<Box<dyn RxQueue>> {
    let lanes = hardware.len();
    let stampings = super::stampings(&hardware);
    let mut watched: Vec<_> = (0..lanes).map(|_| Watched::default()).collect();
    watched.iter_mut().zip(&hardware).for_each(|(watched, queue)| watched.follow(&**queue));
    let packets = VecDeque::with_capacity(2 * rheostat_packet::BURST);
    let queue = CentralQueue { packets, hardware, turn: 0, told: false };
    let lock = Arc::new(FairLock::new(queue));
    let (has_packets, at_work) = (AtomicBool::new(false), AtWork::new(lanes));
    let shared = Arc::new(Shared { lock: lock.clone(), has_packets, at_work });
    let lane = |((lane, stamping), watched)| {
        let (access, shared) = (FairAccess::new(lock.clone()), shared.clone());
        let part = CentralRx { lane, pop, access, shared, watched, stamping, left: 0 };
        Box::new(part) as Box<dyn RxQueue>
    };
    stampings.into_iter().enumerate().zip(watched).map(lane).collect()
}

impl CentralQueue {
    /// Reads a burst of the first hardware queue that has packets, beginning with the one whose turn it is.
    fn refill(&mut self, pool: &mut PoolCache, now: Time) {
        for _ in 0..self.hardware.len() {
            let mut burst = Burst::new();
            let count = self.hardware[self.turn].recv(&mut burst, pool, now);
            self.turn = (self.turn + 1) % self.hardware.len();
            if count > 0 {
                self.packets.extend(burst);
                return;
            }
        }
    }

    /// Packets that wait, here and in the hardware.
    fn backlog(&self) -> usize {
        let hardware = self.hardware.iter().map(|queue| queue.backlog());
        self.packets.len() + hardware.sum::<usize>()
    }
}

impl RxQueue for CentralRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let CentralRx { access, shared, .. } = self;
        self.left = 0;
        // If nothing waits as far as is known, a lane that has the lock is looking into the hardware queues.
        if access.try_lock().is_none() && shared.has_packets.load(Ordering::Relaxed) {
            access.lock_soon();
        }
        let mut count = 0;
        if let Some(queue) = access.get() {
            let is_read = queue.packets.is_empty();
            if is_read {
                queue.refill(pool, now);
            }
            count = self.pop.min(burst.remaining_capacity()).min(queue.packets.len());
            burst.extend((0..count).map_while(|_| queue.packets.pop_front()));
            let left = queue.packets.len();
            if queue.told != (left > 0) {
                queue.told = left > 0;
                shared.has_packets.store(queue.told, Ordering::Relaxed);
            }
            if is_read {
                self.left = left;
            }
        }
        if count == 0 {
            access.release();
        }
        shared.at_work.note(self.lane, count > 0);
        count
    }

    /// All packets that the lane may take. While another lane has the lock, 1: there may be some.
    fn backlog(&self) -> usize {
        let mut access = FairAccess::new(self.shared.lock.clone());
        let queue = access.try_lock().map(|queue| queue.backlog());
        match queue {
            Some(waiting) => waiting,
            // A lane that panicked had it.
            None if access.has_lock() => 0,
            None => 1,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.watched.descriptor()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        let CentralRx { access, watched, lane, .. } = self;
        let rest = access.try_lock().map(|queue| {
            let rest = queue.hardware[*lane].rest(pool, now);
            watched.follow(&*queue.hardware[*lane]);
            if queue.backlog() > 0 { Rest::Awake } else { watched.bound(rest) }
        });
        let rest = match rest {
            Some(rest) => self.shared.at_work.bound(*lane, rest),
            // A lane that panicked had it: the run ends.
            None if access.has_lock() => Rest::Nap,
            None => Rest::Awake,
        };
        access.release();
        rest
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: self.stamping, rings: None }
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }
}

impl SharedQueue for CentralRx {
    fn release(&mut self) -> usize {
        self.access.release();
        self.left
    }
}
