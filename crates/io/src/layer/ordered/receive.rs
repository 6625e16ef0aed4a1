//! The receive queue of a lane whose packets leave in order.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::port::{Books, Port};
use super::{OpenTurn, OpenTurns, QueueTurns, Turn};
use crate::device::{Rest, RxLayer, RxQueue};

/// A receive queue whose claims open turns.
pub(super) struct OrderedRx {
    inner: Box<dyn RxQueue>,
    /// The number of its device.
    device: usize,
    queue: Arc<QueueTurns>,
    open: OpenTurns,
    books: Arc<[Books]>,
    ports: Arc<[Port]>,
    /// Room for the packets of turns, of those that have left.
    spare: Vec<Vec<(u8, Mbuf)>>,
}

impl OrderedRx {
    pub(super) fn new(
        mut inner: Box<dyn RxQueue>,
        device: usize,
        queue: Arc<QueueTurns>,
        (open, books): (OpenTurns, Arc<[Books]>),
        ports: Arc<[Port]>,
    ) -> OrderedRx {
        let bounding = queue.clone();
        let shared = inner.as_shared().expect("lanes share the queue");
        shared.bound_claims(Arc::new(move || bounding.turns.bound()));
        OrderedRx { inner, device, queue, open, books, ports, spare: Vec::new() }
    }

    /// The lane is done with what it received before.
    fn close(&mut self, pool: &mut PoolCache, now: Time) {
        let open = self.open.try_lock().expect("the lane's own")[self.device].take();
        let Some(OpenTurn { range: (first, end), packets }) = open else { return };
        let OrderedRx { queue, books, ports, spare, .. } = self;
        let turn = Turn { packets, books: books.clone(), closed: now };
        queue.turns.close(first, end, turn, |turn| {
            queue.delays.record(now.as_nanos().saturating_sub(turn.closed.as_nanos()));
            spare.push(leave(turn, ports, pool, now));
        });
        // Another lane's turns left here; what is more than enough is given back to the allocator.
        spare.truncate(super::SPARE);
    }
}

/// Sends the packets of a turn, in runs of one device; returns the room that they took.
fn leave(mut turn: Turn, ports: &[Port], pool: &mut PoolCache, now: Time) -> Vec<(u8, Mbuf)> {
    let mut packets = turn.packets.drain(..).peekable();
    while let Some(&(device, _)) = packets.peek() {
        let number = usize::from(device);
        let run = std::iter::from_fn(|| packets.next_if(|(to, _)| *to == device));
        ports[number].send(number, run.map(|(_, packet)| packet), &turn.books, (pool, now));
    }
    drop(packets);
    turn.packets
}

impl RxLayer for OrderedRx {
    fn inner(&self) -> &dyn RxQueue {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn RxQueue {
        &mut *self.inner
    }

    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        self.close(pool, now);
        for (number, port) in self.ports.iter().enumerate() {
            port.try_again(number, pool, now);
        }
        let count = self.inner.recv(burst, pool, now);
        if let Some(range) = self.inner.as_shared().and_then(|queue| queue.latest_claim()) {
            let packets = self.spare.pop().unwrap_or_default();
            let mut open = self.open.try_lock().expect("the lane's own");
            open[self.device] = Some(OpenTurn { range, packets });
        }
        count
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.close(pool, now);
        self.inner.rest(pool, now)
    }
}
