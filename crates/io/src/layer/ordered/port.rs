//! The transmit queue of a device through which turns leave.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rheostat_base::{DropReason, Time};
use rheostat_packet::{Burst, Mbuf, PoolCache};

use crate::device::{TxQueue, Unsent};
use crate::lock::{lock, try_lock};

/// Packets that may wait for room in a device: beyond them the device counts as one that refuses.
const MOST_WAITING: usize = 4_096;

/// How long the last packets have to get out, and how often it is looked.
const LAST_PACKETS: Duration = Duration::from_millis(100);
const GLANCE: Duration = Duration::from_micros(200);

/// A device's transmit queue, which lanes that share a receive queue share.
pub(super) struct Port {
    /// Held for the time of sending a burst or so.
    state: Mutex<PortState>,
    /// Whether packets wait for room in the device, or for it to send them.
    has_work: AtomicBool,
}

struct PortState {
    queue: Box<dyn TxQueue>,
    /// The other lanes' transmit queues, through which nothing is sent. The last lane that ends sending ends them.
    spare: Vec<Box<dyn TxQueue>>,
    /// Lanes that have not ended sending.
    lanes: usize,
    /// Packets that have had their turn and wait for room, each with the books it is in.
    backlog: VecDeque<(Mbuf, Arc<[Books]>)>,
    /// Packets that the device has taken and not sent, in order: how many, of which books.
    taken: VecDeque<(u64, Arc<[Books]>)>,
    /// What the device has said of them last.
    unsent: Unsent,
    /// Whether the device sends nothing any more.
    has_ended: bool,
}

/// What became of a lane's packets to one device, written by whichever lane sends them.
#[derive(Debug, Default)]
pub(super) struct Books {
    waiting: AtomicU64,
    refused: AtomicU64,
    too_big: AtomicU64,
    link_down: AtomicU64,
    refused_bytes: AtomicU64,
}

impl Books {
    /// Packets were put into turns.
    pub(super) fn wait(&self, packets: u64) {
        // Relaxed, here and below: figures of their own.
        self.waiting.fetch_add(packets, Ordering::Relaxed);
    }

    fn refuse(&self, reason: DropReason, packets: u64, bytes: u64) {
        let figure = match reason {
            DropReason::TooBig => &self.too_big,
            DropReason::LinkDown => &self.link_down,
            _ => &self.refused,
        };
        figure.fetch_add(packets, Ordering::Relaxed);
        self.refused_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.leave(packets);
    }

    fn leave(&self, packets: u64) {
        self.waiting.fetch_sub(packets, Ordering::Relaxed);
    }

    /// The figures now. A packet is never in neither of them: refusing counts before it stops counting as waiting.
    pub(super) fn unsent(&self) -> Unsent {
        Unsent {
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            too_big: self.too_big.load(Ordering::Relaxed),
            link_down: self.link_down.load(Ordering::Relaxed),
            refused_bytes: self.refused_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Port {
    /// A port of these queues, one per lane.
    pub(super) fn new(mut queues: Vec<Box<dyn TxQueue>>) -> Port {
        let lanes = queues.len();
        let queue = queues.remove(0);
        let state = PortState {
            queue,
            spare: queues,
            lanes,
            backlog: VecDeque::new(),
            taken: VecDeque::new(),
            unsent: Unsent::default(),
            has_ended: false,
        };
        Port { state: Mutex::new(state), has_work: AtomicBool::new(false) }
    }

    /// Sends packets of a lane, behind all that wait. `number` is the device's, and the place of its books.
    pub(super) fn send(
        &self,
        number: usize,
        packets: impl Iterator<Item = Mbuf>,
        books: &Arc<[Books]>,
        (pool, now): (&mut PoolCache, Time),
    ) {
        let mut state = lock(&self.state);
        for packet in packets {
            if state.backlog.len() == MOST_WAITING {
                state.flush(number, pool, now);
            }
            if state.backlog.len() == MOST_WAITING || state.has_ended {
                books[number].refuse(DropReason::TransmitRefused, 1, packet.len() as u64);
                pool.free(packet);
                continue;
            }
            state.backlog.push_back((packet, books.clone()));
        }
        state.flush(number, pool, now);
        self.note(&state);
    }

    /// Tries again to send what waits, unless another lane is at it.
    #[inline]
    pub(super) fn try_again(&self, number: usize, pool: &mut PoolCache, now: Time) {
        if !self.has_work.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut state) = try_lock(&self.state) else { return };
        // A device that has put off sending does so now.
        state.queue.send(&mut Burst::new(), pool, now);
        state.flush(number, pool, now);
        self.note(&state);
    }

    fn note(&self, state: &PortState) {
        let waits = !state.backlog.is_empty() || !state.taken.is_empty();
        let has_work = waits && !state.has_ended;
        self.has_work.store(has_work, Ordering::Relaxed);
    }

    /// A lane ends sending: what waits goes or is refused.
    pub(super) fn finish(
        &self,
        number: usize,
        own: &Arc<[Books]>,
        pool: &mut PoolCache,
        now: Time,
    ) {
        let mut state = lock(&self.state);
        state.flush(number, pool, now);
        for (packet, books) in std::mem::take(&mut state.backlog) {
            books[number].refuse(DropReason::TransmitRefused, 1, packet.len() as u64);
            pool.free(packet);
        }
        state.lanes -= 1;
        let end = Instant::now() + LAST_PACKETS;
        while state.waits(own) && state.lanes > 0 && Instant::now() < end {
            std::thread::sleep(GLANCE);
            state.queue.send(&mut Burst::new(), pool, now);
            state.settle(number);
        }
        // A device that does not send what this lane has given it sends nothing of the others either.
        if state.lanes == 0 || state.waits(own) {
            state.queue.finish(pool);
            state.has_ended = true;
            state.settle(number);
        }
        if state.lanes == 0 {
            state.spare.iter_mut().for_each(|queue| queue.finish(pool));
        }
        self.note(&state);
    }
}

impl PortState {
    /// Whether the device has not sent all that a lane has given it.
    fn waits(&self, own: &Arc<[Books]>) -> bool {
        self.taken.iter().any(|(_, books)| Arc::ptr_eq(books, own))
    }

    /// Sends from the front of what waits while the device has room, and notes what it has sent.
    fn flush(&mut self, number: usize, pool: &mut PoolCache, now: Time) {
        while let Some((packet, books)) = self.backlog.pop_front() {
            // Of one lane: the device may refuse a packet and take those behind it.
            let mut burst = Burst::new();
            burst.push(packet);
            while !burst.is_full()
                && let Some((_, others)) = self.backlog.front()
                && Arc::ptr_eq(&books, others)
            {
                burst.extend(self.backlog.pop_front().map(|(packet, _)| packet));
            }
            let sent = self.queue.send(&mut burst, pool, now) as u64;
            if sent > 0 {
                self.taken.push_back((sent, books.clone()));
            }
            let reasons: Vec<DropReason> = burst
                .iter()
                .enumerate()
                .map(|(place, packet)| self.queue.why_left(place, packet))
                .collect();
            let is_full = reasons.contains(&DropReason::TransmitFull);
            for (packet, reason) in burst.drain(..).zip(reasons).rev() {
                if reason == DropReason::TransmitFull {
                    self.backlog.push_front((packet, books.clone()));
                } else {
                    // It would wait for ever, and all behind it.
                    books[number].refuse(reason, 1, packet.len() as u64);
                    pool.free(packet);
                }
            }
            if is_full {
                break;
            }
        }
        self.settle(number);
    }

    /// Notes what the device has sent or refused of what it has taken.
    fn settle(&mut self, number: usize) {
        let before = std::mem::replace(&mut self.unsent, self.queue.unsent());
        let mut refused = self.unsent.lost() - before.lost();
        let mut refused_bytes = self.unsent.refused_bytes - before.refused_bytes;
        let taken: u64 = self.taken.iter().map(|(packets, _)| packets).sum();
        let mut settled = taken.saturating_sub(self.unsent.waiting);
        while settled > 0 {
            let (packets, books) = self.taken.front_mut().expect("they were counted");
            let left = settled.min(*packets);
            let of_these = refused.min(left);
            // Which of them it refused is not known.
            let bytes = std::mem::take(&mut refused_bytes);
            books[number].refuse(DropReason::TransmitRefused, of_these, bytes);
            books[number].leave(left - of_these);
            refused -= of_these;
            settled -= left;
            *packets -= left;
            if *packets == 0 {
                self.taken.pop_front();
            }
        }
    }
}
