//! From one device to another, and into full rings.
//!
//! Timed: processes, devices.

use rheostat_base::Time;
use rheostat_io::Rest;
use rheostat_packet::{Burst, PoolCache};

use super::rig::{Rig, await_condition, config, pool, veth};
use rheostat_testkit::namespace::isolated;
use rheostat_testkit::numbered::numbered;

/// Packets cross between devices of one pool in the buffers they came in, and not one is copied. Those
/// of another pool are copied, and counted.
#[test]
fn packets_cross_without_a_copy() {
    isolated(module_path!(), "packets_cross_without_a_copy", || {
        let (near, middle, far) = (pool(4_096), pool(8_192), pool(4_096));
        veth("rxdp0", "rxdp1", 1, 1_500);
        veth("rxdp2", "rxdp3", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut left = Rig::open(config("rxdp1", 1), &middle);
        let mut right = Rig::open(config("rxdp2", 1), &middle);
        let mut sink = Rig::open(config("rxdp3", 1), &far);
        for round in 0..500 {
            let frames: Vec<_> = (0..32).map(|flow| numbered(flow, round, 200)).collect();
            source.send_frames(0, &frames);
            let crossing = left.collect(32);
            assert_eq!(crossing.len(), 32);
            let mut burst: Burst = crossing.into_iter().map(|(_, packet)| packet).collect();
            right.send_all(0, &mut burst);
            let arrived = sink.collect(32);
            assert_eq!(arrived.len(), 32);
            assert!(arrived.iter().zip(&frames).all(|((_, packet), frame)| packet.data() == frame));
            sink.free(arrived);
        }
        let counters = right.monitor().counters();
        assert_eq!((counters.sent, counters.copied), (16_000, 0));

        let mut strangers = PoolCache::new(near.clone());
        let packets = (0..10).map(|flow| strangers.alloc_from(&numbered(flow, 0, 64)).unwrap());
        let mut burst: Burst = packets.collect();
        right.send_all(0, &mut burst);
        let arrived = sink.collect(10);
        assert_eq!(arrived.len(), 10);
        sink.free(arrived);
        assert_eq!(right.monitor().counters().copied, 10);

        drop(strangers);
        source.close();
        left.close();
        right.close();
        sink.close();
        let home = [&near, &middle, &far].map(|pool| pool.available());
        assert_eq!(home, [4_096, 8_192, 4_096]);
    });
}

/// More packets than the rings hold, while no lane receives: each is accounted for, and when there are
/// buffers again, packets come again.
#[test]
fn full_rings_lose_what_is_counted() {
    isolated(module_path!(), "full_rings_lose_what_is_counted", || {
        let (near, far) = (pool(8_192), pool(1_024));
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &near);
        let mut sink = Rig::open(config("rxdp1", 1), &far);
        let mut taken = 0;
        for round in 0..200 {
            taken += source.offer(0, 32, round);
            // So that none is lost where it is not counted.
            await_condition("packets do not get as far as the rings", || sink.come() >= taken);
        }
        let arrived = sink.collect_present();
        let counters = sink.monitor().counters();
        let dropped = counters.without_room();
        assert!(dropped > 0, "{counters:?}");
        assert_eq!(arrived.len() as u64 + dropped, taken as u64, "{counters:?}");
        assert_eq!(counters.arrived, taken as u64);
        sink.free(arrived);
        sink.expect_from(&mut source);
        source.close();
        sink.close();
        assert_eq!((near.available(), far.available()), (8_192, 1_024));
    });
}

/// What cannot be a frame is refused, and nothing else.
#[test]
fn runts_are_left_and_the_others_sent() {
    isolated(module_path!(), "runts_are_left_and_the_others_sent", || {
        let pool = pool(4_096);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 1), &pool);
        let frames = [vec![0; 5], numbered(1, 0, 64), Vec::new(), numbered(2, 0, 64)];
        let mut burst: Burst =
            frames.iter().map(|frame| source.cache.alloc_from(frame).unwrap()).collect();
        let sent = source.queues[0].tx.send(&mut burst, &mut source.cache, Time::ZERO);
        assert_eq!((sent, burst.len()), (2, 2));
        burst.into_iter().for_each(|packet| source.cache.free(packet));
        let arrived = sink.collect(2);
        assert_eq!(arrived.len(), 2);
        sink.free(arrived);
        assert_eq!(source.monitor().warnings(), Vec::<String>::new());
        source.close();
        sink.close();
        assert_eq!(pool.available(), 4_096);
    });
}

/// A full burst promises another, and both leave by one call to the kernel. Where no other comes, the first is sent by whatever
/// the lane does next.
#[test]
fn a_full_burst_waits_for_the_next_and_for_nothing_else() {
    isolated(module_path!(), "a_full_burst_waits_for_the_next_and_for_nothing_else", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 1), &pool);
        // Older kernels send 32 packets a call, so that nothing is put off.
        let put_off = if sends_more_at_once() { 32 } else { 0 };
        let send = |source: &mut Rig, count: u32| {
            let frames = (0..count).map(|flow| numbered(flow, 0, 64));
            let mut burst: Burst =
                frames.map(|frame| source.cache.alloc_from(&frame).unwrap()).collect();
            let tx = &mut source.queues[0].tx;
            assert_eq!(tx.send(&mut burst, &mut source.cache, Time::ZERO), count as usize);
            // The lane asks at once, which is no reason to send.
            tx.unsent().waiting
        };
        let mut expect = |count: usize| {
            let arrived = sink.collect(count);
            assert_eq!(arrived.len(), count, "{:?}", sink.monitor().counters());
            sink.free(arrived);
            assert_eq!(sink.collect_present().len(), 0);
        };

        assert_eq!(send(&mut source, 32), put_off);
        expect(32 - put_off as usize);
        assert_eq!(source.queues[0].tx.unsent().waiting, 0, "asked at the end of the next poll");
        expect(put_off as usize);

        assert_eq!((send(&mut source, 32), send(&mut source, 32)), (put_off, 0));
        expect(64);

        // What is not full promises nothing, and takes along what waits.
        assert_eq!((send(&mut source, 31), send(&mut source, 32)), (0, put_off));
        assert_eq!(send(&mut source, 1), 0);
        expect(64);

        // A sender that never asks: the receiving end runs once in the poll in which the next burst may follow.
        assert_eq!(send(&mut source, 32), put_off);
        for _ in 0..2 {
            source.poll(0, Time::ZERO, |cache, packet| cache.free(packet));
        }
        assert_eq!(source.queues[0].tx.unsent().waiting, 0);
        expect(32);

        assert_eq!(send(&mut source, 32), put_off);
        let queue = &mut source.queues[0];
        assert_eq!(queue.rx.rest(&mut source.cache, Time::ZERO), Rest::Sleep);
        expect(32);

        assert_eq!(send(&mut source, 32), put_off);
        source.queues[0].tx.finish(&mut source.cache);
        expect(32);
        source.close();
        sink.close();
        assert_eq!(pool.available(), 8_192);
    });
}

/// Whether a call to the kernel sends as many packets as it is reported (Linux 6.17).
fn sends_more_at_once() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>());
    let version = (numbers.next().unwrap().unwrap(), numbers.next().unwrap().unwrap());
    version >= (6, 17)
}
