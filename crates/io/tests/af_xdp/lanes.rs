//! Several lanes on one hardware queue, and on several.
//!
//! Timed: threads, processes, devices.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{QueueId, Time};
use rheostat_io::Device;
use rheostat_packet::Headers;
use rheostat_steer::{HashOptions, hash_packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::rig::{Rig, UNDER_WAY, await_condition, config, pool, steering, veth};
use rheostat_testkit::namespace::isolated;
use rheostat_testkit::numbered::{number, numbered};

const FLOWS: u32 = 256;
const NOW: Time = Time::from_nanos(7);

/// What has come of each flow, and how far.
#[derive(Default)]
struct Order {
    next: HashMap<u32, u32>,
    total: usize,
}

impl Order {
    /// Notes a packet, which must be the next of its flow.
    fn note(&mut self, (flow, sequence): (u32, u32)) {
        let next = self.next.entry(flow).or_default();
        assert_eq!(sequence, *next, "flow {flow}");
        *next += 1;
        self.total += 1;
    }
}

/// Sends bursts from one end and polls all lanes of the other after each: every packet arrives, in the
/// order of its flow, on the lane of its bucket, with the hash that this process would compute.
fn flows_arrive_in_order(lanes: u16) {
    const ROUNDS: usize = 2_000;
    let (near, far) = (pool(8_192), pool(16_384));
    veth("rxdp0", "rxdp1", 1, 1_500);
    let mut source = Rig::open(config("rxdp0", 1), &near);
    let mut sink = Rig::open(config("rxdp1", lanes), &far);
    let (steering, entries) = (steering(), sink.entries());
    let lanes = usize::from(lanes);
    let mut order = Order::default();
    let (mut by_lane, mut stamps) = (vec![0; lanes], vec![None; lanes]);
    let mut sent = HashMap::<u32, u32>::new();
    let mut rng = SmallRng::seed_from_u64(1);
    for round in 1..=ROUNDS {
        let frames = (0..32).map(|_| {
            let flow = rng.random_range(0..FLOWS);
            let sequence = sent.entry(flow).or_default();
            *sequence += 1;
            numbered(flow, *sequence - 1, rng.random_range(18..1_400))
        });
        source.send_frames(0, &frames.collect::<Vec<_>>());
        let mut poll_all = || {
            for lane in 0..lanes {
                sink.poll(lane, NOW, |cache, packet| {
                    let headers = Headers::parse(&packet).unwrap();
                    let tuple = steering.tuple(packet.data(), &headers, packet.link());
                    let options = HashOptions::default();
                    let expected = hash_packet(&steering, options, packet.device(), &tuple, None);
                    assert_eq!((packet.hash(), packet.hash_kind()), expected);
                    assert_eq!(entries[packet.hash() as usize % 128], QueueId(lane as u16));
                    assert_eq!(packet.timestamp(), NOW);
                    assert_eq!(packet.wire_len() as usize, packet.len());
                    assert!(stamps[lane].is_none_or(|last| packet.stamp() > last));
                    stamps[lane] = Some(packet.stamp());
                    order.note(number(&packet).unwrap());
                    by_lane[lane] += 1;
                    cache.free(packet);
                });
            }
            order.total + UNDER_WAY >= round * 32
        };
        if !poll_all() {
            await_condition("packets do not arrive", poll_all);
        }
    }
    for (_, packet) in sink.collect(ROUNDS * 32 - order.total) {
        order.note(number(&packet).unwrap());
        sink.cache.free(packet);
    }
    let (monitor, total) = (sink.monitor(), (ROUNDS * 32) as u64);
    let counters = monitor.counters();
    assert_eq!(order.total as u64, total, "{counters:?}");
    assert!(by_lane.iter().all(|&count| count > 0), "{by_lane:?}");
    assert_eq!((counters.arrived, counters.fill_empty), (total, 0));
    assert_eq!(source.monitor().counters().sent, total);
    source.close();
    sink.close();
    assert_eq!(monitor.counters().arrived, total, "remembered when closed");
    assert_eq!((near.available(), far.available()), (8_192, 16_384));
}

#[test]
fn packets_that_find_the_fill_ring_empty_are_counted_apart() {
    let name = "packets_that_find_the_fill_ring_empty_are_counted_apart";
    isolated(module_path!(), name, || {
        const BUFFERS: u32 = 256;
        veth("xfa0", "xfa1", 1, 1_500);
        let (near, far) = (pool(BUFFERS), pool(4_096));
        let mut sink = Rig::open(config("xfa0", 1), &near);
        let mut source = Rig::open(config("xfa1", 1), &far);
        let mut held = Vec::new();
        for sequence in 0..12 {
            let frames: Vec<_> = (0..32).map(|flow| numbered(flow, sequence, 64)).collect();
            source.send_frames(0, &frames);
            let arrived = 32 * u64::from(sequence + 1);
            await_condition("packets do not arrive", || {
                sink.poll(0, NOW, |_, packet| held.push(packet));
                sink.monitor().counters().arrived == arrived
            });
        }
        // The lane has kept all that it got, so that it had no buffer for the kernel.
        let counters = sink.monitor().counters();
        assert_eq!((counters.no_buffer, counters.oversize, counters.malformed), (0, 0, 0));
        assert_eq!(counters.fill_empty, counters.arrived - held.len() as u64, "{counters:?}");
        assert!(counters.fill_empty >= 12 * 32 - u64::from(BUFFERS), "{counters:?}");
        held.into_iter().for_each(|packet| sink.cache.free(packet));
        source.close();
        sink.close();
    });
}

#[test]
fn one_lane() {
    isolated(module_path!(), "one_lane", || flows_arrive_in_order(1));
}

#[test]
fn two_lanes_share_a_queue() {
    isolated(module_path!(), "two_lanes_share_a_queue", || flows_arrive_in_order(2));
}

#[test]
fn four_lanes_share_a_queue() {
    isolated(module_path!(), "four_lanes_share_a_queue", || flows_arrive_in_order(4));
}

/// How many lanes could sleep on a descriptor, and would be woken now.
fn readable(rig: &Rig) -> usize {
    let mut polled: Vec<_> = rig
        .queues
        .iter()
        .map(|pair| PollFd::from_borrowed_fd(pair.rx.wait_fd().unwrap(), PollFlags::IN))
        .collect();
    poll(&mut polled, Some(&Timespec::default())).unwrap()
}

#[test]
fn two_lanes_poll_four_queues() {
    isolated(module_path!(), "two_lanes_poll_four_queues", || {
        let (near, far) = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 4, 1_500);
        let mut source = Rig::open(config("rxdp0", 4), &near);
        let mut sink = Rig::open(config("rxdp1", 2), &far);
        let notes = sink.monitor().notes();
        assert!(notes[0].contains("4 hardware queue(s), 2 lane(s)"), "{notes:?}");
        // Each lane of the source sends on its own hardware queue, which is where packets arrive.
        for round in 0..200 {
            for lane in 0..4 {
                let flows = (0..8).map(|flow| flow * 4 + lane as u32);
                let frames: Vec<_> = flows.map(|flow| numbered(flow, round, 100)).collect();
                source.send_frames(lane, &frames);
            }
            await_condition("both lanes have packets to wake up for", || readable(&sink) == 2);
            let packets = sink.collect(32);
            assert_eq!(packets.len(), 32, "round {round}: {:?}", sink.monitor().counters());
            assert!(packets.iter().all(|(_, packet)| number(packet).unwrap().1 == round));
            assert_eq!(readable(&sink), 0, "there is nothing to wake up for");
            sink.free(packets);
        }
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 16_384));
    });
}

/// Lanes on threads of their own, which contend for the FILL and COMPLETION rings.
#[test]
fn lanes_run_on_threads_of_their_own() {
    isolated(module_path!(), "lanes_run_on_threads_of_their_own", || {
        let (near, far) = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut sink = Rig::open(config("rxdp1", 4), &far);
        let (stop, arrived) = (AtomicBool::new(false), AtomicUsize::new(0));
        let monitor = sink.monitor();
        let received: usize = std::thread::scope(|scope| {
            let lanes: Vec<_> = std::mem::take(&mut sink.queues)
                .into_iter()
                .map(|mut pair| {
                    let mut cache = rheostat_packet::PoolCache::new(far.clone());
                    let (stop, arrived, monitor) = (&stop, &arrived, &monitor);
                    scope.spawn(move || {
                        let (mut order, mut received) = (HashMap::<u32, u32>::new(), 0);
                        loop {
                            let ended = stop.load(Ordering::Acquire) && monitor.is_exhausted();
                            let mut burst = rheostat_packet::Burst::new();
                            if pair.rx.recv(&mut burst, &mut cache, NOW) == 0 {
                                if ended {
                                    return received;
                                }
                                std::thread::yield_now();
                            }
                            for packet in burst {
                                if let Some((flow, sequence)) = number(&packet) {
                                    let next = order.entry(flow).or_default();
                                    assert!(sequence >= *next, "flow {flow} is out of order");
                                    *next = sequence + 1;
                                    received += 1;
                                    arrived.fetch_add(1, Ordering::Relaxed);
                                }
                                cache.free(packet);
                            }
                        }
                    })
                })
                .collect();
            let arrive = |least: usize| {
                await_condition("packets do not arrive", || {
                    let counters = monitor.counters();
                    let lost = counters.without_room();
                    arrived.load(Ordering::Relaxed) + lost as usize >= least
                });
            };
            for round in 0..3_000 {
                let frames: Vec<_> = (0..32).map(|flow| numbered(flow, round, 64)).collect();
                source.send_frames(0, &frames);
                let sent = (round as usize + 1) * 32;
                if arrived.load(Ordering::Relaxed) + UNDER_WAY < sent {
                    arrive(sent - UNDER_WAY);
                }
            }
            // What comes after a stop is the kernel's.
            arrive(96_000);
            monitor.stop();
            stop.store(true, Ordering::Release);
            lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
        });
        let counters = monitor.counters();
        let lost = counters.without_room();
        assert_eq!(received as u64 + lost, 96_000, "{counters:?}");
        assert!(received > 10_000, "{counters:?}");
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 16_384));
    });
}

/// The table is rewritten at random before every burst, 1,000 times: every packet still comes, and once
/// a fence has passed, where the new table states.
#[test]
fn a_thousand_rewrites_lose_nothing() {
    isolated(module_path!(), "a_thousand_rewrites_lose_nothing", || {
        let (near, far) = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut sink = Rig::open(config("rxdp1", 4), &far);
        let table = sink.device.table().unwrap();
        let mut rng = SmallRng::seed_from_u64(2);
        let mut received = 0;
        for round in 0..1_000_u32 {
            let entries: Vec<_> = (0..128).map(|_| QueueId(rng.random_range(0..4))).collect();
            let fence = table.rewrite(&entries).unwrap();
            let exact = round % 50 == 0;
            if exact {
                await_condition("the fence does not pass", || fence.passed());
            }
            let frames: Vec<_> = (0..32).map(|flow| numbered(flow, round, 64)).collect();
            source.send_frames(0, &frames);
            let packets = sink.collect(32);
            received += packets.len();
            for (lane, packet) in &packets {
                let expected = entries[packet.hash() as usize % 128];
                assert!(!exact || expected == QueueId(*lane as u16), "round {round}");
            }
            sink.free(packets);
        }
        assert_eq!(received, 32_000, "{:?}", sink.monitor().counters());
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 16_384));
    });
}
