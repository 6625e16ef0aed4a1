//! A receive queue for each lane, of which lanes without packets steal.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rheostat_base::Time;
use rheostat_base::choice::choose_theft;
use rheostat_base::sync::Arc;
use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::member::{self, Member, MemoryQueue};
use crate::device::{ArrivalOrder, Rest, RxQueue, SharedQueue};

/// A lane's part in the queues of all lanes.
struct StealingRx {
    member: Member,
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
    /// Packets that the last call has read and left.
    left: usize,
}

/// What lanes see without locks.
struct Shared {
    locks: Vec<Arc<FairLock<LaneQueue>>>,
    lengths: Vec<Length>,
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
}

impl MemoryQueue for LaneQueue {
    fn hardware(&mut self, _lane: usize) -> &mut dyn RxQueue {
        &mut *self.hardware
    }

    fn backlog(&self) -> usize {
        self.packets.len() + self.hardware.backlog()
    }
}

pub(super) fn share(
    hardware: Vec<Box<dyn RxQueue>>,
    pop: usize,
    steal: usize,
) -> Vec<Box<dyn RxQueue>> {
    let (lanes, members) = (hardware.len(), Member::all(&hardware));
    let queue =
        |hardware| LaneQueue { packets: VecDeque::with_capacity(2 * BURST), hardware, behind: 0 };
    let locks: Vec<_> = hardware.into_iter().map(|rx| Arc::new(FairLock::new(queue(rx)))).collect();
    let lengths = (0..lanes).map(|_| Length(AtomicU32::new(0))).collect();
    let shared = Arc::new(Shared { locks: locks.clone(), lengths });
    let lane = |member| {
        let part = StealingRx {
            member,
            pop,
            steal,
            access: locks.iter().cloned().map(FairAccess::new).collect(),
            locked: None,
            shared: shared.clone(),
            lengths: Vec::with_capacity(lanes),
            left: 0,
        };
        Box::new(part) as Box<dyn RxQueue>
    };
    members.into_iter().map(lane).collect()
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
        let (lane, lengths) = (self.member.lane, &self.shared.lengths);
        self.lengths.clear();
        self.lengths.extend(lengths.iter().map(|length| length.0.load(Ordering::Relaxed)));
        if let Some(theft) = choose_theft(lane, &self.lengths, self.steal as u32) {
            self.access[theft.victim].lock_soon();
            let take = Take::Packets(theft.requests as usize);
            return self.take(theft.victim, take, burst, (pool, now));
        }
        let lanes = self.access.len();
        for victim in (1..lanes).map(|step| (lane + step) % lanes) {
            if self.member.is_at_work(victim) && self.access[victim].try_lock().is_some() {
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
        let own = self.member.lane;
        self.access[own].lock_soon();
        let mut count = self.take(own, Take::Packets(self.pop), burst, (&mut *pool, now));
        if count == 0 && burst.remaining_capacity() > 0 {
            count = self.steal(burst, pool, now);
        }
        self.member.note(count > 0);
        count
    }

    /// Packets in its own queue, and those in others as far as is known. While another lane has the lock of its own, 1 of that: there
    /// may be some.
    fn backlog(&self) -> usize {
        let (own, lengths) = (self.member.lane, &self.shared.lengths);
        let others = lengths.iter().enumerate().filter(|(lane, _)| *lane != own);
        let others = others.map(|(_, length)| length.0.load(Ordering::Relaxed) as usize);
        member::backlog(&self.shared.locks[own]) + others.sum::<usize>()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.member.descriptor()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        let StealingRx { member, access, shared, .. } = self;
        let rest = member.rest(&mut access[member.lane], pool, now);
        let others_wait = shared.lengths.iter().any(|length| length.0.load(Ordering::Relaxed) > 0);
        if others_wait { Rest::Awake } else { rest }
    }

    fn order(&self) -> ArrivalOrder<'_> {
        self.member.order()
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
