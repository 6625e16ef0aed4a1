//! A shard moves while a pool works for its packets. Each thing that keeps replies in order was seen to
//! matter: left out, it is noticed.

use rheostat_base::{ShardId, Time};

use super::scene::{A, B, C, Queue, Scene, send_on};
use crate::crew::LaneWaker;
use crate::invariant::Violation;
use crate::lane::{Batch, HandoffPacket, Output};
use crate::pool::{AnyDesk, Desk, PoolConfig, Reply, Stepped};
use crate::service::Service;
use crate::shard_set::ShardSet;

/// What is left out.
#[derive(Clone, Copy, Default)]
struct Sabotage {
    /// The lane does not hear of packets at the desk when it gives a shard away.
    hides_packets: bool,
    /// Each packet waits at the desk as if it were the only one of its shard.
    forgets_order: bool,
}

/// A desk, and what the lane is told of it.
struct Told(Desk<(), ()>, Sabotage);

impl AnyDesk for Told {
    fn collect(&mut self) -> usize {
        self.0.collect()
    }

    fn ring(&mut self) {
        self.0.ring();
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn outstanding(&self, shard: ShardId) -> usize {
        if self.1.hides_packets { 0 } else { self.0.outstanding(shard) }
    }

    fn has_replies(&self) -> bool {
        self.0.has_replies()
    }

    fn wake_by(&mut self, waker: LaneWaker) {
        self.0.wake_by(waker);
    }
}

/// Sends on what a pool has worked for, and notes whether flows keep their order.
struct Pooled {
    desk: Told,
    given: u16,
    /// The shard of all packets.
    shard: ShardId,
}

impl Service for Pooled {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, _: &mut Output) {
        let Told(desk, Sabotage { forgets_order, .. }) = &mut self.desk;
        for (packet, &info) in batch.drain() {
            let mut info = info;
            self.shard = info.shard;
            self.given += 1;
            if *forgets_order {
                info.shard = ShardId(self.given % 4);
            }
            assert!(desk.give(HandoffPacket { packet, info }, ()).is_none(), "room for all");
        }
    }

    fn desk(&mut self) -> Option<&mut dyn AnyDesk> {
        Some(&mut self.desk)
    }

    fn complete(&mut self, shards: &mut ShardSet, out: &mut Output, _: Time) {
        while let Some(Reply { mut placed, .. }) = self.desk.0.next_reply() {
            placed.info.shard = self.shard;
            send_on(placed, shards, out);
        }
    }
}

type Work = fn(());

/// A scene with a pool of three members, each of which has room for four tasks of each lane.
fn scene(sabotage: Sabotage) -> (Scene, Stepped<(), (), Work>) {
    let config = PoolConfig { members: vec![None; 3], lanes: 3, shards: 4, depth: 4 };
    let (pool, desks) = Stepped::new(&config, (|()| ()) as Work).unwrap();
    let mut desks = desks.into_iter();
    let service = |_| {
        let desk = Told(desks.next().expect("one per lane"), sabotage);
        Box::new(Pooled { desk, given: 0, shard: ShardId(0) }) as Box<dyn Service>
    };
    (Scene::with(Queue::default(), service), pool)
}

/// Three packets are at the pool when their shard is to move; a fourth waits where it goes. `while_moving`
/// is what the pool does before all of it is done.
fn moved(
    sabotage: Sabotage,
    while_moving: impl Fn(&mut Scene, &mut Stepped<(), (), Work>),
) -> Vec<Violation> {
    let (mut scene, mut pool) = scene(sabotage);
    scene.arrive(A, 3);
    scene.poll(A);
    scene.expect();
    scene.poll(B);
    scene.redirect();
    scene.poll(C);
    scene.release(2);
    scene.arrive(B, 1);
    scene.poll(B);
    while_moving(&mut scene, &mut pool);
    for _ in 0..8 {
        (A..=C).for_each(|lane| scene.poll(lane));
        pool.step(0);
    }
    assert!(scene.lanes.iter().all(|lane| lane.at_pool() == 0), "the pool has done everything");
    scene.finish()
}

/// How many shards lane A has while its pool gets on.
fn owned(scene: &Scene) -> usize {
    scene.lanes[A].shards().owned().count()
}

#[test]
fn a_shard_stays_until_its_pool_is_done() {
    let violations = moved(Sabotage::default(), |scene, pool| {
        for _ in 0..3 {
            scene.poll(A);
            assert_eq!(owned(scene), 4, "a packet of the shard is at the pool");
            assert_eq!(scene.lanes[B].counters().on_hold.get(), 1);
            assert!(pool.step(1));
        }
        scene.poll(A);
        assert_eq!(owned(scene), 3);
        assert_eq!(scene.lanes[A].counters().sent.get(), 3, "and left before the shard");
    });
    assert_eq!(violations, []);
}

#[test]
#[should_panic(expected = "a packet meets its shard")]
fn an_owner_that_does_not_wait_for_its_pool_is_found_out() {
    let sabotage = Sabotage { hides_packets: true, ..Sabotage::default() };
    moved(sabotage, |scene, _| {
        scene.poll(A);
        assert_eq!(owned(scene), 3, "the shard has gone");
    });
}

/// The members of the pool are done in the reverse order of their packets.
fn last_first(sabotage: Sabotage) -> Vec<Violation> {
    let (mut scene, mut pool) = scene(sabotage);
    scene.arrive(A, 3);
    scene.poll(A);
    // The packets went to the second member, the third and the first.
    for choice in [0, 1, 0] {
        assert!(pool.step(choice));
        scene.poll(A);
    }
    scene.finish()
}

#[test]
fn replies_whose_order_is_not_restored_are_found_out() {
    assert_eq!(last_first(Sabotage::default()), []);
    let sabotage = Sabotage { forgets_order: true, ..Sabotage::default() };
    assert_eq!(last_first(sabotage), [Violation::Reordered { packets: 2 }]);
}

#[test]
fn a_lane_does_not_sleep_over_replies() {
    let (mut scene, mut pool) = scene(Sabotage::default());
    scene.arrive(A, 1);
    scene.poll(A);
    assert!(scene.lanes[A].is_quiet(), "the pool has it");
    assert!(pool.step(0));
    assert!(!scene.lanes[A].is_quiet());
    scene.poll(A);
    assert!(scene.lanes[A].is_quiet());
    assert_eq!(scene.finish(), []);
}

#[test]
fn a_pool_that_does_not_reply_is_named() {
    let (mut scene, _pool) = scene(Sabotage::default());
    scene.arrive(A, 2);
    scene.poll(A);
    assert_eq!(scene.account(), [Violation::Unanswered { lane: A, packets: 2 }]);
}

#[test]
fn packets_of_a_pool_that_has_ended_come_back() {
    let (mut scene, pool) = scene(Sabotage::default());
    scene.arrive(A, 2);
    scene.poll(A);
    drop(pool);
    assert_eq!(scene.finish(), []);
}
