//! The order in which replies leave: per shard, that in which their packets came.

use std::collections::VecDeque;

use rheostat_base::ShardId;

use super::slots::{PoolSlot, PoolSlots};

/// Packets of type `C` that wait for replies of type `R`. Replies come in any order; a packet's turn
/// comes when it has its reply and all older ones of its shard have had theirs.
#[derive(Debug)]
pub(super) struct Order<C, R> {
    waiting: PoolSlots<WaitingPacket<C, R>>,
    /// Per shard, the packets whose turn has not come, oldest first.
    queues: Vec<VecDeque<PoolSlot>>,
    /// Those whose turn has come.
    ready: VecDeque<PoolSlot>,
    /// Per shard, packets that are here.
    counts: Vec<usize>,
}

#[derive(Debug)]
struct WaitingPacket<C, R> {
    shard: ShardId,
    packet: C,
    reply: Option<R>,
}

impl<C, R> Order<C, R> {
    /// Room for `capacity` packets of `shards` shards.
    pub(super) fn new(shards: usize, capacity: usize) -> Order<C, R> {
        Order {
            waiting: PoolSlots::new(capacity),
            queues: (0..shards).map(|_| VecDeque::new()).collect(),
            ready: VecDeque::new(),
            counts: vec![0; shards],
        }
    }

    /// Packets that are here, those included whose turn has come.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Packets of a shard that are here, those included whose turn has come.
    pub(super) fn count(&self, shard: ShardId) -> usize {
        self.counts[shard.index()]
    }

    /// How many packets may be taken out.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Lines up a packet behind those of its shard; gives it back when there is no room.
    pub(super) fn enter(&mut self, shard: ShardId, packet: C) -> Result<PoolSlot, C> {
        let waiting = WaitingPacket { shard, packet, reply: None };
        let ticket = self.waiting.enter(waiting).map_err(|refused| refused.packet)?;
        self.queues[shard.index()].push_back(ticket);
        self.counts[shard.index()] += 1;
        Ok(ticket)
    }

    /// Takes the packet out again that entered last, before anything came of it.
    ///
    /// # Panics
    /// When another one entered last.
    pub(super) fn retract(&mut self, ticket: PoolSlot) -> C {
        let WaitingPacket { shard, packet, .. } = self.leave(ticket);
        let last = self.queues[shard.index()].pop_back();
        assert_eq!(last, Some(ticket), "the last of its shard is retracted");
        packet
    }

    /// Notes the reply to a packet.
    ///
    /// # Panics
    /// When the ticket names no packet, or one that has its reply.
    pub(super) fn answer(&mut self, ticket: PoolSlot, reply: R) {
        let Order { waiting, queues, ready, .. } = self;
        let place = waiting.get_mut(ticket).expect("a packet waits for its reply");
        assert!(place.reply.is_none(), "a packet has one reply");
        place.reply = Some(reply);
        let queue = &mut queues[place.shard.index()];
        let mut is_due = |ticket: &mut PoolSlot| {
            waiting.get_mut(*ticket).is_some_and(|waiting| waiting.reply.is_some())
        };
        ready.extend(std::iter::from_fn(|| queue.pop_front_if(&mut is_due)));
    }

    /// Takes out the next packet whose turn has come, with its reply.
    pub(super) fn next(&mut self) -> Option<(C, R)> {
        let ticket = self.ready.pop_front()?;
        let WaitingPacket { packet, reply, .. } = self.leave(ticket);
        Some((packet, reply.expect("its turn comes with its reply")))
    }

    fn leave(&mut self, ticket: PoolSlot) -> WaitingPacket<C, R> {
        let left = self.waiting.leave(ticket).expect("a ticket names a packet");
        self.counts[left.shard.index()] -= 1;
        left
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHARDS: u16 = 3;

    /// Takes out what may be, per shard.
    fn take(order: &mut Order<(u16, u32), u32>, taken: &mut [Vec<u32>]) {
        while let Some(((shard, number), reply)) = order.next() {
            assert_eq!(reply, number * 10, "a packet gets its own reply");
            taken[usize::from(shard)].push(number);
        }
    }

    proptest! {
        /// Whatever order replies come in, packets of a shard leave in theirs, each once, and as soon as
        /// the replies to all older ones are there.
        #[test]
        fn packets_of_a_shard_leave_in_their_order(
            steps in proptest::collection::vec((any::<bool>(), 0..SHARDS, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut order = Order::new(SHARDS.into(), 8);
            let mut waiting: Vec<(PoolSlot, u16, u32)> = Vec::new();
            let mut entered = vec![Vec::new(); SHARDS.into()];
            let mut taken = vec![Vec::new(); SHARDS.into()];
            let mut next = 0;
            for (enters, shard, which) in steps {
                if enters || waiting.is_empty() {
                    match order.enter(ShardId(shard), (shard, next)) {
                        Ok(ticket) => {
                            waiting.push((ticket, shard, next));
                            entered[usize::from(shard)].push(next);
                        }
                        Err(refused) => {
                            prop_assert_eq!(refused, (shard, next));
                            prop_assert_eq!(order.len(), 8);
                        }
                    }
                    next += 1;
                } else {
                    let (ticket, _, number) = waiting.remove(which.index(waiting.len()));
                    order.answer(ticket, number * 10);
                    take(&mut order, &mut taken);
                }
                for shard in 0..SHARDS {
                    let (entered, taken) = (&entered[usize::from(shard)], &taken[usize::from(shard)]);
                    let oldest = waiting.iter().filter(|w| w.1 == shard).map(|w| w.2).min();
                    let due = entered.iter().take_while(|n| oldest.is_none_or(|oldest| **n < oldest));
                    prop_assert!(due.eq(taken.iter()), "{entered:?} {taken:?}");
                    prop_assert_eq!(order.count(ShardId(shard)), entered.len() - taken.len());
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a packet has one reply")]
    fn a_second_reply_is_refused() {
        let mut order = Order::new(1, 2);
        order.enter(ShardId(0), 'a').unwrap();
        let second = order.enter(ShardId(0), 'b').unwrap();
        order.answer(second, 1);
        order.answer(second, 2);
    }
}
