//! The simulated NIC: what it drops, counts and orders, under each of its drivers.
//!
//! Timed: threads, clock.

use std::collections::{HashSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::support::{Frames, config, flow, number, numbered, poll, pool, udp};
use proptest::prelude::*;
use rheostat_base::{Clock, DeviceId, QueueId, Time};
use rheostat_io::Source;
use rheostat_io::{
    Device, DeviceCounters, Driver, NullSink, OpenError, Pacing, QueuePair, SimConfig, SimNic,
};
use rheostat_packet::{FlowKey, HashKind, Mempool, PoolCache};

fn open(config: SimConfig, source: Box<dyn Source>, pool: &Mempool) -> SimNic {
    SimNic::open(config, source, |_| Box::new(NullSink), pool).unwrap()
}

const START: Pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };

fn at_once(frames: Vec<Vec<u8>>) -> Box<dyn Source> {
    Box::new(Frames(frames.into_iter().map(|frame| (Time::ZERO, frame))))
}

proptest! {
    /// Against a bounded queue: the NIC drops exactly what does not fit when it arrives, counts it,
    /// delivers the rest in order, and its backlog is exact all along.
    #[test]
    fn drops_exactly_what_does_not_fit(
        steps in proptest::collection::vec((0_u64..12, 0_usize..12), 0..60),
    ) {
        let pool = pool(256);
        let mut cache = PoolCache::new(pool.clone());
        let config = SimConfig { driver: Driver::Stepped, pacing: START, ..config(1, 8) };
        let mut nic = open(config, numbered(u32::MAX), &pool);
        let (mut stepper, monitor) = (nic.stepper().unwrap(), nic.monitor());
        let QueuePair { mut rx, .. } = nic.queues().remove(0);
        let (mut waiting, mut arrived, mut dropped) = (VecDeque::new(), 0_u32, 0);
        let mut now = 0;
        for (elapsed, take) in steps {
            now += elapsed;
            // One packet per microsecond, the first at zero.
            stepper.deliver_until(Time::from_nanos(now * 1_000), &mut cache);
            while u64::from(arrived) <= now {
                if waiting.len() < 8 { waiting.push_back(arrived) } else { dropped += 1 }
                arrived += 1;
            }
            prop_assert_eq!(rx.backlog(), waiting.len());
            for packet in poll(&mut *rx, take, &mut cache, Time::ZERO) {
                let expected = waiting.pop_front();
                prop_assert_eq!(Some(packet.stamp()), expected);
                prop_assert_eq!(Some(number(packet.data())), expected);
                prop_assert_eq!(packet.timestamp().as_nanos(), u64::from(packet.stamp()) * 1_000);
                cache.free(packet);
            }
            prop_assert_eq!(rx.backlog(), waiting.len());
            let counters = monitor.counters();
            prop_assert_eq!(counters.arrived, u64::from(arrived));
            prop_assert_eq!(counters.arrived_bytes, u64::from(arrived) * 46);
            prop_assert_eq!(counters.queue_full, vec![dropped]);
        }
    }
}

#[test]
fn a_pool_without_buffers_drops_and_counts() {
    let pool = pool(4);
    let mut cache = PoolCache::new(pool.clone());
    let config = SimConfig { driver: Driver::Stepped, ..config(1, 64) };
    let mut nic = open(config, at_once(vec![udp(1, 0); 10]), &pool);
    nic.stepper().unwrap().deliver_until(Time::ZERO, &mut cache);
    let monitor = nic.monitor();
    let expected = DeviceCounters {
        arrived: 10,
        arrived_bytes: 460,
        no_buffer: 6,
        queue_full: vec![0],
        ..DeviceCounters::default()
    };
    assert_eq!(monitor.counters(), expected);
    assert!(!monitor.is_exhausted());
    drop((nic, monitor, cache));
    assert_eq!(pool.available(), 4, "packets left in the rings go back to the pool");
}

#[test]
fn a_frame_too_long_for_a_chain_is_dropped_even_without_loss() {
    let pool = pool(128);
    let mut cache = PoolCache::new(pool.clone());
    let config = SimConfig { pacing: Pacing::Lossless, ..config(1, 64) };
    let frames = vec![udp(1, 1), vec![0; 512 * 41], udp(1, 2)];
    let mut nic = open(config, at_once(frames), &pool);
    let mut rx = nic.queues().remove(0).rx;
    let packets = poll(&mut *rx, 32, &mut cache, Time::ZERO);
    let stamps: Vec<u32> = packets.iter().map(|packet| packet.stamp()).collect();
    assert_eq!(stamps, [0, 2]);
    let counters = nic.monitor().counters();
    assert_eq!((counters.arrived, counters.oversize), (3, 1));
}

/// What two lanes on two threads received, in the order they did.
fn receive_on_two_threads(nic: &mut SimNic, pool: &Mempool) -> Vec<Vec<(u32, u16)>> {
    let monitor = nic.monitor();
    let clock = Clock::new();
    let lane = |QueuePair { mut rx, .. }: QueuePair| {
        let mut cache = PoolCache::new(pool.clone());
        let mut seen = Vec::new();
        while !monitor.is_exhausted() {
            let packets = poll(&mut *rx, 32, &mut cache, rheostat_base::ClockSource::now(&clock));
            if packets.is_empty() {
                // Buffers must not lie about where the other lane needs them.
                cache.flush();
                thread::yield_now();
            }
            for packet in packets {
                seen.push((number(packet.data()), flow(packet.data())));
                cache.free(packet);
            }
        }
        seen
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            nic.queues().into_iter().map(|queue| scope.spawn(|| lane(queue))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_each_once_and_in_order(seen: &[Vec<(u32, u16)>], total: u32) {
    let mut flows: Vec<HashSet<u16>> = Vec::new();
    for lane in seen {
        assert!(lane.windows(2).all(|pair| pair[0].0 < pair[1].0), "order of arrival");
        flows.push(lane.iter().map(|(_, flow)| *flow).collect());
    }
    assert!(flows[0].is_disjoint(&flows[1]), "a flow keeps to one queue");
    assert!(!flows[0].is_empty() && !flows[1].is_empty());
    assert_eq!(seen.iter().map(Vec::len).sum::<usize>(), total as usize);
}

#[test]
fn two_pumping_lanes_receive_everything_once_through_tiny_rings() {
    let pool = pool(64);
    let mut nic =
        open(SimConfig { pacing: Pacing::Lossless, ..config(2, 2) }, numbered(5_000), &pool);
    assert_each_once_and_in_order(&receive_on_two_threads(&mut nic, &pool), 5_000);
    let counters = nic.monitor().counters();
    assert_eq!((counters.arrived, counters.queue_full), (5_000, vec![0, 0]));
    assert_eq!(counters.no_buffer, 0);
    drop(nic);
    assert_eq!(pool.available(), 64);
}

#[test]
fn two_pumping_lanes_in_an_open_loop_account_for_every_packet() {
    let pool = pool(256);
    let mut nic = open(config(2, 16), numbered(5_000), &pool);
    let seen = receive_on_two_threads(&mut nic, &pool);
    let counters = nic.monitor().counters();
    let dropped = counters.queue_full.iter().sum::<u64>() + counters.no_buffer;
    assert_eq!(counters.arrived, 5_000);
    assert_each_once_and_in_order(&seen, 5_000 - dropped as u32);
}

#[test]
fn a_thread_delivers_and_ends_with_the_device() {
    let pool = pool(512);
    let driver = Driver::Threaded(Arc::new(Clock::new()));
    let config = SimConfig { pacing: Pacing::Lossless, driver, ..config(2, 8) };
    let mut nic = open(config, numbered(5_000), &pool);
    assert_each_once_and_in_order(&receive_on_two_threads(&mut nic, &pool), 5_000);
    let table = nic.table().unwrap();
    let fence = table.rewrite(&vec![QueueId(0); table.len()]).unwrap();
    while !fence.passed() {
        thread::yield_now();
    }
    drop(nic);
    assert_eq!(pool.available(), 512);
}

/// Frames that are sent while the device runs.
struct Fed(std::sync::mpsc::Receiver<Vec<u8>>);

impl Source for Fed {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<rheostat_io::Arrival> {
        *frame = self.0.try_recv().ok()?;
        let (time, len) = (Time::ZERO, frame.len());
        let link = rheostat_packet::LinkType::Ethernet;
        Some(rheostat_io::Arrival { time, len, wire_len: len as u32, link })
    }

    fn is_fed(&self) -> bool {
        true
    }
}

#[test]
fn a_lane_that_blocks_on_a_threaded_device_is_woken_by_each_packet() {
    use rheostat_io::Rest;
    use rustix::event::{PollFd, PollFlags, Timespec, poll as wait};
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let driver = Driver::Threaded(Arc::new(Clock::new()));
    let (feed, fed) = std::sync::mpsc::channel();
    let mut nic = open(SimConfig { driver, ..config(1, 8) }, Box::new(Fed(fed)), &pool);
    let mut rx = nic.queues().remove(0).rx;
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    for number in 0..50 {
        assert_eq!(rx.rest(&mut cache, Time::ZERO), Rest::Sleep, "nothing has come");
        feed.send(udp(1, number)).unwrap();
        let descriptor = rx.wait_fd().unwrap();
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        assert_eq!(wait(&mut polled, Some(&limit)).unwrap(), 1, "asleep beside packet {number}");
        let packets = poll(&mut *rx, 32, &mut cache, Time::ZERO);
        assert_eq!(packets.len(), 1);
        packets.into_iter().for_each(|packet| cache.free(packet));
    }
    // A packet that comes before the last look keeps the lane awake.
    feed.send(udp(1, 50)).unwrap();
    while rx.backlog() == 0 {
        thread::yield_now();
    }
    assert_eq!(rx.rest(&mut cache, Time::ZERO), Rest::Awake);
}

#[test]
fn a_stopped_device_delivers_what_has_arrived_and_no_more() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic =
        open(SimConfig { pacing: Pacing::Lossless, ..config(1, 32) }, numbered(1_000), &pool);
    let (mut rx, monitor) = (nic.queues().remove(0).rx, nic.monitor());
    assert_eq!(poll(&mut *rx, 5, &mut cache, Time::ZERO).len(), 5);
    monitor.stop();
    assert!(!monitor.is_exhausted());
    assert_eq!(poll(&mut *rx, 32, &mut cache, Time::ZERO).len(), 27);
    assert!(monitor.is_exhausted());
    assert_eq!(poll(&mut *rx, 32, &mut cache, Time::ZERO).len(), 0);
    assert_eq!(monitor.counters().arrived, 32);
}

#[test]
fn lanes_polled_in_turn_always_see_the_same() {
    let run = || {
        let pool = pool(512);
        let mut cache = PoolCache::new(pool.clone());
        let mut nic = open(config(4, 16), numbered(3_000), &pool);
        let (mut queues, monitor) = (nic.queues(), nic.monitor());
        let (mut seen, mut now) = (Vec::new(), Time::ZERO);
        while !monitor.is_exhausted() {
            for (lane, queue) in queues.iter_mut().enumerate() {
                now += std::time::Duration::from_micros(7 + 5 * lane as u64);
                for packet in poll(&mut *queue.rx, 8, &mut cache, now) {
                    seen.push((lane, packet.stamp()));
                    cache.free(packet);
                }
            }
        }
        (seen, monitor.counters())
    };
    let (seen, counters) = run();
    assert!(counters.queue_full.iter().sum::<u64>() > 0, "the load is meant to be too high");
    assert_eq!((seen, counters), run());
}

#[test]
fn a_link_holds_packets_back() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    // 46 + 24 bytes at 560 Mb/s take a microsecond.
    let config = SimConfig {
        link_rate: Some(560_000_000),
        driver: Driver::Stepped,
        pacing: START,
        ..config(1, 16)
    };
    let mut nic = open(config, at_once(vec![udp(1, 0); 5]), &pool);
    let mut stepper = nic.stepper().unwrap();
    let micros = |us: u64| Time::from_nanos(us * 1_000);
    assert_eq!(stepper.next_arrival(Time::ZERO), Some(micros(1)));
    assert_eq!(stepper.deliver_until(Time::from_nanos(999), &mut cache), 0);
    assert_eq!(stepper.deliver_until(micros(3), &mut cache), 3);
    assert_eq!(stepper.next_arrival(micros(3)), Some(micros(4)));
    assert_eq!(stepper.deliver_until(micros(9), &mut cache), 2);
    assert_eq!(stepper.next_arrival(micros(9)), None);
    let mut rx = nic.queues().remove(0).rx;
    let packets = poll(&mut *rx, 32, &mut cache, Time::ZERO);
    let times: Vec<u64> = packets.iter().map(|p| p.timestamp().as_nanos()).collect();
    assert_eq!(times, [1_000, 2_000, 3_000, 4_000, 5_000]);
}

#[test]
fn a_rewritten_table_holds_from_the_fence_on() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let config = SimConfig { driver: Driver::Stepped, pacing: START, ..config(2, 64) };
    let mut nic = open(config, numbered(100), &pool);
    let (mut stepper, table) = (nic.stepper().unwrap(), nic.table().unwrap());
    let queues = nic.queues();
    stepper.deliver_until(Time::from_nanos(49_000), &mut cache);
    let before = queues[0].rx.backlog();
    assert!(before > 0 && queues[1].rx.backlog() == 50 - before);
    let fence = table.rewrite(&vec![QueueId(1); table.len()]).unwrap();
    assert!(!fence.passed());
    // Nothing new arrives, but the NIC has seen the table.
    assert_eq!(stepper.deliver_until(Time::from_nanos(49_000), &mut cache), 0);
    assert!(fence.passed());
    stepper.deliver_until(Time::from_nanos(60_000), &mut cache);
    assert_eq!(queues[0].rx.backlog(), before);
    assert_eq!(queues[1].rx.backlog(), 61 - before);
}

/// While two lanes pump and receive, everything is sent to the second. Once the fence has passed, the
/// first may still receive its backlog of that moment, and not one packet more.
#[test]
fn behind_the_fence_nothing_is_placed_by_the_old_table() {
    const RUNNING: u32 = 0;
    const FENCED: u32 = 1;
    const DRAINED: u32 = 2;
    const OVER: u32 = 3;
    let pool = pool(1_024);
    let mut nic =
        open(SimConfig { pacing: Pacing::Lossless, ..config(2, 64) }, numbered(u32::MAX), &pool);
    let table = nic.table().unwrap();
    let (monitor, phase) = (nic.monitor(), AtomicU32::new(RUNNING));
    let mut queues = nic.queues().into_iter();
    let (mut first, mut second) = (queues.next().unwrap().rx, queues.next().unwrap().rx);
    thread::scope(|scope| {
        let old = scope.spawn(|| {
            let mut cache = PoolCache::new(pool.clone());
            let mut allowed = None;
            while phase.load(Ordering::Acquire) != OVER {
                if allowed.is_none() && phase.load(Ordering::Acquire) == FENCED {
                    allowed = Some(first.backlog());
                }
                for packet in poll(&mut *first, 32, &mut cache, Time::ZERO) {
                    cache.free(packet);
                    if let Some(left) = &mut allowed {
                        *left = left.checked_sub(1).expect("a packet placed by the old table");
                    }
                }
                if allowed == Some(0) && phase.load(Ordering::Acquire) == FENCED {
                    phase.store(DRAINED, Ordering::Release);
                }
            }
        });
        scope.spawn(|| {
            let mut cache = PoolCache::new(pool.clone());
            while phase.load(Ordering::Acquire) != OVER {
                poll(&mut *second, 32, &mut cache, Time::ZERO)
                    .into_iter()
                    .for_each(|packet| cache.free(packet));
            }
        });
        let wait = |done: &dyn Fn() -> bool| {
            while !done() && !old.is_finished() {
                thread::yield_now();
            }
        };
        let arrived = |count: u64| {
            let until = monitor.counters().arrived + count;
            wait(&|| monitor.counters().arrived >= until);
        };
        arrived(1_000);
        let fence = table.rewrite(&vec![QueueId(1); table.len()]).unwrap();
        wait(&|| fence.passed());
        phase.store(FENCED, Ordering::Release);
        wait(&|| phase.load(Ordering::Acquire) == DRAINED);
        arrived(5_000);
        phase.store(OVER, Ordering::Release);
    });
}

#[test]
fn impossible_configurations_are_refused_by_name() {
    let refused = |config: SimConfig| {
        SimNic::open(config, numbered(1), |_| Box::new(NullSink), &pool(16)).err().unwrap()
    };
    let message = |config| refused(config).to_string();
    assert_eq!(message(config(0, 8)), "device `test` needs at least one queue");
    assert!(matches!(refused(config(1, 0)), OpenError::Descriptors { descriptors: 0, .. }));
    let deep = SimConfig { transmit_descriptors: Some(1 << 21), ..config(1, 8) };
    assert!(matches!(refused(deep), OpenError::Descriptors { .. }));
    let still = SimConfig { link_rate: Some(0), ..config(1, 8) };
    assert_eq!(message(still), "device `test`: the rate of its link must be a positive number");
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let config = SimConfig { pacing: Pacing::Replay { speed }, ..config(1, 8) };
        assert!(matches!(refused(config), OpenError::NotPositive { .. }));
    }
}

/// The packet with source and destination, addresses and ports alike, exchanged.
fn reversed(mut frame: Vec<u8>) -> Vec<u8> {
    let (source, destination) = frame[26..34].split_at_mut(4);
    source.swap_with_slice(destination);
    let (source, destination) = frame[34..38].split_at_mut(2);
    source.swap_with_slice(destination);
    frame
}

#[test]
fn hashes_what_the_steering_expects() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let whole = udp(7, 0);
    let mut fragment = whole.clone();
    fragment[20] = 0x20;
    // An ICMP error about the packet, from a router on the way.
    let mut error = whole[..14].to_vec();
    error.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, 1, 0, 0, 198, 51, 100, 1, 10, 0, 0, 1]);
    error.extend([3, 1, 0, 0, 0, 0, 0, 0]);
    error.extend(&whole[14..]);
    let arp = [&whole[..12], &[8, 6], &[0; 28]].concat();
    let frames = vec![whole.clone(), reversed(whole), fragment, error, arp, vec![1, 2, 3]];
    let config = config(1, 64);
    let steering = config.steering.clone();
    let mut nic = open(config, at_once(frames), &pool);
    let packets = poll(&mut *nic.queues().remove(0).rx, 32, &mut cache, Time::ZERO);
    let kinds: Vec<HashKind> = packets.iter().map(|packet| packet.hash_kind()).collect();
    let addresses = HashKind::Addresses;
    let expected =
        [HashKind::Ports, HashKind::Ports, addresses, addresses, HashKind::None, HashKind::None];
    assert_eq!(kinds, expected);
    let hash = |packet: usize| packets[packet].hash();
    assert_eq!(hash(0), hash(1), "both directions meet");
    assert_ne!(hash(0), hash(2));
    assert_eq!((hash(4), hash(5)), (0, 0));
    let key = |source, destination| {
        let (source, destination) = ((Ipv4Addr::from(source), 0), (Ipv4Addr::from(destination), 0));
        let key = FlowKey::v4(source, destination, 1, 0);
        steering.toeplitz().hash_key(&steering.orient(DeviceId(0), key).key, HashKind::Addresses)
    };
    assert_eq!(hash(3), key([198, 51, 100, 1], [10, 0, 0, 1]), "the error's own addresses");
}
