//! A transmit queue of a bad network.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{ClockSource, Time};
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::{Counters, Draw, Fault};
use crate::device::{TxQueue, Unsent};

/// Packets that wait at most; those beyond leave no room.
const MOST: usize = 8_192;

/// A transmit queue whose packets are lost, reordered and late on the way. None is doubled: a lane could not account for a
/// packet that it has not sent.
pub(super) struct ImpairedTx {
    inner: Box<dyn TxQueue>,
    draw: Draw,
    counters: Arc<Counters>,
    delay: Duration,
    clock: Arc<dyn ClockSource>,
    /// Its own, for packets that leave when the lane only asks.
    pool: PoolCache,
    /// Packets on the way, and when they leave.
    waiting: VecDeque<(Time, Mbuf)>,
    /// Packets, and their bytes, that could not leave before the end.
    refused: (u64, u64),
}

impl ImpairedTx {
    pub(super) fn new(
        inner: Box<dyn TxQueue>,
        draw: Draw,
        counters: Arc<Counters>,
        delay: Duration,
        clock: Arc<dyn ClockSource>,
        pool: PoolCache,
    ) -> ImpairedTx {
        let (waiting, refused) = (VecDeque::new(), (0, 0));
        ImpairedTx { inner, draw, counters, delay, clock, pool, waiting, refused }
    }

    /// Sends what is due by `now`.
    fn send_due(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|(due, _)| *due <= now) {
            let (mut burst, mut times) = (Burst::new(), VecDeque::new());
            while burst.remaining_capacity() > 0
                && let Some((due, packet)) = self.waiting.pop_front_if(|(due, _)| *due <= now)
            {
                times.push_back(due);
                burst.push(packet);
            }
            let taken = self.inner.send(&mut burst, &mut self.pool, now);
            times.drain(..taken);
            if burst.is_empty() {
                continue;
            }
            // What the device has no room for keeps its place.
            let left: Vec<_> = times.into_iter().zip(burst).collect();
            left.into_iter().rev().for_each(|packet| self.waiting.push_front(packet));
            return;
        }
    }

    fn enter(&mut self, packet: Mbuf, due: Time, overtaken: &mut Option<Mbuf>, is_last: bool) {
        match self.draw.next() {
            Some(Fault::Lose) => {
                self.counters.lost.increment();
                self.counters.lost_bytes.add(u64::from(packet.wire_len()));
                self.pool.free(packet);
                return;
            }
            Some(Fault::Swap) if overtaken.is_none() && !is_last => {
                *overtaken = Some(packet);
                return;
            }
            Some(Fault::Swap | Fault::Double) | None => {}
        }
        self.waiting.push_back((due, packet));
        if let Some(late) = overtaken.take() {
            self.waiting.push_back((due, late));
            self.counters.reordered.increment();
        }
    }
}

impl TxQueue for ImpairedTx {
    fn send(&mut self, burst: &mut Burst, _pool: &mut PoolCache, now: Time) -> usize {
        let room = MOST.saturating_sub(self.waiting.len());
        let count = burst.len().min(room);
        let due = now + self.delay;
        let mut overtaken = None;
        for (number, packet) in burst.drain(..count).enumerate() {
            self.enter(packet, due, &mut overtaken, number + 1 == count);
        }
        if let Some(late) = overtaken {
            self.waiting.push_back((due, late));
        }
        self.send_due(now);
        count
    }

    fn unsent(&mut self) -> Unsent {
        if !self.waiting.is_empty() {
            let now = self.clock.now();
            self.send_due(now);
        }
        let (refused, refused_bytes) = self.refused;
        let waiting = self.waiting.len() as u64;
        self.inner.unsent() + Unsent { waiting, refused, refused_bytes, ..Unsent::default() }
    }

    /// The rest of the way is not waited for.
    fn finish(&mut self, pool: &mut PoolCache) {
        self.send_due(Time::NEVER);
        self.inner.finish(pool);
        for (_, packet) in self.waiting.drain(..) {
            self.refused.0 += 1;
            self.refused.1 += u64::from(packet.wire_len());
            self.pool.free(packet);
        }
        self.pool.flush();
    }
}
