//! Timed: threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, Mempool, MempoolConfig, PoolCache};

use super::*;
use crate::device::Rest;

/// What has arrived in a hardware queue: numbers, which become stamps.
type Arrived = Arc<Mutex<VecDeque<u32>>>;

/// A hardware queue that tests put packets into.
struct Hardware {
    arrived: Arrived,
    keeps_off: Arc<AtomicUsize>,
    /// Whether a thread receives, so that a second one is noticed.
    is_busy: Arc<AtomicBool>,
}

impl RxQueue for Hardware {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _now: Time) -> usize {
        assert!(!self.is_busy.swap(true, Ordering::Relaxed), "one lane receives at a time");
        let mut arrived = self.arrived.lock().unwrap();
        let before = burst.len();
        while !burst.is_full()
            && let Some(number) = arrived.pop_front()
        {
            let mut packet = pool.alloc_from(&number.to_be_bytes()).expect("the pool has room");
            packet.set_stamp(number);
            burst.push(packet);
        }
        self.is_busy.store(false, Ordering::Relaxed);
        burst.len() - before
    }

    fn backlog(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }

    fn rest(&mut self, _: &mut PoolCache, _: Time) -> Rest {
        if self.backlog() > 0 { Rest::Awake } else { Rest::Sleep }
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }
}

impl SharedQueue for Hardware {
    fn leave_transmit(&mut self) {
        self.keeps_off.fetch_add(1, Ordering::Relaxed);
    }
}

/// Queues of lanes, and what is behind them.
struct Rig {
    lanes: Vec<Box<dyn RxQueue>>,
    hardware: Vec<Arrived>,
    pool: Mempool,
}

impl Rig {
    fn new(lanes: usize, sharing: Sharing) -> Rig {
        let pool = MempoolConfig { buffers: 4_096, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).expect("memory");
        let hardware: Vec<Arrived> = (0..lanes).map(|_| Arrived::default()).collect();
        let keeps_off = Arc::new(AtomicUsize::new(0));
        let queue = |arrived: &Arrived| {
            let (arrived, keeps_off) = (arrived.clone(), keeps_off.clone());
            Box::new(Hardware { arrived, keeps_off, is_busy: Arc::default() }) as Box<dyn RxQueue>
        };
        let lanes = share_receive(hardware.iter().map(queue).collect(), sharing);
        assert_eq!(keeps_off.load(Ordering::Relaxed), hardware.len());
        Rig { lanes, hardware, pool }
    }

    fn arrive(&self, queue: usize, numbers: impl IntoIterator<Item = u32>) {
        self.hardware[queue].lock().unwrap().extend(numbers);
    }

    /// Receives without letting others.
    fn recv(&mut self, lane: usize) -> Vec<u32> {
        let (mut burst, mut pool) = (Burst::new(), PoolCache::new(self.pool.clone()));
        let count = self.lanes[lane].recv(&mut burst, &mut pool, Time::ZERO);
        assert_eq!(count, burst.len());
        burst
            .drain(..)
            .map(|packet| {
                let stamp = packet.stamp();
                pool.free(packet);
                stamp
            })
            .collect()
    }

    /// Receives, and lets others.
    fn take(&mut self, lane: usize) -> Vec<u32> {
        let taken = self.recv(lane);
        self.release(lane);
        taken
    }

    /// Lets other lanes receive; returns how many packets were left for them.
    fn release(&mut self, lane: usize) -> usize {
        self.lanes[lane].as_shared().expect("lanes share the queues").release()
    }

    fn rest(&mut self, lane: usize) -> Rest {
        let mut pool = PoolCache::new(self.pool.clone());
        self.lanes[lane].rest(&mut pool, Time::ZERO)
    }
}

#[test]
fn any_lane_takes_the_oldest_packet_of_the_central_queue() {
    let mut rig = Rig::new(3, Sharing::CENTRAL);
    rig.arrive(1, 0..3);
    assert_eq!((rig.take(0), rig.take(2), rig.take(1)), (vec![0], vec![1], vec![2]));
    assert_eq!((rig.take(0), rig.lanes[0].backlog()), (vec![], 0));
    rig.arrive(0, [7]);
    rig.arrive(2, [8]);
    assert_eq!(rig.lanes[1].backlog(), 2, "what is in any hardware queue");
    let mut both = [rig.take(1), rig.take(1)].concat();
    both.sort_unstable();
    assert_eq!(both, [7, 8]);
}

#[test]
fn hardware_queues_are_read_in_turn() {
    let mut rig = Rig::new(2, Sharing::Central { pop: BURST });
    rig.arrive(0, 0..100);
    rig.arrive(1, 1_000..1_100);
    let firsts: Vec<_> = (0..4).map(|_| rig.take(0)[0]).collect();
    assert_eq!(firsts, [0, 1_000, 32, 1_032]);
}

#[test]
fn a_lane_keeps_others_from_receiving_until_it_releases() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING] {
        let mut rig = Rig::new(2, sharing);
        rig.arrive(0, [0]);
        assert_eq!(rig.recv(0), [0]);
        rig.arrive(0, [1]);
        assert_eq!(
            (rig.recv(1), rig.lanes[1].backlog() > 0),
            (vec![], sharing == Sharing::CENTRAL)
        );
        rig.release(0);
        assert_eq!(rig.take(1), [1], "{sharing:?}");
    }
}

#[test]
fn an_idle_lane_steals_the_older_half_of_the_fullest_queue() {
    let mut rig = Rig::new(3, Sharing::Stealing { pop: 1, steal: BURST });
    rig.arrive(0, 0..3);
    rig.arrive(1, 100..110);
    assert_eq!((rig.take(0), rig.take(1)), (vec![0], vec![100]));
    // Of two and nine.
    assert_eq!(rig.take(2), [101, 102, 103, 104, 105]);
    assert_eq!(rig.take(1), [106], "its own lane goes on behind them");
    assert_eq!(rig.take(0), [1]);
    assert_eq!([rig.take(2), rig.take(2), rig.take(2)], [vec![107, 108], vec![2], vec![109]]);
    assert!(rig.take(2).is_empty());
}

#[test]
fn as_many_are_stolen_as_are_taken_unless_more_may_be() {
    for (burst, taken) in [(1, vec![1]), (2, vec![2, 3])] {
        let mut rig = Rig::new(2, Sharing::STEALING.in_bursts_of(burst));
        rig.arrive(0, 0..10);
        assert_eq!(rig.take(0).len(), burst);
        assert_eq!(rig.take(1), taken);
    }
    assert_eq!(Sharing::STEALING.in_bursts_of(1), Sharing::STEALING);
    assert_eq!(Sharing::CENTRAL.in_bursts_of(1), Sharing::CENTRAL);
}

#[test]
fn a_burst_is_stolen_at_most() {
    let mut rig = Rig::new(2, Sharing::Stealing { pop: 2, steal: BURST });
    rig.arrive(0, 0..200);
    assert_eq!(rig.take(0), [0, 1]);
    // What the thief finds in the queue in memory.
    assert_eq!(rig.take(1), (2..32).collect::<Vec<_>>());
    assert_eq!(rig.take(1), (32..64).collect::<Vec<_>>());
    assert_eq!(rig.take(0), [64, 65]);
}

#[test]
fn packets_that_come_behind_a_lane_at_work_are_found() {
    let mut rig = Rig::new(2, Sharing::STEALING);
    rig.arrive(0, [0]);
    assert_eq!(rig.take(0), [0]);
    rig.arrive(0, [1, 2]);
    assert_eq!(rig.take(1), [1], "half of what was not known of");
    assert_eq!(rig.take(0), [2]);
    assert_eq!((rig.take(0), rig.take(1)), (vec![], vec![]));
    // A lane that has found its queue empty looks by itself, and is told.
    rig.arrive(0, [3]);
    assert_eq!((rig.take(1), rig.take(0)), (vec![], vec![3]));
}

#[test]
fn a_lane_rests_when_nothing_waits_and_naps_while_others_work() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING] {
        let mut rig = Rig::new(2, sharing);
        assert_eq!(rig.rest(0), Rest::Sleep);
        rig.arrive(0, [0, 1]);
        assert_eq!(rig.rest(0), Rest::Awake);
        assert_eq!((rig.recv(0), rig.release(0)), (vec![0], 1));
        assert_eq!(rig.rest(1), Rest::Awake, "a packet waits for either, {sharing:?}");
        assert_eq!((rig.recv(0), rig.release(0)), (vec![1], 0));
        assert_eq!(rig.rest(1), Rest::Nap, "what comes to the queue of a lane at work");
        assert_eq!((rig.take(0), rig.rest(1)), (vec![], Rest::Sleep));
    }
}

#[test]
fn a_lane_that_panics_leaves_nobody_waiting() {
    for sharing in [Sharing::CENTRAL, Sharing::STEALING] {
        let mut rig = Rig::new(2, sharing);
        rig.arrive(0, 0..3);
        assert_eq!(rig.recv(0), [0]);
        let mut queue = rig.lanes.remove(0);
        let thread = std::thread::spawn(move || {
            // As the worker of a lane does whose thread panics.
            struct Lane<'a>(&'a mut dyn RxQueue);
            impl Drop for Lane<'_> {
                fn drop(&mut self) {
                    self.0.as_shared().expect("lanes share the queues").release();
                }
            }
            let _lane = Lane(&mut *queue);
            panic!("between receiving and releasing");
        });
        assert!(thread.join().is_err());
        assert_eq!((rig.take(0), rig.take(0)), (vec![], vec![]), "{sharing:?}");
    }
}

/// Threads receive, and number the packets of each hardware queue while they keep the lock: the numbers are in the order of
/// arrival, and no packet is lost or doubled.
#[test]
fn what_is_done_before_the_release_is_in_the_order_of_arrival() {
    const LANES: usize = 3;
    const PACKETS: u32 = 1_000;
    for sharing in [Sharing::CENTRAL, Sharing::STEALING, Sharing::Stealing { pop: 5, steal: 3 }] {
        let mut rig = Rig::new(LANES, sharing);
        (0..LANES).for_each(|queue| rig.arrive(queue, (0..PACKETS).map(|n| n * 3 + queue as u32)));
        let orders: Arc<[Mutex<Vec<u32>>]> = (0..LANES).map(|_| Mutex::default()).collect();
        let left = Arc::new(AtomicUsize::new(LANES * PACKETS as usize));
        std::thread::scope(|scope| {
            for mut queue in rig.lanes.drain(..) {
                let (orders, left, pool) = (orders.clone(), left.clone(), rig.pool.clone());
                scope.spawn(move || {
                    let (mut burst, mut pool) = (Burst::new(), PoolCache::new(pool));
                    while left.load(Ordering::Relaxed) > 0 {
                        let count = queue.recv(&mut burst, &mut pool, Time::ZERO);
                        let numbers: Vec<_> = burst.iter().map(|packet| packet.stamp()).collect();
                        for number in numbers {
                            orders[(number % 3) as usize].lock().unwrap().push(number / 3);
                        }
                        queue.as_shared().expect("lanes share the queues").release();
                        left.fetch_sub(count, Ordering::Relaxed);
                        burst.drain(..).for_each(|packet| pool.free(packet));
                        if count == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        for order in orders.iter() {
            assert_eq!(*order.lock().unwrap(), (0..PACKETS).collect::<Vec<_>>(), "{sharing:?}");
        }
    }
}
