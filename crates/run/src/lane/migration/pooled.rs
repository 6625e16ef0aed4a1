//! A shard moves while a pool works for its packets. Each thing that keeps replies in order was seen to
//! matter: left out, it is noticed.

use rheostat_base::ShardId;

use super::fixture::{A, B, C, Fixture, Queue, send_on};
use crate::crew::LaneNotifier;
use crate::invariant::Violation;
use crate::lane::{Batch, HandoffPacket, Output};
use crate::pool::{AnyPoolClient, PacketClient, PoolConfig, Reply, Stepped};
use crate::service::{DeferredWork, Service};
use crate::shard_set::ShardSet;

/// What is left out.
#[derive(Clone, Copy, Default)]
struct Sabotage {
    /// The lane does not hear of packets at the client when it gives a shard away.
    hides_packets: bool,
    /// Each packet waits at the client as if it were the only one of its shard.
    forgets_order: bool,
}

/// A client, and what the lane is told of it.
struct Told(PacketClient<(), ()>, Sabotage);

impl AnyPoolClient for Told {
    fn collect(&mut self) -> usize {
        self.0.collect()
    }

    fn ring(&mut self) {
        self.0.ring();
    }

    fn packets(&self) -> usize {
        self.0.packets()
    }

    fn outstanding(&self, shard: ShardId) -> usize {
        if self.1.hides_packets { 0 } else { self.0.outstanding(shard) }
    }

    fn has_replies(&self) -> bool {
        self.0.has_replies()
    }

    fn wake_by(&mut self, notifier: LaneNotifier) {
        self.0.wake_by(notifier);
    }
}

/// Sends on what a pool has worked for, and notes whether flows keep their order.
struct Pooled {
    client: Told,
    given: u16,
    /// The shard of all packets.
    shard: ShardId,
}

impl Service for Pooled {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, _: &mut Output) {
        let Told(client, Sabotage { forgets_order, .. }) = &mut self.client;
        for (packet, &info) in batch.drain() {
            let mut info = info;
            self.shard = info.shard;
            self.given += 1;
            if *forgets_order {
                info.shard = ShardId(self.given % 4);
            }
            assert!(client.submit(HandoffPacket { packet, info }, ()).is_none(), "room for all");
        }
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for Pooled {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        Some(&mut self.client)
    }

    fn settle(&mut self, shards: &mut ShardSet, out: &mut Output) {
        while let Some(Reply { mut placed, .. }) = self.client.0.next_reply() {
            placed.info.shard = self.shard;
            send_on(placed, shards, out);
        }
    }
}

type Work = fn(());

/// A fixture with a pool of three members, each of which has room for four tasks of each lane.
fn fixture(sabotage: Sabotage) -> (Fixture, Stepped<(), (), Work>) {
    let config = PoolConfig::new(3, 3, 4);
    let (pool, clients) = Stepped::new(&config, |_| (|()| ()) as Work).unwrap();
    let mut clients = clients.into_iter().map(|client| PacketClient::new(client, 4));
    let service = |_| {
        let client = Told(clients.next().expect("one per lane"), sabotage);
        Box::new(Pooled { client, given: 0, shard: ShardId(0) }) as Box<dyn Service>
    };
    (Fixture::with(Queue::default(), service), pool)
}

/// Three packets are at the pool when their shard is to move; a fourth waits where it goes. `while_moving`
/// is what the pool does before all of it is done.
fn moved(
    sabotage: Sabotage,
    while_moving: impl Fn(&mut Fixture, &mut Stepped<(), (), Work>),
) -> Vec<Violation> {
    let (mut fixture, mut pool) = fixture(sabotage);
    fixture.arrive(A, 3);
    fixture.poll(A);
    fixture.expect();
    fixture.poll(B);
    fixture.redirect();
    fixture.poll(C);
    fixture.release(2);
    fixture.arrive(B, 1);
    fixture.poll(B);
    while_moving(&mut fixture, &mut pool);
    for _ in 0..8 {
        (A..=C).for_each(|lane| fixture.poll(lane));
        pool.step(0);
    }
    assert!(fixture.lanes.iter().all(|lane| lane.at_pool() == 0), "the pool has done everything");
    fixture.finish()
}

/// How many shards lane A has while its pool gets on.
fn owned(fixture: &Fixture) -> usize {
    fixture.lanes[A].shards().owned().count()
}

#[test]
fn a_shard_stays_until_its_pool_is_done() {
    let violations = moved(Sabotage::default(), |fixture, pool| {
        for _ in 0..3 {
            fixture.poll(A);
            assert_eq!(owned(fixture), 4, "a packet of the shard is at the pool");
            assert_eq!(fixture.lanes[B].counters().on_hold.get(), 1);
            assert!(pool.step(1));
        }
        fixture.poll(A);
        assert_eq!(owned(fixture), 3);
        assert_eq!(fixture.lanes[A].counters().sent.get(), 3, "and left before the shard");
    });
    assert_eq!(violations, []);
}

#[test]
#[should_panic(expected = "a packet meets its shard")]
fn an_owner_that_does_not_wait_for_its_pool_is_found_out() {
    let sabotage = Sabotage { hides_packets: true, ..Sabotage::default() };
    moved(sabotage, |fixture, _| {
        fixture.poll(A);
        assert_eq!(owned(fixture), 3, "the shard has gone");
    });
}

/// The members of the pool are done in the reverse order of their packets.
fn last_first(sabotage: Sabotage) -> Vec<Violation> {
    let (mut fixture, mut pool) = fixture(sabotage);
    fixture.arrive(A, 3);
    fixture.poll(A);
    // The packets went to the first member, the second and the third.
    for choice in [2, 1, 0] {
        assert!(pool.step(choice));
        fixture.poll(A);
    }
    fixture.finish()
}

#[test]
fn replies_whose_order_is_not_restored_are_found_out() {
    assert_eq!(last_first(Sabotage::default()), []);
    let sabotage = Sabotage { forgets_order: true, ..Sabotage::default() };
    assert_eq!(last_first(sabotage), [Violation::Reordered { packets: 2 }]);
}

#[test]
fn a_lane_does_not_sleep_over_replies() {
    let (mut fixture, mut pool) = fixture(Sabotage::default());
    fixture.arrive(A, 1);
    fixture.poll(A);
    assert!(fixture.lanes[A].is_quiet(), "the pool has it");
    assert!(pool.step(0));
    assert!(!fixture.lanes[A].is_quiet());
    fixture.poll(A);
    assert!(fixture.lanes[A].is_quiet());
    assert_eq!(fixture.finish(), []);
}

#[test]
fn a_pool_that_does_not_reply_is_named() {
    let (mut fixture, _pool) = fixture(Sabotage::default());
    fixture.arrive(A, 2);
    fixture.poll(A);
    assert_eq!(fixture.account(), [Violation::Unanswered { lane: A, packets: 2 }]);
}

#[test]
fn packets_of_a_pool_that_has_ended_come_back() {
    let (mut fixture, pool) = fixture(Sabotage::default());
    fixture.arrive(A, 2);
    fixture.poll(A);
    drop(pool);
    assert_eq!(fixture.finish(), []);
}
