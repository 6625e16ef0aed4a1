//! The ends of a queue that a lane holds.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{Clock, Time};
use rheostat_io::{QueuePair, Rest, RxQueue, TxQueue};
use rheostat_packet::{Burst, PoolCache};

use super::population::Population;

/// One end of a queue.
struct ListEnd {
    all: Arc<Population>,
    queue: usize,
    clock: Clock,
}

struct Receiving(ListEnd);

struct Transmitting(ListEnd);

/// The ends of queue `queue`.
pub(super) fn pair(all: &Arc<Population>, queue: usize, clock: &Clock) -> QueuePair {
    let end = || ListEnd { all: all.clone(), queue, clock: clock.clone() };
    QueuePair { rx: Box::new(Receiving(end())), tx: Box::new(Transmitting(end())) }
}

impl RxQueue for Receiving {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let ListEnd { all, queue, clock } = &self.0;
        // Relaxed: the flag publishes nothing.
        if all.is_stopped.load(Ordering::Relaxed) {
            return 0;
        }
        let from = clock.cycles();
        let before = burst.len();
        all.queues[*queue].side().receive(all, burst, pool, now);
        all.queues[*queue].counters.ticks.add(clock.cycles().0.wrapping_sub(from.0));
        burst.len() - before
    }

    fn backlog(&self) -> usize {
        0
    }

    fn rest(&mut self, _: &mut PoolCache, _: Time) -> Rest {
        let ListEnd { all, queue, .. } = &self.0;
        if all.is_stopped.load(Ordering::Relaxed) {
            return Rest::Nap;
        }
        let share = &all.queues[*queue];
        share.side().rest(all.config.pace, share.has_come.load(Ordering::Relaxed))
    }
}

impl TxQueue for Transmitting {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let ListEnd { all, queue, clock } = &self.0;
        let from = clock.cycles();
        let counters = &all.queues[*queue].counters;
        let mut side = all.queues[*queue].side();
        let sent = burst.len();
        for packet in burst.drain(..) {
            counters.sent_bytes.add(packet.len() as u64);
            side.take(all, &packet, now);
            pool.free(packet);
        }
        counters.sent.add(sent as u64);
        counters.ticks.add(clock.cycles().0.wrapping_sub(from.0));
        sent
    }
}
