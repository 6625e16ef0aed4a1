//! One receive queue for all lanes.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::Time;
use rheostat_base::sync::Arc;
use rheostat_base::sync::fair_lock::{FairAccess, FairLock};
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::member::{self, Member, MemoryQueue};
use crate::device::{ArrivalOrder, Rest, RxQueue, SharedQueue};

/// A lane's part in the queue.
struct CentralRx {
    member: Member,
    /// Packets that it takes at a time.
    pop: usize,
    access: FairAccess<CentralQueue>,
    shared: Arc<Shared>,
    /// Packets that the last call has read and left.
    left: usize,
}

/// What lanes see without the lock.
struct Shared {
    lock: Arc<FairLock<CentralQueue>>,
    /// Whether the last lane has left packets in the queue. A hint, which orders nothing: Relaxed.
    has_packets: AtomicBool,
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
    let members = Member::all(&hardware);
    let packets = VecDeque::with_capacity(2 * rheostat_packet::BURST);
    let queue = CentralQueue { packets, hardware, turn: 0, told: false };
    let lock = Arc::new(FairLock::new(queue));
    let shared = Arc::new(Shared { lock: lock.clone(), has_packets: AtomicBool::new(false) });
    let lane = |member| {
        let (access, shared) = (FairAccess::new(lock.clone()), shared.clone());
        Box::new(CentralRx { member, pop, access, shared, left: 0 }) as Box<dyn RxQueue>
    };
    members.into_iter().map(lane).collect()
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
}

impl MemoryQueue for CentralQueue {
    fn hardware(&mut self, lane: usize) -> &mut dyn RxQueue {
        &mut *self.hardware[lane]
    }

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
        self.member.note(count > 0);
        count
    }

    /// All packets that the lane may take.
    fn backlog(&self) -> usize {
        member::backlog(&self.shared.lock)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.member.descriptor()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.member.rest(&mut self.access, pool, now)
    }

    fn order(&self) -> ArrivalOrder<'_> {
        self.member.order()
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
