//! A pool with threads, and one without, from a lane's point of view.
//!
//! Timed: threads, sleep, clock.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use rheostat_base::ShardId;
use rheostat_base::choice::Outstanding;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

use super::*;
use crate::lane::{HandoffPacket, PacketInfo};

/// One lane.
fn config(members: usize, depth: usize, queueing: PoolQueueing) -> PoolConfig {
    PoolConfig { queueing, ..PoolConfig::new(members, 1, depth) }
}

fn central() -> PoolQueueing {
    PoolQueueing::default()
}

/// A hash that leads to a member of `members`.
fn hash_of(member: u64, members: u64) -> u32 {
    ((member << 32) / members + 1) as u32
}

/// Waits for so many outcomes.
fn await_outcomes<R>(
    client: &mut PoolClient<u32, u32, R>,
    count: usize,
) -> Vec<(u32, Result<R, Lost>)> {
    let last = Instant::now() + Duration::from_secs(120);
    let mut outcomes = Vec::new();
    while outcomes.len() < count {
        assert!(Instant::now() < last, "outcomes do not come");
        client.collect();
        outcomes.extend(std::iter::from_fn(|| client.next_outcome()));
        client.ring();
        thread::yield_now();
    }
    outcomes
}

#[test]
fn members_sleep_until_they_are_given_something() {
    for queueing in [central(), PoolQueueing::PerMember, PoolQueueing::Stealing { burst: 8 }] {
        let config = config(3, 4, queueing);
        let (pool, mut clients) = Pool::start(&config, |_| |task: u32| task + 1).unwrap();
        let client = &mut clients[0];
        let mut next = 0;
        for burst in [1, 2, 12, 1] {
            // Long enough that all of them sleep.
            thread::sleep(Duration::from_millis(20));
            for number in next..next + burst {
                let hash = hash_of(u64::from(number % 3), 3);
                client.submit(number, hash, number * 10).unwrap();
            }
            client.ring();
            let mut outcomes = await_outcomes(client, burst as usize);
            outcomes.sort_by_key(|(number, _)| *number);
            let expected: Vec<_> = (next..next + burst).map(|n| (n, Ok(n * 10 + 1))).collect();
            assert_eq!(outcomes, expected);
            next += burst;
        }
        assert!(client.is_empty());
        let report = pool.stop().unwrap();
        assert_eq!(report, PoolReport { tasks: 16, ..PoolReport::default() }, "{queueing:?}");
    }
}

#[test]
fn a_task_that_panics_is_reported_and_ends_no_other() {
    let work = |_| |task: u32| assert!(task != 1, "one is too much");
    let (pool, mut clients) = Pool::start(&config(1, 4, central()), work).unwrap();
    let client = &mut clients[0];
    (0..3).for_each(|number| client.submit(number, 0, number).unwrap());
    client.ring();
    let outcomes = await_outcomes(client, 3);
    assert_eq!(outcomes, [(0, Ok(())), (1, Err(Lost::Panicked)), (2, Ok(()))]);
    assert_eq!(pool.stop().unwrap(), PoolReport { tasks: 3, panicked: 1, ..PoolReport::default() });
}

#[test]
fn what_members_are_given_before_a_pool_stops_is_done_and_what_comes_after_is_lost() {
    for queueing in [PoolQueueing::PerMember, PoolQueueing::Stealing { burst: 3 }] {
        let config = config(2, 8, queueing);
        let (pool, mut clients) = Pool::start(&config, |_| |task: u32| task).unwrap();
        let client = &mut clients[0];
        for number in 0..16 {
            client.submit(number, hash_of(u64::from(number % 2), 2), number).unwrap();
        }
        // There was no notification: the end notifies.
        assert_eq!(pool.stop().unwrap().tasks, 16);
        assert_eq!(client.submit(16, 0, 16), Err((16, 16)), "nobody is left");
        let mut done = await_outcomes(client, 16);
        done.sort_by_key(|(number, _)| *number);
        assert!(done.into_iter().eq((0..16).map(|n| (n, Ok(n)))));
        assert!(client.has_ended());

        let (mut pool, mut clients) = Stepped::new(&config, |_| |task: u32| task).unwrap();
        let client = &mut clients[0];
        client.submit(1, 0, 1).unwrap();
        (0..2).for_each(|member| pool.end(member));
        assert!(client.has_replies());
        assert_eq!(await_outcomes(client, 1), [(1, Err(Lost::Ended))]);
    }
}

#[test]
fn what_waits_in_a_central_queue_is_lost_with_the_last_member() {
    let (mut pool, mut clients) =
        Stepped::new(&config(2, 2, central()), |_| |task: u32| task).unwrap();
    let client = &mut clients[0];
    (0..4).for_each(|number| client.submit(number, 0, number).unwrap());
    assert!(pool.step(0));
    drop(pool);
    let mut outcomes = await_outcomes(client, 4);
    outcomes.sort_by_key(|(number, _)| *number);
    let lost = Err(Lost::Ended);
    assert_eq!(outcomes, [(0, Ok(0)), (1, lost), (2, lost), (3, lost)]);
}

const EVERY_QUEUEING: [PoolQueueing; 4] = [
    PoolQueueing::Central(Outstanding::ONE),
    PoolQueueing::Central(Outstanding::TWO),
    PoolQueueing::PerMember,
    PoolQueueing::Stealing { burst: 8 },
];

fn panicked(member: usize, message: &str) -> MemberFailure {
    MemberFailure::Panicked { member, message: message.to_owned() }
}

#[test]
fn a_member_whose_work_cannot_be_made_is_named_and_others_do_its_tasks() {
    for queueing in EVERY_QUEUEING {
        let work = |member| {
            assert!(member != 1, "no work for the second");
            |task: u32| task
        };
        let (pool, mut clients) = Pool::start(&config(2, 4, queueing), work).unwrap();
        let client = &mut clients[0];
        while !pool.members[1].is_finished() {
            thread::yield_now();
        }
        for number in 0..4 {
            client.submit(number, hash_of(1, 2), number).unwrap();
            assert_eq!(await_outcomes(client, 1), [(number, Ok(number))], "{queueing:?}");
        }
        let report = pool.stop_within(Duration::from_secs(120));
        assert_eq!(report.failures, [panicked(1, "no work for the second")]);
        assert_eq!((report.tasks, report.running), (4, vec![]));
    }
}

/// What a task panics with, whose end panics in turn, outside of the task.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the end of a panic");
    }
}

#[test]
fn a_task_is_lost_with_the_member_that_has_it_in_hand() {
    for queueing in EVERY_QUEUEING {
        let work = |_| |task: u32| if task == 0 { std::panic::panic_any(Bomb) } else { task };
        let (pool, mut clients) = Pool::start(&config(2, 4, queueing), work).unwrap();
        let client = &mut clients[0];
        client.submit(0, 0, 0).unwrap();
        client.ring();
        assert_eq!(await_outcomes(client, 1), [(0, Err(Lost::Ended))], "{queueing:?}");
        while pool.members.iter().all(|member| !member.is_finished()) {
            thread::yield_now();
        }
        (1..4).for_each(|number| client.submit(number, 0, number).unwrap());
        client.ring();
        let mut outcomes = await_outcomes(client, 3);
        outcomes.sort_by_key(|(number, _)| *number);
        assert_eq!(outcomes, [(1, Ok(1)), (2, Ok(2)), (3, Ok(3))], "{queueing:?}");
        // The other one, too: what is given now is lost or refused.
        client.submit(0, 0, 0).unwrap();
        client.ring();
        assert_eq!(await_outcomes(client, 1), [(0, Err(Lost::Ended))], "{queueing:?}");
        while pool.members.iter().any(|member| !member.is_finished()) {
            thread::yield_now();
        }
        let lost = match client.submit(5, 0, 5) {
            Ok(()) => await_outcomes(client, 1) == [(5, Err(Lost::Ended))],
            Err(refused) => refused == (5, 5),
        };
        assert!(lost && client.has_ended() && client.is_empty(), "{queueing:?}");
        let refused = pool.stop().unwrap_err();
        assert!(
            matches!(&refused, PoolError::Member(failure) if *failure == panicked(0, "the end of a panic")),
            "{refused}"
        );
    }
}

#[test]
fn tasks_in_the_queue_of_a_member_that_ends_are_done_by_those_that_steal() {
    let config = config(2, 4, PoolQueueing::Stealing { burst: 1 });
    let (mut pool, mut clients) = Stepped::new(&config, |_| |task: u32| task).unwrap();
    let client = &mut clients[0];
    (0..3).for_each(|number| client.submit(number, 0, number).unwrap());
    pool.end(0);
    assert_eq!(client.collect(), 0, "none is lost");
    while pool.step(0) {}
    let mut outcomes = await_outcomes(client, 3);
    outcomes.sort_by_key(|(number, _)| *number);
    assert_eq!(outcomes, [(0, Ok(0)), (1, Ok(1)), (2, Ok(2))]);
}

/// What tasks are done by, which panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("it breaks");
    }
}

#[test]
fn members_that_panic_at_their_end_are_named() {
    let work = |_| {
        let fragile = Fragile;
        move |task: u32| {
            let _ = &fragile;
            task
        }
    };
    let (pool, mut clients) = Pool::start(&config(2, 4, central()), work).unwrap();
    let client = &mut clients[0];
    client.submit(1, 0, 1).unwrap();
    client.ring();
    assert_eq!(await_outcomes(client, 1), [(1, Ok(1))]);
    let report = pool.stop_within(Duration::from_secs(120));
    assert_eq!(report.failures, [panicked(0, "it breaks"), panicked(1, "it breaks")]);
}

#[test]
fn members_that_cannot_be_pinned_are_named_and_the_others_end() {
    let base = config(3, 4, central());
    let members = vec![None, Some(CoreId(u16::MAX)), None];
    let (pool, mut clients) =
        Pool::start(&PoolConfig { members, ..base }, |_| |task: u32| task).unwrap();
    let client = &mut clients[0];
    while !pool.members[1].is_finished() {
        thread::yield_now();
    }
    (0..4).for_each(|number| client.submit(number, 0, number).unwrap());
    client.ring();
    assert!(await_outcomes(client, 4).iter().all(|(_, outcome)| outcome.is_ok()));
    let report = pool.stop_within(Duration::from_secs(120));
    assert!(matches!(report.failures[..], [MemberFailure::Pin { member: 1, .. }]), "{report:?}");
    assert_eq!(report.tasks, 4);
}

/// Members that do each task when the test says so, and then say which member did which.
struct Held {
    release: Vec<Sender<()>>,
    done: Receiver<(usize, u32)>,
}

fn held(config: &PoolConfig) -> (Pool, PoolClient<u32, u32, u32>, Held) {
    let (say, done) = channel();
    let (release, gates): (Vec<_>, Vec<_>) = config.members.iter().map(|_| channel::<()>()).unzip();
    let gates: Vec<_> = gates.into_iter().map(|gate| Mutex::new(Some(gate))).collect();
    let gates = Arc::new(gates);
    let (pool, mut clients) = Pool::start(config, move |member| {
        let (gate, say) = (gates[member].lock().unwrap().take().unwrap(), say.clone());
        move |task: u32| {
            // The test has gone when this fails.
            let _ = gate.recv();
            let _ = say.send((member, task));
            task
        }
    })
    .unwrap();
    (pool, clients.pop().unwrap(), Held { release, done })
}

#[test]
fn a_slow_task_holds_up_only_what_is_bound_to_its_member() {
    for (queueing, overtakes) in [
        (central(), true),
        (PoolQueueing::PerMember, false),
        (PoolQueueing::Stealing { burst: 8 }, true),
    ] {
        let (pool, mut client, held) = held(&config(2, 8, queueing));
        // The first member has a task that does not end, and five more are given to it, or to whom it may concern.
        for number in 0..6 {
            client.submit(number, 0, number).unwrap();
        }
        client.ring();
        (0..5).for_each(|_| held.release[1].send(()).unwrap());
        if overtakes {
            let outcomes = await_outcomes(&mut client, 5);
            assert!(outcomes.iter().all(|(number, outcome)| *outcome == Ok(*number)));
            let by: Vec<_> = held.done.try_iter().map(|(member, _)| member).collect();
            assert_eq!(by, [1; 5], "{queueing:?}: the other member did the rest");
        } else {
            thread::sleep(Duration::from_millis(30));
            assert_eq!((client.collect(), held.done.try_iter().count()), (0, 0));
        }
        drop(held);
        pool.stop().unwrap();
    }
}

#[test]
fn a_member_that_never_returns_is_left_and_named() {
    let (pool, mut client, held) = held(&config(2, 4, central()));
    (0..2).for_each(|number| client.submit(number, 0, number).unwrap());
    client.ring();
    held.release[1].send(()).unwrap();
    assert_eq!(await_outcomes(&mut client, 1).len(), 1);
    let report = pool.stop_within(Duration::from_millis(50));
    assert_eq!((report.tasks, report.running), (1, vec![0]));
    assert_eq!(client.len(), 1, "a request without an answer");
}

#[test]
fn a_full_pool_refuses_tasks_and_takes_them_again() {
    let (mut pool, mut clients) =
        Stepped::new(&config(2, 2, central()), |_| |task: u32| task).unwrap();
    let client = &mut clients[0];
    let given = (0..9).filter(|number| client.submit(*number, 0, *number).is_ok()).count();
    assert_eq!((given, client.len()), (4, 4));
    assert!(pool.step(1));
    assert_eq!(await_outcomes(client, 1), [(1, Ok(1))]);
    client.submit(4, 0, 4).unwrap();
    while pool.step(7) {
        client.collect();
    }
    assert_eq!(await_outcomes(client, 4).len(), 4);
    assert!(client.is_empty() && !client.has_replies());

    // With a queue per member, one may be full while another has room.
    let config = config(2, 2, PoolQueueing::PerMember);
    let (_pool, mut clients) = Stepped::new(&config, |_| |task: u32| task).unwrap();
    let client = &mut clients[0];
    let given = (0..4).filter(|number| client.submit(*number, 0, *number).is_ok()).count();
    assert_eq!(given, 2);
    client.submit(9, hash_of(1, 2), 9).unwrap();
}

#[test]
fn members_of_a_central_queue_hold_no_more_than_they_may() {
    for (limit, held) in [(Outstanding::ONE, 3), (Outstanding::TWO, 6)] {
        let config = config(3, 8, PoolQueueing::Central(limit));
        let (mut pool, mut clients) = Stepped::new(&config, |_| |task: u32| task).unwrap();
        let client = &mut clients[0];
        (0..20).for_each(|number| client.submit(number, 0, number).unwrap());
        // Without a look by the lane, members get nothing more.
        let done = std::iter::from_fn(|| pool.step(0).then_some(())).count();
        assert_eq!(done, held);
        assert_eq!(client.collect(), held);
    }
}

#[test]
fn members_of_one_lane_work_for_no_other() {
    let base = PoolConfig::new(4, 2, 4);
    let config = PoolConfig {
        sharing: PoolSharing::OneLane,
        queueing: PoolQueueing::Stealing { burst: 4 },
        ..base
    };
    let (mut pool, mut clients) = Stepped::new(&config, |member| move |_: u32| member).unwrap();
    for client in &mut clients {
        (0..4).for_each(|number| client.submit(number, 0, number).unwrap());
    }
    let mut choice = 0;
    while pool.step(choice) {
        choice += 1;
    }
    for (lane, client) in clients.iter_mut().enumerate() {
        let by = await_outcomes(client, 4).into_iter().map(|(_, member)| member.unwrap());
        let by: Vec<_> = by.collect();
        assert!(by.iter().all(|member| member / 2 == lane), "lane {lane}: {by:?}");
        assert!(
            by.contains(&(2 * lane)) && by.contains(&(2 * lane + 1)),
            "one of them stole: {by:?}"
        );
    }
    let uneven = PoolConfig { members: vec![None; 3], ..config };
    let refused = Stepped::new::<()>(&uneven, |_| |task: u32| task);
    assert!(matches!(refused, Err(PoolError::Uneven { members: 3, lanes: 2 })));
}

#[test]
fn an_empty_pool_is_refused() {
    let refused = Pool::start::<(), _, _, _, _>(&config(0, 1, central()), |_| |task: u32| task);
    assert!(matches!(refused, Err(PoolError::Empty)));
    let refused = Stepped::new::<()>(&config(1, 0, central()), |_| |task: u32| task);
    assert!(matches!(refused, Err(PoolError::Empty)));
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

/// The packets whose turn has come.
fn ready(client: &mut PacketClient<u32, u32>) -> Vec<u32> {
    client.collect();
    std::iter::from_fn(|| client.next_reply()).map(|reply| reply.placed.packet.stamp()).collect()
}

#[test]
fn replies_of_a_shard_wait_for_older_ones_and_no_others() {
    let (mut pool, mut clients) =
        Stepped::new(&config(3, 4, central()), |_| |task: u32| task).unwrap();
    let (mut client, mut cache) = (PacketClient::new(clients.pop().unwrap(), 4), cache());
    // One each for the three members, and one that needs no work.
    assert!(client.submit(packet(&mut cache, 0, 1), 1).is_none());
    assert!(client.submit(packet(&mut cache, 0, 2), 2).is_none());
    assert!(client.submit(packet(&mut cache, 1, 3), 3).is_none());
    assert!(client.complete(packet(&mut cache, 0, 4), 4).is_none());
    assert!(client.complete(packet(&mut cache, 2, 5), 5).is_none());
    assert_eq!((client.packets(), client.outstanding(ShardId(0))), (5, 3));
    assert_eq!(ready(&mut client), [5], "nothing is before it");
    // The first packet is at the first member, the second at the second, the third at the third.
    let mut seen = Vec::new();
    for choice in [1, 1, 0] {
        assert!(pool.step(choice));
        seen.push(ready(&mut client));
    }
    assert_eq!(seen, [vec![], vec![3], vec![1, 2, 4]]);
    assert!(client.is_empty());
}

#[test]
fn a_packet_that_a_full_pool_refuses_leaves_nothing_behind() {
    let config = config(2, 1, PoolQueueing::PerMember);
    let (mut pool, mut clients) = Stepped::new(&config, |_| |task: u32| task).unwrap();
    let (mut client, mut cache) = (PacketClient::new(clients.pop().unwrap(), 4), cache());
    assert!(client.submit(packet(&mut cache, 0, 1), 1).is_none());
    let refused = client.submit(packet(&mut cache, 0, 2), 2);
    assert_eq!(refused.map(|placed| placed.packet.stamp()), Some(2));
    assert_eq!(client.outstanding(ShardId(0)), 1);
    assert!(pool.step(0));
    assert_eq!(ready(&mut client), [1]);
    assert!(client.submit(packet(&mut cache, 0, 3), 3).is_none());
    assert!(pool.step(0));
    assert_eq!(ready(&mut client), [3]);
}
