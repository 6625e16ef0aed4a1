//! The transmit queue of a device through which turns leave.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use crate::device::{TxQueue, Unsent};

/// Packets that may wait for room in a device: beyond them the device counts as one that refuses.
const MOST_WAITING: usize = 4_096;

/// A device's transmit queue, which lanes that share a receive queue share.
pub(super) struct Port {
    /// Held for the time of sending a burst or so.
    state: Mutex<PortState>,
    /// Whether packets wait for room in the device.
    has_backlog: AtomicBool,
}

struct PortState {
    queue: Box<dyn TxQueue>,
    /// The other lanes' transmit queues, through which nothing is sent. The last lane that ends sending ends them.
    spare: Vec<Box<dyn TxQueue>>,
    /// Lanes that have not ended sending.
    lanes: usize,
    /// Packets that have had their turn and wait for room, each with the books it is in.
    backlog: VecDeque<(Mbuf, Arc<[Books]>)>,
}

/// What became of a lane's packets to one device, written by whichever lane sends them.
#[derive(Debug, Default)]
pub(super) struct Books {
    waiting: AtomicU64,
    refused: AtomicU64,
    refused_bytes: AtomicU64,
}

impl Books {
    /// Packets were put into turns.
    pub(super) fn wait(&self, packets: u64) {
        // Relaxed, here and below: figures of their own.
        self.waiting.fetch_add(packets, Ordering::Relaxed);
    }

    fn refuse(&self, bytes: usize) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.refused_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The figures now. A packet is never in neither of them: refusing counts before it stops counting as waiting.
    pub(super) fn unsent(&self) -> Unsent {
        Unsent {
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            refused_bytes: self.refused_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Port {
    /// A port of these queues, one per lane.
    pub(super) fn new(mut queues: Vec<Box<dyn TxQueue>>) -> Port {
        let lanes = queues.len();
        let queue = queues.remove(0);
        let state = PortState { queue, spare: queues, lanes, backlog: VecDeque::new() };
        Port { state: Mutex::new(state), has_backlog: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, PortState> {
        // A panic leaves the packets that were not sent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends packets of a lane, behind all that wait. `number` is the device's, and the place of its books.
    pub(super) fn send(
        &self,
        number: usize,
        packets: impl Iterator<Item = Mbuf>,
        books: &Arc<[Books]>,
        (pool, now): (&mut PoolCache, Time),
    ) {
        let mut state = self.state();
        for packet in packets {
            if state.backlog.len() == MOST_WAITING {
                state.flush(number, pool, now);
            }
            if state.backlog.len() == MOST_WAITING {
                books[number].refuse(packet.len());
                pool.free(packet);
                continue;
            }
            state.backlog.push_back((packet, books.clone()));
        }
        state.flush(number, pool, now);
        self.has_backlog.store(!state.backlog.is_empty(), Ordering::Relaxed);
    }

    /// Tries again to send what waits for room.
    #[inline]
    pub(super) fn try_again(&self, number: usize, pool: &mut PoolCache, now: Time) {
        if self.has_backlog.load(Ordering::Relaxed) {
            self.send(number, std::iter::empty(), &Arc::default(), (pool, now));
        }
    }

    /// A lane ends sending: what waits goes or is refused.
    pub(super) fn finish(&self, number: usize, pool: &mut PoolCache, now: Time) {
        let mut state = self.state();
        state.flush(number, pool, now);
        for (packet, books) in std::mem::take(&mut state.backlog) {
            books[number].refuse(packet.len());
            pool.free(packet);
        }
        self.has_backlog.store(false, Ordering::Relaxed);
        state.lanes -= 1;
        if state.lanes == 0 {
            state.queue.finish(pool);
            state.spare.iter_mut().for_each(|queue| queue.finish(pool));
        }
    }
}

impl PortState {
    /// Sends from the front of what waits while the device has room.
    fn flush(&mut self, number: usize, pool: &mut PoolCache, now: Time) {
        let mut burst = Burst::new();
        let mut owners: VecDeque<Arc<[Books]>> = VecDeque::new();
        while !self.backlog.is_empty() {
            let count = self.backlog.len().min(burst.remaining_capacity());
            for (packet, books) in self.backlog.drain(..count) {
                burst.push(packet);
                owners.push_back(books);
            }
            let sent = self.queue.send(&mut burst, pool, now);
            for books in owners.drain(..sent) {
                books[number].waiting.fetch_sub(1, Ordering::Relaxed);
            }
            if !burst.is_empty() {
                let left = burst.drain(..).zip(owners.drain(..)).collect::<Vec<_>>();
                left.into_iter().rev().for_each(|each| self.backlog.push_front(each));
                return;
            }
        }
    }
}
