//! A pool with threads, and one without, from a lane's point of view.
//!
//! Timed: threads, sleep, clock.

use std::time::{Duration, Instant};

use rheostat_base::ShardId;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

use super::*;
use crate::lane::{HandoffPacket, PacketInfo};

fn config(members: usize, depth: usize) -> PoolConfig {
    PoolConfig { members: vec![None; members], lanes: 1, shards: 4, depth }
}

/// A packet of a shard, with a number.
fn packet(cache: &mut PoolCache, shard: u16, number: u32) -> HandoffPacket {
    let mut packet = cache.alloc(64).unwrap();
    packet.set_stamp(number);
    let mut info = PacketInfo::default();
    info.shard = ShardId(shard);
    HandoffPacket { packet, info }
}

fn cache() -> PoolCache {
    PoolCache::new(Mempool::new(&MempoolConfig { buffers: 64, ..Default::default() }).unwrap())
}

/// Waits for so many replies: the shard, the packet's number, and what came of its task.
fn await_replies<R>(
    client: &mut PoolClient<u32, R>,
    count: usize,
) -> Vec<(u16, u32, Result<R, Lost>)> {
    let last = Instant::now() + Duration::from_secs(120);
    let mut replies = Vec::new();
    while replies.len() < count {
        assert!(Instant::now() < last, "replies do not come");
        client.collect();
        while let Some(Reply { placed, outcome }) = client.next_reply() {
            replies.push((placed.info.shard.0, placed.packet.stamp(), outcome));
        }
        thread::yield_now();
    }
    replies
}

#[test]
fn members_sleep_until_they_are_given_something() {
    let (pool, mut clients) = Pool::start(&config(3, 4), |task: u32| task + 1).unwrap();
    let (client, mut cache) = (&mut clients[0], cache());
    let mut next = 0;
    for burst in [1, 2, 12, 1] {
        // Long enough that all of them sleep.
        thread::sleep(Duration::from_millis(20));
        for number in next..next + burst {
            assert!(client.submit(packet(&mut cache, 1, number), number * 10).is_none());
        }
        client.ring();
        let replies = await_replies(client, burst as usize);
        let expected: Vec<_> = (next..next + burst).map(|n| (1, n, Ok(n * 10 + 1))).collect();
        assert_eq!(replies, expected);
        next += burst;
    }
    assert!(client.is_empty());
    assert_eq!(pool.stop().unwrap(), PoolReport { tasks: 16, panicked: 0 });
}

#[test]
fn a_task_that_panics_is_reported_and_ends_no_other() {
    let work = |task: u32| assert!(task != 1, "one is too much");
    let (pool, mut clients) = Pool::start(&config(1, 4), work).unwrap();
    let (client, mut cache) = (&mut clients[0], cache());
    for number in 0..3 {
        assert!(client.submit(packet(&mut cache, 0, number), number).is_none());
    }
    client.ring();
    let replies = await_replies(client, 3);
    assert_eq!(replies, [(0, 0, Ok(())), (0, 1, Err(Lost::Panicked)), (0, 2, Ok(()))]);
    assert_eq!(pool.stop().unwrap(), PoolReport { tasks: 3, panicked: 1 });
}

#[test]
fn what_is_given_before_a_pool_stops_is_done_and_what_comes_after_is_lost() {
    let (pool, mut clients) = Pool::start(&config(2, 8), |task: u32| task).unwrap();
    let (client, mut cache) = (&mut clients[0], cache());
    for number in 0..16 {
        assert!(client.submit(packet(&mut cache, 0, number), number).is_none());
    }
    // There was no notification: the end notifies.
    assert_eq!(pool.stop().unwrap().tasks, 16);
    // The client does not know yet that the pool has ended.
    let refused = client.submit(packet(&mut cache, 0, 16), 16);
    assert_eq!(refused.map(|placed| placed.packet.stamp()), Some(16), "16 is all it may have");
    let done: Vec<_> = (0..16).map(|n| (0, n, Ok(n))).collect();
    assert_eq!(await_replies(client, 16), done);
    assert!(client.submit(packet(&mut cache, 0, 17), 17).is_some(), "it knows");

    let (pool, mut clients) = Pool::start(&config(2, 8), |task: u32| task).unwrap();
    let client = &mut clients[0];
    drop(pool);
    assert!(client.submit(packet(&mut cache, 0, 1), 1).is_none());
    assert!(client.has_replies());
    assert_eq!(await_replies(client, 1), [(0, 1, Err(Lost::Ended))]);
}

#[test]
fn a_full_pool_refuses_tasks_and_takes_them_again() {
    let (mut pool, mut clients) = Stepped::new(&config(2, 2), |task: u32| task).unwrap();
    let (client, mut cache) = (&mut clients[0], cache());
    let given = (0..9).filter(|n| client.submit(packet(&mut cache, 0, *n), *n).is_none()).count();
    assert_eq!((given, client.len(), client.outstanding(ShardId(0))), (4, 4, 4));
    assert!(client.complete(packet(&mut cache, 0, 10), 10).is_some(), "no room to wait, either");
    // Members take turns, and the second was first.
    assert!(pool.step(1));
    assert_eq!(await_replies(client, 1), [(0, 0, Ok(0))]);
    assert!(client.submit(packet(&mut cache, 0, 4), 4).is_none());
    while pool.step(7) {}
    assert_eq!(await_replies(client, 4).len(), 4);
    assert!(client.is_empty() && !client.has_replies());
}

#[test]
fn replies_of_a_shard_wait_for_older_ones_and_no_others() {
    let (mut pool, mut clients) = Stepped::new(&config(3, 4), |task: u32| task).unwrap();
    let (client, mut cache) = (&mut clients[0], cache());
    // One each for the three members, and one that needs no work.
    assert!(client.submit(packet(&mut cache, 0, 1), 1).is_none());
    assert!(client.submit(packet(&mut cache, 0, 2), 2).is_none());
    assert!(client.submit(packet(&mut cache, 1, 3), 3).is_none());
    assert!(client.complete(packet(&mut cache, 0, 4), 4).is_none());
    assert!(client.complete(packet(&mut cache, 2, 5), 5).is_none());
    assert_eq!(await_replies(client, 1), [(2, 5, Ok(5))], "nothing is before it");
    // The first packet is at the second member, the second at the third, the third at the first.
    let mut seen = Vec::new();
    for choice in [2, 0, 0] {
        assert!(pool.step(choice));
        client.collect();
        let ready = std::iter::from_fn(|| client.next_reply());
        seen.push(ready.map(|reply| reply.placed.packet.stamp()).collect::<Vec<_>>());
    }
    assert_eq!(seen, [vec![], vec![3], vec![1, 2, 4]]);
}

#[test]
fn an_empty_pool_is_refused() {
    let empty = PoolConfig { members: Vec::new(), ..config(1, 1) };
    assert!(matches!(Pool::start(&empty, |task: u32| task), Err(PoolError::Empty)));
    assert!(matches!(Stepped::new(&config(1, 0), |task: u32| task), Err(PoolError::Empty)));
}
