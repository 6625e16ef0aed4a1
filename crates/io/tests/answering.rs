//! A simulated NIC whose peer answers: every packet that is sent has one reply, when it is due, or a drop that is counted.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Numbered, config, is_reply, number, numbered, poll, pool};
use rheostat_base::{QueueId, Time, VirtualClock};
use rheostat_io::{
    Arrival, Device, Drawing, Driver, NullSink, OpenError, Pacing, Peer, QueuePair, Rest, Silence,
    SimConfig, SimNic, Source,
};
use rheostat_packet::{Burst, Mempool, PoolCache};

const START: Pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };
const DELAY: Duration = Duration::from_micros(40);

fn micros(us: u64) -> Time {
    Time::from_nanos(us * 1_000)
}

fn peer(most: usize) -> Peer {
    Peer { most, ..Peer::new(DELAY, |_| Box::new(Numbered)) }
}

fn open(config: SimConfig, source: Box<dyn Source>, pool: &Mempool, peer: Peer) -> SimNic {
    SimNic::open_answering(config, source, |_| Box::new(NullSink), pool, peer).unwrap()
}

fn pumped(queues: u16, descriptors: u32) -> SimConfig {
    SimConfig { pacing: START, ..config(queues, descriptors) }
}

/// Frames that a lane sends by hand.
fn send(queue: &mut QueuePair, numbers: std::ops::Range<u32>, cache: &mut PoolCache, now: Time) {
    let mut burst = Burst::new();
    for number in numbers {
        burst.push(cache.alloc_from(&crate::support::udp(number as u16 % 64, number)).unwrap());
    }
    queue.tx.send(&mut burst, cache, now);
    assert_eq!(burst.len(), 0);
}

/// What waits in a queue: numbers and time stamps.
fn received(queue: &mut QueuePair, cache: &mut PoolCache, now: Time) -> Vec<(u32, Time)> {
    let mut all = Vec::new();
    loop {
        let packets = poll(&mut *queue.rx, 32, cache, now);
        if packets.is_empty() {
            return all;
        }
        for packet in packets {
            all.push((number(packet.data()), packet.timestamp()));
            cache.free(packet);
        }
    }
}

/// Two lanes that send what they receive, one of which is away for long: each packet of the source is answered once,
/// and the reply received by the lane that its bucket leads to, or counted as dropped.
#[test]
fn every_packet_sent_is_answered_once_or_counted_as_dropped() {
    let pool = pool(1_024);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic = open(pumped(2, 64), numbered(5_000), &pool, peer(500));
    let (mut queues, monitor) = (nic.queues(), nic.monitor());
    let (mut sent, mut answered, mut received) = (0_u64, Vec::new(), 0_u64);
    let mut now = Time::ZERO;
    while !monitor.is_exhausted() {
        now += Duration::from_micros(7);
        assert!(now < Time::from_secs(1), "replies that never arrive");
        for (lane, queue) in queues.iter_mut().enumerate() {
            // In the end both are there.
            let is_away =
                lane == 1 && (now.as_nanos() / 300_000).is_multiple_of(2) && now < micros(5_500);
            if is_away {
                continue;
            }
            let mut burst = Burst::new();
            for packet in poll(&mut *queue.rx, 32, &mut cache, now) {
                received += 1;
                if is_reply(number(packet.data())) {
                    answered.push(number(packet.data()));
                    cache.free(packet);
                } else {
                    sent += 1;
                    burst.push(packet);
                }
            }
            queue.tx.send(&mut burst, &mut cache, now);
        }
    }
    let counters = monitor.counters();
    let dropped: u64 = counters.queue_full.iter().sum();
    assert_eq!(counters.sent, sent);
    assert_eq!(counters.arrived, 5_000 + sent, "each packet that was sent is answered once");
    assert_eq!(counters.arrived, received + dropped, "{counters:?}");
    assert!(dropped > 100 && answered.len() > 1_000, "{counters:?}, {} replies", answered.len());
    let count = answered.len();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), count, "none comes twice");
    let work = monitor.source().unwrap().work().unwrap();
    assert_eq!((work.replies, work.late_replies), (sent, 0));
}

#[test]
fn a_reply_is_due_the_delay_after_its_packet_was_sent() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic = open(pumped(1, 16), Box::new(Silence), &pool, peer(16));
    let (mut queue, monitor) = (nic.queues().remove(0), nic.monitor());
    send(&mut queue, 0..2, &mut cache, micros(5));
    assert_eq!(received(&mut queue, &mut cache, Time::from_nanos(44_999)), []);
    assert!(!monitor.is_exhausted(), "replies are under way");
    let due = micros(45);
    let numbers = [(1 << 31, due), (1 << 31 | 1, due)];
    assert_eq!(received(&mut queue, &mut cache, due), numbers);
    assert!(monitor.is_exhausted());
    // Received late, they were due at the same time.
    send(&mut queue, 2..3, &mut cache, micros(50));
    assert_eq!(received(&mut queue, &mut cache, micros(900)), [(1 << 31 | 2, micros(90))]);
}

/// A descriptor that is given back takes what is due next, be it a packet of the source or a reply; of two that are due at
/// once, the packet of the source.
#[test]
fn replies_and_packets_of_the_source_take_descriptors_in_the_order_in_which_they_are_due() {
    for driver in [Driver::Pumped(Drawing::AsPolled), Driver::Stepped] {
        let pool = pool(64);
        let mut cache = PoolCache::new(pool.clone());
        let config = SimConfig { driver, ..pumped(1, 4) };
        let peer = Peer::new(Duration::from_nanos(1_500), |_| Box::new(Numbered));
        let mut nic = open(config, numbered(6), &pool, peer);
        let mut stepper = nic.stepper();
        let (mut queue, monitor) = (nic.queues().remove(0), nic.monitor());
        // Due between the second packet and the third, and with the fourth.
        send(&mut queue, 100..101, &mut cache, Time::ZERO);
        send(&mut queue, 101..102, &mut cache, Time::from_nanos(1_500));
        let now = micros(3);
        stepper.iter_mut().for_each(|stepper| {
            stepper.deliver_until(now, &mut cache);
        });
        let reply = |number: u32| number | 1 << 31;
        let numbers: Vec<_> =
            received(&mut queue, &mut cache, now).iter().map(|packet| packet.0).collect();
        assert_eq!(numbers, [0, 1, reply(100), 2], "four descriptors");
        let counters = monitor.counters();
        assert_eq!((counters.arrived, &counters.queue_full[..]), (6, &[2][..]));
        // Freed at the third microsecond: the fifth packet, due at the fourth, has one.
        let now = micros(5);
        stepper.iter_mut().for_each(|stepper| {
            stepper.deliver_until(now, &mut cache);
        });
        let numbers: Vec<_> =
            received(&mut queue, &mut cache, now).iter().map(|packet| packet.0).collect();
        assert_eq!(numbers, [4, 5]);
    }
}

#[test]
fn replies_beyond_those_that_may_be_under_way_are_dropped_and_counted() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic = open(pumped(2, 16), Box::new(Silence), &pool, peer(3));
    let (mut queues, monitor) = (nic.queues(), nic.monitor());
    send(&mut queues[1], 0..5, &mut cache, micros(1));
    let counters = monitor.counters();
    assert_eq!((counters.arrived, counters.queue_full), (2, vec![0, 2]), "of the queue that sent");
    assert_eq!(counters.arrived_bytes, 2 * 46);
    // Those that were due have made room, though no lane has polled.
    send(&mut queues[0], 5..7, &mut cache, micros(60));
    assert_eq!(monitor.counters().queue_full, [0, 2]);
    let mut all = Vec::new();
    for queue in &mut queues {
        all.extend(received(queue, &mut cache, micros(200)).iter().map(|packet| packet.0 & 0xff));
    }
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 5, 6]);
    let counters = monitor.counters();
    assert_eq!((counters.arrived, counters.sent), (7, 7));
    assert_eq!(monitor.source().unwrap().work().unwrap().replies, 5);
}

/// A lane whose clock reading is older than another lane's poll: the reply arrives then, and is counted as late.
#[test]
fn a_reply_that_was_due_before_queues_looked_further_is_late_and_not_lost() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic = open(pumped(1, 16), Box::new(Silence), &pool, peer(16));
    let (mut queue, monitor) = (nic.queues().remove(0), nic.monitor());
    assert_eq!(received(&mut queue, &mut cache, micros(100)), []);
    send(&mut queue, 0..1, &mut cache, micros(10));
    let at = Time::from_nanos(100_001);
    assert_eq!(received(&mut queue, &mut cache, at), [(1 << 31, at)]);
    assert_eq!(monitor.source().unwrap().work().unwrap().late_replies, 1);
}

/// What is sent from now on is answered the delay later at the earliest: so long may a lane sleep.
#[test]
fn a_lane_that_rests_is_woken_for_replies_to_what_others_send() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let mut nic = open(pumped(2, 16), Box::new(Silence), &pool, peer(16));
    let mut queues = nic.queues();
    for queue in &mut queues {
        let rest = queue.rx.rest(&mut cache, micros(10));
        assert!(matches!(rest, Rest::Until(due) if due == micros(50)), "{rest:?}");
    }
    send(&mut queues[0], 0..1, &mut cache, micros(10));
    let rests = queues.iter_mut().map(|queue| queue.rx.rest(&mut cache, micros(20)));
    assert!(rests.into_iter().all(|rest| matches!(rest, Rest::Until(due) if due == micros(50))));
    let is_awake = |queue: &mut QueuePair| {
        matches!(queue.rx.rest(&mut PoolCache::new(pool.clone()), micros(50)), Rest::Awake)
    };
    assert_eq!(queues.iter_mut().filter_map(|queue| is_awake(queue).then_some(())).count(), 1);
}

#[test]
fn replies_that_are_due_after_the_device_was_stopped_never_arrive() {
    for driver in [Driver::Pumped(Drawing::AsPolled), Driver::Stepped] {
        let pool = pool(64);
        let mut cache = PoolCache::new(pool.clone());
        let config = SimConfig { driver, ..pumped(1, 16) };
        let mut nic = open(config, Box::new(Silence), &pool, peer(16));
        let mut stepper = nic.stepper();
        let (mut queue, monitor) = (nic.queues().remove(0), nic.monitor());
        let mut receive = |queue: &mut QueuePair, now| {
            stepper.iter_mut().for_each(|stepper| {
                stepper.deliver_until(now, &mut cache);
            });
            received(queue, &mut cache, now).len()
        };
        let mut other = PoolCache::new(pool.clone());
        send(&mut queue, 0..1, &mut other, micros(1));
        send(&mut queue, 1..2, &mut other, micros(2));
        assert_eq!(receive(&mut queue, micros(41)), 1);
        monitor.stop();
        assert!(monitor.is_exhausted());
        send(&mut queue, 2..3, &mut other, micros(41));
        assert_eq!(receive(&mut queue, micros(900)), 0);
        assert_eq!(monitor.counters().arrived, 1);
        assert!(monitor.is_exhausted());
    }
}

/// A table that is rewritten holds for replies that are due later, whenever their packets were sent.
#[test]
fn a_reply_comes_to_the_queue_of_its_bucket_when_it_is_due() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let clock = VirtualClock::new();
    let driver = Driver::Pumped(Drawing::Ahead(Arc::new(clock.clone())));
    let config = SimConfig { driver, ..pumped(2, 16) };
    let mut nic = open(config, Box::new(Silence), &pool, peer(16));
    let (mut queues, table) = (nic.queues(), nic.table().unwrap());
    let to = |queue| vec![QueueId(queue); table.len()];
    table.rewrite(&to(0)).unwrap();
    send(&mut queues[0], 0..2, &mut cache, micros(1));
    send(&mut queues[0], 2..4, &mut cache, micros(20));
    clock.advance_to(micros(50));
    table.rewrite(&to(1)).unwrap();
    clock.advance_to(micros(100));
    let numbers = |queue: &mut QueuePair, cache: &mut PoolCache| -> Vec<_> {
        received(queue, cache, micros(100)).iter().map(|packet| packet.0 & 0xff).collect()
    };
    assert_eq!(numbers(&mut queues[1], &mut cache), [2, 3]);
    assert_eq!(numbers(&mut queues[0], &mut cache), [0, 1]);
}

/// A source that may have more later.
struct Fed;

impl Source for Fed {
    fn next(&mut self, _frame: &mut Vec<u8>) -> Option<Arrival> {
        None
    }

    fn is_fed(&self) -> bool {
        true
    }
}

#[test]
fn devices_that_cannot_place_replies_refuse_a_peer() {
    let pool = pool(64);
    let clock: Arc<VirtualClock> = Arc::new(VirtualClock::new());
    let threaded = SimConfig { driver: Driver::Threaded(clock), ..pumped(1, 16) };
    let lossless = SimConfig { pacing: Pacing::Lossless, ..pumped(1, 16) };
    let replayed = SimConfig { pacing: Pacing::Replay { speed: 1.0 }, ..pumped(1, 16) };
    let shared = SimConfig { claimants: 2, ..pumped(2, 16) };
    let refused = |config: SimConfig, source: Box<dyn Source>| {
        let opened =
            SimNic::open_answering(config, source, |_| Box::new(NullSink), &pool, peer(16));
        matches!(opened.err(), Some(OpenError::Answering { device }) if device == "test")
    };
    for config in [threaded, lossless, replayed, shared] {
        assert!(refused(config, Box::new(Silence)));
    }
    assert!(refused(pumped(1, 16), Box::new(Fed)));
    assert!(!refused(pumped(1, 16), Box::new(Silence)));
}
