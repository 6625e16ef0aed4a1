//! The pumped NIC in an open loop, held against the stepped one: whichever lane polls, and however late, the same
//! packets arrive, wait and are dropped.
//!
//! Timed: threads, clock.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Frames, Numbered, config, is_reply, number, numbered, poll, pool, udp};
use proptest::prelude::*;
use rheostat_base::{ClockSource, QueueId, Time, VirtualClock};
use rheostat_io::{
    Device, DeviceCounters, DeviceMonitor, Drawing, DrawnArrivals, Driver, NullSink, OpenError,
    Pacing, Peer, QueuePair, Rest, SimConfig, SimNic, Source, Stepper,
};
use rheostat_packet::{Burst, Mempool, PoolCache};

const LANES: u16 = 3;
const DESCRIPTORS: u32 = 8;
const START: Pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };

/// What happens at a moment.
#[derive(Clone, Debug)]
enum Event {
    /// A lane takes up to so many packets.
    Poll(u16, usize),
    /// A lane looks whether packets wait.
    Look(u16),
    /// The table leads every bucket to one of these lanes.
    Rewrite(Vec<u16>),
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let poll = (0..LANES, 1_usize..20).prop_map(|(lane, limit)| Event::Poll(lane, limit));
    let look = (0..LANES).prop_map(Event::Look);
    let rewrite = proptest::collection::vec(0..LANES, 1..5).prop_map(Event::Rewrite);
    let event = prop_oneof![8 => poll, 2 => look, 1 => rewrite];
    // Most are close together, so that a lane keeps up; after some, all are away.
    let gap = prop_oneof![6 => 0_u64..3_000, 2 => 3_000_u64..20_000, 1 => 20_000_u64..200_000];
    proptest::collection::vec((gap, event), 1..80)
}

/// Frames with random gaps, many of them at once, of 64 flows.
fn arrivals() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![2 => Just(0_u64), 6 => 0_u64..2_000, 1 => 0_u64..50_000];
    proptest::collection::vec(gap, 0..600)
}

fn source(gaps: &[u64]) -> Box<dyn Source> {
    let mut time = 0;
    let frames: Vec<_> = gaps
        .iter()
        .zip(0_u32..)
        .map(|(gap, number)| {
            time += gap;
            (Time::from_nanos(time), udp((number.wrapping_mul(0x9e37_79b9) >> 26) as u16, number))
        })
        .collect();
    Box::new(Frames(frames.into_iter()))
}

/// What a lane got: stamp, time stamp in nanoseconds, number in the payload.
type Got = (u16, u32, u64, u32);

/// A run of one NIC: all that came of it, in order.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    got: Vec<Got>,
    backlogs: Vec<usize>,
    counters: DeviceCounters,
    is_exhausted: bool,
}

/// How packets arrive.
enum How {
    Stepped(Stepper),
    Pumped,
}

fn run(
    mut nic: SimNic,
    mut how: How,
    clock: &VirtualClock,
    pool: &Mempool,
    events: &[(u64, Event)],
) -> Outcome {
    let mut cache = PoolCache::new(pool.clone());
    let (table, monitor) = (nic.table().unwrap(), nic.monitor());
    let (mut queues, mut senders): (Vec<_>, Vec<_>) =
        nic.queues().into_iter().map(|QueuePair { rx, tx }| (rx, tx)).unzip();
    let mut outcome = Outcome::default();
    let mut now = Time::ZERO;
    // In the end all lanes are there, until nothing is left.
    let last = (0..40).flat_map(|_| (0..LANES).map(|lane| (1_000_000, Event::Poll(lane, 32))));
    for (gap, event) in events.iter().cloned().chain(last) {
        now += Duration::from_nanos(gap);
        clock.advance_to(now);
        if let How::Stepped(stepper) = &mut how {
            stepper.deliver_until(now, &mut cache);
        }
        match event {
            Event::Rewrite(lanes) => {
                let entry = |bucket: usize| QueueId(lanes[bucket % lanes.len()]);
                let entries: Vec<_> = (0..table.len()).map(entry).collect();
                let fence = table.rewrite(&entries).unwrap();
                if let How::Stepped(stepper) = &mut how {
                    stepper.deliver_until(now, &mut cache);
                }
                assert!(fence.passed());
                assert_eq!(table.read(), entries);
                outcome.backlogs.extend(queues.iter().map(|queue| queue.backlog()));
            }
            Event::Look(lane) => {
                let queue = &mut queues[usize::from(lane)];
                queue.rest(&mut cache, now);
                outcome.backlogs.push(queue.backlog());
            }
            Event::Poll(lane, limit) => {
                let queue = &mut queues[usize::from(lane)];
                // A thread that draws may have the source: wait until all that is due is known.
                queue.rest(&mut cache, now);
                outcome.backlogs.push(queue.backlog());
                let mut burst = Burst::new();
                for packet in poll(&mut **queue, limit, &mut cache, now) {
                    let time = packet.timestamp().as_nanos();
                    outcome.got.push((lane, packet.stamp(), time, number(packet.data())));
                    burst.push(packet);
                }
                senders[usize::from(lane)].send(&mut burst, &mut cache, now);
                outcome.backlogs.push(queue.backlog());
            }
        }
    }
    // While a thread that draws looks after the source, the answer is no.
    let begun = Instant::now();
    while !outcome.is_exhausted && begun.elapsed() < Duration::from_secs(20) {
        outcome.is_exhausted = monitor.is_exhausted();
        thread::yield_now();
    }
    outcome.counters = monitor.counters();
    outcome
}

fn open(config: SimConfig, source: Box<dyn Source>, pool: &Mempool) -> SimNic {
    SimNic::open(config, source, |_| Box::new(NullSink), pool).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The rule: lanes that are away, tables that change and lanes that nothing leads to any more make no difference
    /// between a NIC that is stepped at every moment and one that only its lanes' polls bring on.
    #[test]
    fn a_pumped_nic_does_what_a_stepped_one_does(gaps in arrivals(), events in events()) {
        let pool = pool(256);
        let outcome = |driver: fn(&VirtualClock) -> Option<Driver>| {
            let clock = VirtualClock::new();
            let config = SimConfig { pacing: START, ..config(LANES, DESCRIPTORS) };
            let Some(driver) = driver(&clock) else {
                let length = Duration::from_secs(1);
                let drawn = DrawnArrivals::draw(&config, source(&gaps), &pool, length).unwrap();
                let by: Arc<dyn ClockSource> = Arc::new(clock.clone());
                let nic = SimNic::open_drawn(&config, &drawn, by, |_| Box::new(NullSink)).unwrap();
                return run(nic, How::Pumped, &clock, &pool, &events);
            };
            let mut nic = open(SimConfig { driver, ..config }, source(&gaps), &pool);
            let how = nic.stepper().map_or(How::Pumped, How::Stepped);
            run(nic, how, &clock, &pool, &events)
        };
        let stepped = outcome(|_| Some(Driver::Stepped));
        prop_assert!(stepped.is_exhausted);
        let drawn_before = outcome(|_| None);
        prop_assert_eq!(&drawn_before, &stepped);
        let ahead = outcome(|clock| {
            Some(Driver::Pumped(Drawing::Ahead(Arc::new(clock.clone()))))
        });
        prop_assert_eq!(&ahead, &stepped);
    }

    /// So do lanes that send what they receive to a peer, and get its replies among the other arrivals: also where more
    /// replies are under way than there may be.
    #[test]
    fn a_pumped_nic_gets_the_replies_that_a_stepped_one_does(
        gaps in arrivals(),
        events in events(),
        delay in prop_oneof![Just(1_u64), 1_u64..2_000, 2_000_u64..60_000],
        most in prop_oneof![Just(1_usize), 2_usize..12, Just(1_000)],
    ) {
        let pool = pool(256);
        let outcome = |driver: fn(&VirtualClock) -> Driver| {
            let clock = VirtualClock::new();
            let driver = driver(&clock);
            let config = SimConfig { pacing: START, driver, ..config(LANES, DESCRIPTORS) };
            let delay = Duration::from_nanos(delay);
            let peer = Peer { most, ..Peer::new(delay, |_| Box::new(Numbered)) };
            let source = source(&gaps);
            let nic = SimNic::open_answering(config, source, |_| Box::new(NullSink), &pool, peer);
            let mut nic = nic.unwrap();
            let how = nic.stepper().map_or(How::Pumped, How::Stepped);
            run(nic, how, &clock, &pool, &events)
        };
        let stepped = outcome(|_| Driver::Stepped);
        prop_assert!(stepped.is_exhausted);
        let replies = stepped.got.iter().filter(|got| is_reply(got.3)).count();
        prop_assert!(gaps.is_empty() || replies > 0);
        let ahead = outcome(|clock| Driver::Pumped(Drawing::Ahead(Arc::new(clock.clone()))));
        prop_assert_eq!(&ahead, &stepped);
    }
}

/// The same where lanes draw: then a table that is rewritten holds from the latest poll on.
#[test]
fn lanes_that_draw_themselves_see_the_same() {
    let gaps: Vec<u64> = (0..3_000_u64).map(|i| i.wrapping_mul(7_919) % 1_500).collect();
    let events: Vec<_> = (0..400_u64)
        .map(|step| match step % 40 {
            // Directly behind a poll.
            39 => (0, Event::Rewrite(vec![(step / 40 % 3) as u16, (step / 80 % 3) as u16, 1])),
            // The last lane is away for long.
            _ if step % 7 == 0 => (9_000, Event::Poll(2, 5)),
            _ => (1_000 + step * 13 % 5_000, Event::Poll((step % 2) as u16, 9)),
        })
        .collect();
    let pool = pool(256);
    let outcome = |driver| {
        let config = SimConfig { pacing: START, driver, ..config(LANES, DESCRIPTORS) };
        let mut nic = open(config, source(&gaps), &pool);
        let how = nic.stepper().map_or(How::Pumped, How::Stepped);
        run(nic, how, &VirtualClock::new(), &pool, &events)
    };
    let stepped = outcome(Driver::Stepped);
    assert!(stepped.counters.queue_full.iter().all(|&drops| drops > 50), "{:?}", stepped.counters);
    assert!(stepped.got.len() > 1_000);
    assert_eq!(outcome(Driver::Pumped(Drawing::AsPolled)), stepped);
}

/// A microsecond between packets, 1,024 descriptors, a lane that is away: the ring fills, and what comes after that is
/// dropped, to the packet.
#[test]
fn a_lane_that_was_away_finds_a_full_ring_and_the_rest_dropped() {
    for (away_us, dropped) in [(1_000, 0), (2_000, 977), (5_000, 3_977), (20_000, 18_977)] {
        let pool = pool(2_048);
        let mut cache = PoolCache::new(pool.clone());
        let mut nic =
            open(SimConfig { pacing: START, ..config(1, 1_024) }, numbered(50_000), &pool);
        let (mut rx, monitor) = (nic.queues().remove(0).rx, nic.monitor());
        let back = Time::from_nanos(away_us * 1_000);
        // Within the microsecond in which nothing arrives.
        let mut numbers = Vec::new();
        for _ in 0..32 {
            for packet in poll(&mut *rx, 32, &mut cache, back) {
                numbers.push(number(packet.data()));
                cache.free(packet);
            }
            assert_eq!(monitor.counters().queue_full, [dropped]);
        }
        assert_eq!(numbers, (0..1_024.min(away_us as u32 + 1)).collect::<Vec<_>>());
        // The descriptors are free from then on.
        let next = poll(&mut *rx, 32, &mut cache, back + Duration::from_micros(1));
        assert_eq!(number(next[0].data()), away_us as u32 + 1);
        next.into_iter().for_each(|packet| cache.free(packet));
    }
}

/// A lane that finds nothing sleeps until its next packet is due, and no longer.
#[test]
fn a_lane_that_rests_is_told_when_its_next_packet_is_due() {
    let pool = pool(64);
    let mut cache = PoolCache::new(pool.clone());
    let frames: Vec<_> =
        (1..=3_u32).map(|i| (Time::from_millis(u64::from(i)), udp(0, i))).collect();
    let source = Box::new(Frames(frames.into_iter()));
    let mut nic = open(SimConfig { pacing: START, ..config(1, 16) }, source, &pool);
    let mut rx = nic.queues().remove(0).rx;
    let (mut now, mut found) = (Time::ZERO, Vec::new());
    for _ in 0..100 {
        match rx.rest(&mut cache, now) {
            Rest::Awake => {
                for packet in poll(&mut *rx, 32, &mut cache, now) {
                    found.push((number(packet.data()), now));
                    cache.free(packet);
                }
            }
            Rest::Until(due) => {
                assert!(due > now, "{due:?}");
                now = due;
            }
            Rest::Nap => now += Duration::from_micros(100),
            Rest::Sleep => unreachable!("packets are not announced"),
        }
        if found.len() == 3 {
            break;
        }
    }
    let due = (1..=3).map(|i| (i, Time::from_millis(u64::from(i))));
    assert_eq!(found, due.collect::<Vec<_>>());
}

/// The second queue is not polled, and its packets fill its ring; what is drawn for it must not be kept for ever.
#[test]
fn a_queue_that_is_not_polled_keeps_its_packets_and_no_memory() {
    let pool = pool(2_048);
    let mut cache = PoolCache::new(pool.clone());
    // Whole payloads are kept, so that little time is much memory.
    let frames = (0..400_000_u32).map(|i| {
        let mut frame = udp(i as u16 % 64, i);
        frame.resize(400, 0);
        (Time::from_nanos(u64::from(i) * 1_000), frame)
    });
    let mut nic =
        open(SimConfig { pacing: START, ..config(2, 16) }, Box::new(Frames(frames)), &pool);
    let (mut queues, monitor) = (nic.queues(), nic.monitor());
    let mut now = Time::ZERO;
    while now < Time::from_millis(420) {
        poll(&mut *queues[0].rx, 32, &mut cache, now).into_iter().for_each(|p| cache.free(p));
        now += Duration::from_micros(8);
    }
    let counters = monitor.counters();
    assert_eq!(counters.queue_full[0], 0);
    assert!(counters.queue_full[1] > 100_000, "others place what it was sent: {counters:?}");
    let kept = poll(&mut *queues[1].rx, 32, &mut cache, now);
    let numbers: Vec<_> = kept.iter().map(|packet| number(packet.data())).collect();
    assert_eq!(numbers.len(), 16);
    assert!(numbers.is_sorted() && numbers[15] < 64, "the first that came: {numbers:?}");
    kept.into_iter().for_each(|packet| cache.free(packet));
    assert!(monitor.is_exhausted());
    assert_eq!(monitor.counters().arrived, 400_000);
}

#[test]
fn what_is_due_after_the_source_was_stopped_never_arrives() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let clock = VirtualClock::new();
    let config = SimConfig { pacing: START, ..config(2, 64) };
    let second = Duration::from_secs(1);
    let drawn = DrawnArrivals::draw(&config, numbered(5_000), &pool, second).unwrap();
    let by: Arc<dyn ClockSource> = Arc::new(clock.clone());
    let mut nic = SimNic::open_drawn(&config, &drawn, by, |_| Box::new(NullSink)).unwrap();
    let (mut queues, monitor) = (nic.queues(), nic.monitor());
    let micros = |us: u64| Time::from_nanos(us * 1_000);
    let taken = poll(&mut *queues[0].rx, 4, &mut cache, micros(10));
    taken.into_iter().for_each(|packet| cache.free(packet));
    clock.advance_to(micros(30));
    monitor.stop();
    assert!(!monitor.is_exhausted());
    clock.advance_to(micros(900));
    for queue in &mut queues {
        let taken = poll(&mut *queue.rx, 32, &mut cache, micros(900));
        taken.into_iter().for_each(|packet| cache.free(packet));
    }
    assert!(monitor.is_exhausted());
    assert_eq!(monitor.counters().arrived, 31, "one each microsecond up to the 30th");
    assert_eq!(monitor.source().unwrap().work().unwrap().late, 0);
}

#[test]
fn a_window_that_is_too_short_is_said_to_be() {
    let pool = pool(256);
    let mut cache = PoolCache::new(pool.clone());
    let config = SimConfig { pacing: START, ..config(1, 64) };
    let window = Duration::from_micros(100);
    let drawn = DrawnArrivals::draw(&config, numbered(5_000), &pool, window).unwrap();
    assert_eq!(drawn.count(), 100);
    let by: Arc<dyn ClockSource> = Arc::new(VirtualClock::new());
    let mut nic = SimNic::open_drawn(&config, &drawn, by, |_| Box::new(NullSink)).unwrap();
    let (mut rx, monitor) = (nic.queues().remove(0).rx, nic.monitor());
    let late = |monitor: &dyn DeviceMonitor| monitor.source().unwrap().work().unwrap().late;
    for (now, expected) in [(99_999, 0), (100_000, 1)] {
        let now = Time::from_nanos(now);
        poll(&mut *rx, 32, &mut cache, now).into_iter().for_each(|packet| cache.free(packet));
        assert_eq!(late(&*monitor), expected);
    }
}

#[test]
fn more_than_a_window_of_memory_is_refused_with_what_fits() {
    let pool = pool(16);
    let config = SimConfig { pacing: START, ..config(1, 64) };
    let hour = Duration::from_secs(3_600);
    let error = DrawnArrivals::draw(&config, numbered(u32::MAX), &pool, hour).unwrap_err();
    let OpenError::Window { drawn, length, .. } = &error else { panic!("{error}") };
    assert_eq!(*length, hour);
    // 32 bytes and 46 of the frame, whose payload is none of the pattern.
    assert!((0.5..1.2).contains(&drawn.as_secs_f64()), "{error}");
    let lossless = SimConfig { pacing: Pacing::Lossless, ..config };
    let error = DrawnArrivals::draw(&lossless, numbered(5), &pool, hour).unwrap_err();
    assert!(matches!(error, OpenError::Lossless { .. }));
}
