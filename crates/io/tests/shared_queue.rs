//! Receive queues of the simulated NIC that several lanes empty at once, as their lanes see them.
//!
//! Timed: threads, clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rheostat_base::{Clock, Time};
use rheostat_io::{Collector, Device, Drawing, Driver, OpenError, Pacing, Rest, SimConfig, SimNic};
use rheostat_packet::{Burst, Mempool, PoolCache};
use rustix::event::{PollFd, PollFlags, Timespec, poll as wait};

use crate::support::{config, flow, number, numbered, poll, pool};

fn shared(queues: u16, claimants: u16, descriptors: u32) -> SimConfig {
    SimConfig { claimants, pacing: Pacing::Lossless, ..config(queues, descriptors) }
}

fn open(config: SimConfig, packets: u32, pool: &Mempool) -> SimNic {
    let collector = Collector::new();
    SimNic::open(config, numbered(packets), |queue| collector.sink(queue), pool).unwrap()
}

/// What each lane has received: stamps and numbers of packets, and their flows.
type Seen = Vec<Vec<(u32, u32, u16)>>;

/// Empties the queues of `nic` on a thread for each lane, until `packets` are received in all.
fn receive_on_threads(nic: &mut SimNic, packets: usize, pool: &Mempool) -> Seen {
    let received = AtomicUsize::new(0);
    thread::scope(|scope| {
        let received = &received;
        let threads: Vec<_> = nic
            .queues()
            .into_iter()
            .map(|pair| {
                scope.spawn(move || {
                    let (mut rx, mut cache) = (pair.rx, PoolCache::new(pool.clone()));
                    let mut seen = Vec::new();
                    let mut burst = Burst::new();
                    while received.load(Ordering::Relaxed) < packets {
                        let count = rx.recv(&mut burst, &mut cache, Time::ZERO);
                        for packet in burst.drain(..) {
                            let data = packet.data();
                            seen.push((packet.stamp(), number(data), flow(data)));
                            cache.free(packet);
                        }
                        received.fetch_add(count, Ordering::Relaxed);
                        cache.flush();
                        thread::yield_now();
                    }
                    seen
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_each_once(seen: &Seen, packets: u32) {
    for lane in seen {
        assert!(lane.is_sorted(), "what one lane gets is in the order of arrival");
        assert!(lane.iter().all(|(stamp, number, _)| stamp == number), "stamped as they arrived");
    }
    let mut numbers: Vec<u32> = seen.iter().flatten().map(|(_, number, _)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..packets).collect::<Vec<_>>());
}

#[test]
fn lanes_of_one_queue_take_turns_and_are_counted() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let config = SimConfig { driver: Driver::Stepped, ..shared(2, 2, 64) };
    let mut nic = open(config, 60, &pool);
    nic.stepper().unwrap().deliver_until(Time::from_secs(1), &mut cache);
    let mut lanes: Vec<_> = nic.queues().into_iter().map(|pair| pair.rx).collect();
    assert_eq!(lanes.iter().map(|rx| rx.backlog()).collect::<Vec<_>>(), [60, 60]);
    let mut stamps = Vec::new();
    for lane in [0, 1, 1, 0, 0] {
        let packets = poll(&mut *lanes[lane], 20, &mut cache, Time::ZERO);
        stamps.push(packets.iter().map(|packet| packet.stamp()).collect::<Vec<_>>());
        packets.into_iter().for_each(|packet| cache.free(packet));
    }
    assert_eq!(stamps[..3].concat(), (0..60).collect::<Vec<_>>());
    assert!(stamps[3..].concat().is_empty());
    let sharing = nic.monitor().sharing();
    let counted: Vec<_> =
        sharing[0].claimants.iter().map(|one| (one.claims, one.packets, one.pauses)).collect();
    assert_eq!((sharing.len(), counted), (1, vec![(1, 20, 0), (2, 40, 0)]));
    assert_eq!((sharing[0].stalls, sharing[0].total().claims), (0, 3));
}

#[test]
fn two_queues_of_two_lanes_each_receive_everything_once() {
    let pool = pool(128);
    for driver in [Driver::Pumped(Drawing::AsPolled), Driver::Threaded(Arc::new(Clock::new()))] {
        let mut nic = open(SimConfig { driver, ..shared(4, 2, 8) }, 5_000, &pool);
        let seen = receive_on_threads(&mut nic, 5_000, &pool);
        assert_each_once(&seen, 5_000);
        let flows = |lanes: &[Vec<(u32, u32, u16)>]| {
            lanes.iter().flatten().map(|(.., flow)| *flow).collect::<std::collections::HashSet<_>>()
        };
        assert!(flows(&seen[..2]).is_disjoint(&flows(&seen[2..])), "a flow keeps to one queue");
        let monitor = nic.monitor();
        assert_eq!(monitor.counters().queue_full, [0, 0]);
        let sharing = monitor.sharing();
        let received: Vec<u64> = sharing.iter().map(|queue| queue.total().packets).collect();
        let lanes = |lanes: &[Vec<_>]| lanes.iter().map(Vec::len).sum::<usize>() as u64;
        assert_eq!(received, [lanes(&seen[..2]), lanes(&seen[2..])]);
        assert!(monitor.is_exhausted());
        drop(nic);
        assert_eq!(pool.available(), 128);
    }
}

#[test]
fn three_lanes_empty_a_queue_of_one_descriptor() {
    let pool = pool(128);
    let mut nic = open(shared(3, 3, 1), 2_000, &pool);
    assert_each_once(&receive_on_threads(&mut nic, 2_000, &pool), 2_000);
}

#[test]
fn packets_for_sleeping_lanes_of_one_queue_wake_as_many_as_have_work() {
    let pool = pool(512);
    let mut cache = PoolCache::new(pool.clone());
    let driver = Driver::Threaded(Arc::new(Clock::new()));
    let (go, gate) = std::sync::mpsc::channel();
    let frames = (0..64).map(move |n| {
        if n == 0 {
            gate.recv().unwrap();
        }
        (Time::ZERO, crate::support::udp(1, n))
    });
    let source = Box::new(crate::support::Frames(frames));
    let collector = Collector::new();
    let mut config = shared(2, 2, 64);
    config.driver = driver;
    let mut lanes: Vec<_> = Vec::new();
    let opened = SimNic::open(config, source, |queue| collector.sink(queue), &pool);
    let mut nic = opened.unwrap();
    lanes.extend(nic.queues().into_iter().map(|pair| pair.rx));
    for rx in &mut lanes {
        assert_eq!(rx.rest(&mut cache, Time::ZERO), Rest::Sleep);
    }
    go.send(()).unwrap();
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut received = 0;
    for rx in &mut lanes {
        let descriptor = rx.wait_fd().unwrap();
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        assert_eq!(wait(&mut polled, Some(&limit)).unwrap(), 1, "asleep beside 64 packets");
        while rx.backlog() < 64 - received {
            thread::yield_now();
        }
        let packets = poll(&mut **rx, 32, &mut cache, Time::ZERO);
        received += packets.len();
        packets.into_iter().for_each(|packet| cache.free(packet));
    }
    assert_eq!(received, 64);
    for rx in &mut lanes {
        assert_eq!(rx.rest(&mut cache, Time::ZERO), Rest::Sleep, "nothing is left");
    }
}

#[test]
fn lanes_that_do_not_come_in_groups_are_refused() {
    let pool = pool(64);
    for (queues, claimants) in [(3, 2), (2, 0), (2, 4)] {
        let collector = Collector::new();
        let opened = SimNic::open(
            shared(queues, claimants, 8),
            numbered(1),
            |queue| collector.sink(queue),
            &pool,
        );
        assert!(matches!(opened, Err(OpenError::Claimants { .. })), "{queues} by {claimants}");
    }
}
