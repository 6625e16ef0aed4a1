//! Lanes that claim packets of the same rings.
//!
//! Timed: threads, processes, devices.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rheostat_base::Time;
use rheostat_io::{InterfaceError, XdpConfig, XdpDevice};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::rig::{Rig, UNDER_WAY, await_condition, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::numbered::{number, numbered};

const NOW: Time = Time::from_nanos(7);

fn shared(interface: &str, lanes: u16, claimants: u16) -> XdpConfig {
    XdpConfig { claimants, ..config(interface, lanes) }
}

fn latest_claim(rig: &mut Rig, lane: usize) -> Option<(u64, u64)> {
    rig.queues[lane].rx.as_shared().unwrap().latest_claim()
}

/// Claims up to `limit` packets on a lane.
fn receive(rig: &mut Rig, lane: usize, limit: usize) -> Vec<Mbuf> {
    let mut burst = Burst::new();
    (limit..BURST).for_each(|_| burst.push(rig.cache.alloc(0).unwrap()));
    rig.queues[lane].rx.recv(&mut burst, &mut rig.cache, NOW);
    let packets = burst.drain(BURST - limit..).collect();
    burst.drain(..).for_each(|filler| rig.cache.free(filler));
    packets
}

#[test]
fn packets_are_claimed_in_the_order_of_the_ring() {
    isolated(module_path!(), "packets_are_claimed_in_the_order_of_the_ring", || {
        let (near, far) = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut sink = Rig::open(shared("rxdp1", 2, 2), &far);
        assert!(sink.monitor().notes()[0].ends_with("2 lane(s), 2 to a queue"));
        let descriptors = sink.queues[0].rx.as_shared().unwrap().descriptors().unwrap();
        assert_eq!(descriptors, 512);
        let (mut next, mut stamp) = (0, None);
        for round in 0..100 {
            let frames: Vec<_> = (0..32).map(|flow| numbered(flow, round, 64)).collect();
            source.send_frames(0, &frames);
            await_condition("packets do not arrive", || sink.queues[1].rx.backlog() >= 32);
            for (turn, limit) in [5, 20, 7].into_iter().enumerate() {
                let lane = (round as usize + turn) % 2;
                let packets = receive(&mut sink, lane, limit);
                let from = round * 32 + next % 32;
                let claim = latest_claim(&mut sink, lane);
                let range = (u64::from(from), u64::from(from) + limit as u64);
                assert_eq!((packets.len(), claim), (limit, Some(range)));
                for packet in packets {
                    assert_eq!(number(&packet), Some((next % 32, round)));
                    assert!(stamp.is_none_or(|last| packet.stamp() > last));
                    (stamp, next) = (Some(packet.stamp()), next + 1);
                    sink.cache.free(packet);
                }
            }
            assert!(receive(&mut sink, 0, 32).is_empty());
            assert_eq!((sink.queues[0].rx.backlog(), latest_claim(&mut sink, 0)), (0, None));
        }
        let monitor = sink.monitor();
        let (sharing, counters) = (monitor.sharing(), monitor.counters());
        let counted: Vec<_> =
            sharing[0].claimants.iter().map(|one| (one.claims, one.packets)).collect();
        assert_eq!((sharing.len(), counted), (1, vec![(150, 1_600), (150, 1_600)]));
        assert_eq!(
            (counters.arrived, counters.queue_full, counters.fill_empty),
            (3_200, vec![0], 0)
        );
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 16_384));
    });
}

/// Claimants on threads of their own, on as many hardware queues, each of which gets packets, in pairs of lanes or all
/// together: each packet comes once, or is counted as dropped. A lane that has got packets waits for the others to get some,
/// however the threads are scheduled.
fn each_comes_once(count: u16, claimants: u16, hardware_queues: u32, descriptors: u32) {
    const ROUNDS: u32 = 2_000;
    let (near, far) = (pool(8_192), pool(16_384));
    veth("rxdp0", "rxdp1", hardware_queues, 1_500);
    let mut source = Rig::open(config("rxdp0", hardware_queues as u16), &near);
    let sharing = XdpConfig { descriptors, ..shared("rxdp1", count, claimants) };
    let mut sink = Rig::open(sharing, &far);
    let (stop, arrived) = (AtomicBool::new(false), AtomicUsize::new(0));
    let begun = AtomicUsize::new(0);
    let monitor = sink.monitor();
    let received: Vec<Vec<(u32, u32)>> = std::thread::scope(|scope| {
        let pairs = std::mem::take(&mut sink.queues);
        let lanes: Vec<_> = pairs
            .into_iter()
            .map(|mut pair| {
                let mut cache = PoolCache::new(far.clone());
                let (stop, arrived, monitor, begun) = (&stop, &arrived, &monitor, &begun);
                scope.spawn(move || {
                    let mut received: Vec<(u32, u32)> = Vec::new();
                    loop {
                        let ended = stop.load(Ordering::Acquire) && monitor.is_exhausted();
                        let mut burst = Burst::new();
                        if pair.rx.recv(&mut burst, &mut cache, NOW) == 0 {
                            if ended {
                                return received;
                            }
                            std::thread::yield_now();
                        }
                        let is_first = received.is_empty() && !burst.is_empty();
                        for packet in burst {
                            received.extend(number(&packet));
                            arrived.fetch_add(1, Ordering::Relaxed);
                            cache.free(packet);
                        }
                        if is_first {
                            begun.fetch_add(1, Ordering::Relaxed);
                            await_condition("a lane gets nothing", || {
                                begun.load(Ordering::Relaxed) == usize::from(count)
                            });
                        }
                    }
                })
            })
            .collect();
        let come = || {
            let counters = monitor.counters();
            let lost = counters.without_room();
            arrived.load(Ordering::Relaxed) + lost as usize
        };
        for round in 0..ROUNDS {
            let frames: Vec<_> = (0..32).map(|flow| numbered(flow, round, 64)).collect();
            source.send_frames(round as usize % hardware_queues as usize, &frames);
            let sent = (round as usize + 1) * 32;
            await_condition("packets do not arrive", || come() + UNDER_WAY >= sent);
        }
        await_condition("packets do not arrive", || come() >= ROUNDS as usize * 32);
        monitor.stop();
        stop.store(true, Ordering::Release);
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let (counters, sharing) = (monitor.counters(), monitor.sharing());
    let lost = counters.without_room();
    let total: usize = received.iter().map(Vec::len).sum();
    let distinct: HashSet<_> = received.iter().flatten().collect();
    assert_eq!((total as u64 + lost, total), (u64::from(ROUNDS) * 32, distinct.len()));
    assert!(received.iter().all(|lane| !lane.is_empty()), "{sharing:?}");
    assert_eq!(sharing.len(), usize::from(count / claimants));
    assert_eq!(sharing.iter().map(|queue| queue.total().packets).sum::<u64>(), total as u64);
    source.close();
    sink.close();
    assert_eq!((near.available(), far.available()), (8_192, 16_384));
}

#[test]
fn two_claimants() {
    isolated(module_path!(), "two_claimants", || each_comes_once(2, 2, 1, 512));
}

#[test]
fn four_claimants_of_the_smallest_ring() {
    const NAME: &str = "four_claimants_of_the_smallest_ring";
    isolated(module_path!(), NAME, || each_comes_once(4, 4, 1, 64));
}

#[test]
fn two_claimants_of_each_of_two_queues_on_two_hardware_queues() {
    const NAME: &str = "two_claimants_of_each_of_two_queues_on_two_hardware_queues";
    isolated(module_path!(), NAME, || each_comes_once(4, 2, 2, 512));
}

#[test]
fn packets_of_several_buffers_are_claimed_whole() {
    isolated(module_path!(), "packets_of_several_buffers_are_claimed_whole", || {
        let (near, far) = (pool(8_192), pool(16_384));
        veth("rxdp0", "rxdp1", 1, 9_000);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut sink = Rig::open(shared("rxdp1", 2, 2), &far);
        let mut descriptors = 0;
        for round in 0..200 {
            let len = |flow: u32| 64 + (flow as usize * 1_103 + round as usize * 37) % 8_800;
            let frames: Vec<_> = (0..4).map(|flow| numbered(flow, round, len(flow))).collect();
            source.send_frames(0, &frames);
            await_condition("packets do not arrive", || sink.queues[0].rx.backlog() > 0);
            for flow in 0..4 {
                let lane = (flow + round) as usize % 2;
                let mut packets = Vec::new();
                await_condition("packets do not arrive", || {
                    packets = receive(&mut sink, lane, 1);
                    !packets.is_empty()
                });
                let packet = packets.pop().unwrap();
                assert_eq!(packet.to_vec(), frames[flow as usize]);
                let claim = latest_claim(&mut sink, lane).unwrap();
                assert_eq!(claim, (descriptors, descriptors + packet.segments().count() as u64));
                descriptors = claim.1;
                sink.cache.free(packet);
            }
        }
        assert!(descriptors > 1_600, "{descriptors} buffers for 800 packets");
        assert_eq!(sink.monitor().sharing()[0].total().packets, 800);
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 16_384));
    });
}

#[test]
fn an_interface_that_vanishes_ends_all_claimants() {
    isolated(module_path!(), "an_interface_that_vanishes_ends_all_claimants", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(shared("rxdp1", 2, 2), &pool);
        sink.expect_from(&mut source);
        // A claimant has some of what has come when the interface goes; the other gets the rest.
        let frames: Vec<_> = (0..32).map(|flow| numbered(flow, 0, 64)).collect();
        source.send_frames(0, &frames);
        await_condition("packets do not arrive", || sink.queues[0].rx.backlog() >= 32);
        let held = receive(&mut sink, 0, 10);
        shell("ip link del rxdp0");
        let monitor = sink.monitor();
        assert!(monitor.warnings()[0].contains("is gone"));
        monitor.interface().unwrap().let_go();
        assert!(!monitor.is_exhausted(), "what has come is still to be received");
        assert_eq!(receive(&mut sink, 1, 32).into_iter().map(|p| sink.cache.free(p)).count(), 22);
        assert!(monitor.is_exhausted());
        assert!(receive(&mut sink, 0, 32).is_empty());
        held.into_iter().for_each(|packet| sink.cache.free(packet));
        let taken = (0..2).map(|lane| sink.offer(lane, 32, 0)).sum::<usize>();
        assert_eq!(taken, 0);
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

#[test]
fn lanes_that_cannot_share_queues_say_why() {
    isolated(module_path!(), "lanes_that_cannot_share_queues_say_why", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 2, 1_500);
        let refusal = |config| XdpDevice::open(config, &pool).err().expect("it cannot be opened");
        for (lanes, claimants) in [(3, 2), (2, 0), (2, 4)] {
            let error = refusal(shared("rxdp1", lanes, claimants));
            assert!(matches!(error, InterfaceError::Claimants { .. }), "{error}");
        }
        let error = refusal(XdpConfig { ordered: true, ..shared("rxdp1", 2, 2) });
        assert!(error.to_string().contains("ethtool -L rxdp1 combined 1"), "{error}");
    });
}
