//! A receive queue for each lane, of which lanes without packets steal.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rheostat_base::Time;
use rheostat_base::choice::choose_theft;
use rheostat_base::sync::Arc;
use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::watched::{AtWork, Watched};
use crate::device::{ArrivalOrder, Rest, RxQueue, SharedQueue, Stamping};

/// A lane's part in the queues of all lanes.
struct StealingRx {
    lane: usize,
    /// Packets that it takes of its own queue at a time.
    pop: usize,
    /// Packets that it takes of another's at most.
    steal: usize,
    /// Its access to each queue. It has the lock of one at most.
    access: Vec<FairAccess<LaneQueue>>,
    /// The queue whose lock it has.
    locked: Option<usize>,
    shared: Arc<Shared>,
    /// For the choice of a victim.
    lengths: Vec<u32>,
    watched: Watched,
    stamping: Stamping<'static>,
    /// Packets that the last call has read and left.
    left: usize,
}

/// What lanes see without locks.
struct Shared {
    locks: Vec<Arc<FairLock<LaneQueue>>>,
    lengths: Vec<Length>,
    at_work: AtWork,
}

/// Packets that wait in a queue, as the last lane that had its lock has left it. A hint, which orders nothing: Relaxed.
#[repr(align(128))]
struct Length(AtomicU32);

/// The queue of a lane.
struct LaneQueue {
    packets: VecDeque<Mbuf>,
    hardware: Box<dyn RxQueue>,
    /// Packets that were in the hardware queue when it was last read.
    behind: usize,
}

impl LaneQueue {
    /// Reads a burst if the queue is empty; returns whether it was.
    fn refill(&mut self, pool: &mut PoolCache, now: Time) -> bool {
        let is_empty = self.packets.is_empty();
        if is_empty {
            let mut burst = Burst::new();
            let count = self.hardware.recv(&mut burst, pool, now);
            self.packets.extend(burst);
            self.behind = if count > 0 { self.hardware.backlog() } else { 0 };
        }
        is_empty
    }

    /// Packets that wait, here and in the hardware.
    fn backlog(&self) -> usize {
        self.packets.len() + self.hardware.backlog()
    }
}

pub(super) fn share(
    hardware: Vec<Box<dyn RxQueue>>,
    pop: usize,
    steal: usize,
) -> Vec<Box<dyn RxQueue>> {
    let lanes = hardware.len();
    let stampings = super::stampings(&hardware);
    let mut watched: Vec<_> = (0..lanes).map(|_| Watched::default()).collect();
    watched.iter_mut().zip(&hardware).for_each(|(watched, queue)| watched.follow(&**queue));
    let queue =
        |hardware| LaneQueue { packets: VecDeque::with_capacity(2 * BURST), hardware, behind: 0 };
    let locks: Vec<_> = hardware.into_iter().map(|rx| Arc::new(FairLock::new(queue(rx)))).collect();
    let lengths = (0..lanes).map(|_| Length(AtomicU32::new(0))).collect();
    let shared = Arc::new(Shared { locks: locks.clone(), lengths, at_work: AtWork::new(lanes) });
    let lane = |((lane, stamping), watched)| {
        let part = StealingRx {
            lane,
            pop,
            steal,
            access: locks.iter().cloned().map(FairAccess::new).collect(),
            locked: None,
            shared: shared.clone(),
            lengths: Vec::with_capacity(lanes),
            watched,
            stamping,
            left: 0,
        };
        Box::new(part) as Box<dyn RxQueue>
    };
    stampings.into_iter().enumerate().zip(watched).map(lane).collect()
}

/// What is taken of a queue.
#[derive(Clone, Copy)]
enum Take {
    /// So many packets.
    Packets(usize),
    /// Half of them, and so many at most.
    Half(usize),
}

impl StealingRx {
    /// Takes packets of a queue whose lock it has; keeps the lock if there are any.
    fn take(
        &mut self,
        number: usize,
        take: Take,
        burst: &mut Burst,
        (pool, now): (&mut PoolCache, Time),
    ) -> usize {
        let access = &mut self.access[number];
        let mut count = 0;
        if let Some(queue) = access.get() {
            let is_read = queue.refill(pool, now);
            let most = match take {
                Take::Packets(count) => count,
                Take::Half(most) => queue.packets.len().div_ceil(2).min(most),
            };
            count = most.min(burst.remaining_capacity()).min(queue.packets.len());
            burst.extend((0..count).map_while(|_| queue.packets.pop_front()));
            if is_read {
                self.left = queue.packets.len();
            }
            let length = (queue.packets.len() + queue.behind).try_into().unwrap_or(u32::MAX);
            self.shared.lengths[number].0.store(length, Ordering::Relaxed);
        }
        match count {
            0 => access.release(),
            _ => self.locked = Some(number),
        }
        count
    }

    /// Steals from the fullest other queue, or from one whose lane is at work, since packets may have come to its hardware queue
    /// of which nobody knows.
    fn steal(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let Shared { lengths, at_work, .. } = &*self.shared;
        self.lengths.clear();
        self.lengths.extend(lengths.iter().map(|length| length.0.load(Ordering::Relaxed)));
        if let Some(theft) = choose_theft(self.lane, &self.lengths, self.steal as u32) {
            self.access[theft.victim].lock_soon();
            let take = Take::Packets(theft.requests as usize);
            return self.take(theft.victim, take, burst, (pool, now));
        }
        let lanes = self.access.len();
        for victim in (1..lanes).map(|step| (self.lane + step) % lanes) {
            if at_work.works(victim) && self.access[victim].try_lock().is_some() {
                return self.take(victim, Take::Half(self.steal), burst, (pool, now));
            }
            // One that is poisoned.
            self.access[victim].release();
        }
        0
    }
}

impl RxQueue for StealingRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.left = 0;
        self.access[self.lane].lock_soon();
        let mut count = self.take(self.lane, Take::Packets(self.pop), burst, (&mut *pool, now));
        if count == 0 && burst.remaining_capacity() > 0 {
            count = self.steal(burst, pool, now);
        }
        self.shared.at_work.note(self.lane, count > 0);
        count
    }

    /// Packets in its own queue, and those in others as far as is known. While another lane has the lock of its own, 1 of that: there
    /// may be some.
    fn backlog(&self) -> usize {
        let others = self.shared.lengths.iter().enumerate().filter(|(lane, _)| *lane != self.lane);
        let others = others.map(|(_, length)| length.0.load(Ordering::Relaxed) as usize);
        let mut access = FairAccess::new(self.shared.locks[self.lane].clone());
        let own = access.try_lock().map(|queue| queue.backlog());
        let own = own.unwrap_or(usize::from(!access.has_lock()));
        own + others.sum::<usize>()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.watched.descriptor()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        let StealingRx { access, watched, lane, shared, .. } = self;
        let access = &mut access[*lane];
        let rest = access.try_lock().map(|queue| {
            let rest = queue.hardware.rest(pool, now);
            watched.follow(&*queue.hardware);
            if queue.backlog() > 0 { Rest::Awake } else { watched.bound(rest) }
        });
        let rest = match rest {
            Some(rest) => shared.at_work.bound(*lane, rest),
            // A lane that panicked had it: the run ends.
            None if access.has_lock() => Rest::Nap,
            None => Rest::Awake,
        };
        access.release();
        // Behind the lock: what another lane has left before is seen.
        let others_wait = shared.lengths.iter().any(|length| length.0.load(Ordering::Relaxed) > 0);
        if others_wait { Rest::Awake } else { rest }
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: self.stamping, rings: None }
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }
}

impl SharedQueue for StealingRx {
    fn release(&mut self) -> usize {
        if let Some(number) = self.locked.take() {
            self.access[number].release();
        }
        self.left
    }
}
