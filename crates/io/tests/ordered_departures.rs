//! Packets of lanes that share a queue leave in the order in which they were claimed, whatever lanes do meanwhile.

use rheostat_base::Time;
use rheostat_io::layer::ordered::in_order;
use rheostat_io::{Collector, Device, Driver, Pacing, QueuePair, SimConfig, SimNic};
use rheostat_packet::{Burst, Mempool, PoolCache};

use crate::support::{config, number, numbered, pool};

const LANES: u16 = 2;

/// A device of one queue that two lanes share, in which `packets` have arrived, and what leaves it.
struct Rig {
    lanes: Vec<QueuePair>,
    device: Box<dyn Device>,
    left: Collector,
    cache: PoolCache,
}

impl Rig {
    fn new(packets: u32, transmit_descriptors: Option<u32>, pool: &Mempool) -> Rig {
        let left = Collector::new();
        let config = SimConfig {
            claimants: LANES,
            driver: Driver::Stepped,
            pacing: Pacing::Lossless,
            transmit_descriptors,
            // A packet of 46 bytes leaves in 46 ns.
            link_rate: transmit_descriptors.map(|_| 8_000_000_000),
            ..config(LANES, 64)
        };
        let mut cache = PoolCache::new(pool.clone());
        let nic = SimNic::open(config, numbered(packets), |queue| left.sink(queue), pool);
        let mut nic = nic.unwrap();
        nic.stepper().unwrap().deliver_until(Time::from_secs(1), &mut cache);
        let mut device = in_order(vec![Box::new(nic)], LANES.into()).remove(0);
        Rig { lanes: device.queues(), device, left, cache }
    }

    /// A lane closes its turn, and receives up to `count` packets.
    fn receive(&mut self, lane: usize, count: usize, now: u64) -> Burst {
        let mut burst = Burst::new();
        let filler = burst.remaining_capacity() - count;
        (0..filler).for_each(|_| burst.push(self.cache.alloc(0).unwrap()));
        self.lanes[lane].rx.recv(&mut burst, &mut self.cache, Time::from_nanos(now));
        let packets = burst.drain(filler..).collect();
        burst.drain(..).for_each(|packet| self.cache.free(packet));
        packets
    }

    fn send(&mut self, lane: usize, mut packets: Burst) {
        self.lanes[lane].tx.send(&mut packets, &mut self.cache, Time::ZERO);
        assert!(packets.is_empty());
    }

    fn waiting(&mut self, lane: usize) -> u64 {
        self.lanes[lane].tx.unsent().waiting
    }

    fn left(&self) -> Vec<u32> {
        self.left.drain().iter().map(|packet| number(&packet.bytes)).collect()
    }
}

#[test]
fn what_a_lane_sends_waits_for_a_lane_that_claimed_before_it() {
    let pool = pool(256);
    let mut rig = Rig::new(40, None, &pool);
    let first = rig.receive(0, 4, 0);
    let second = rig.receive(1, 4, 0);
    rig.send(1, second);
    let third = rig.receive(1, 4, 10);
    rig.send(1, third);
    assert!(rig.receive(1, 0, 20).is_empty());
    assert_eq!((rig.left(), rig.waiting(0), rig.waiting(1)), (vec![], 0, 8));
    rig.send(0, first);
    assert!(rig.left().is_empty(), "the turn is open: more may come");
    assert!(rig.receive(0, 0, 1_000).is_empty());
    assert_eq!(rig.left(), (0..12).collect::<Vec<_>>());
    assert_eq!((rig.waiting(0), rig.waiting(1)), (0, 0));
    let sharing = rig.device.monitor().sharing().remove(0);
    let departures = sharing.departures.unwrap();
    assert_eq!(departures.turns, 3);
    // The second claim was done with at 10 ns and left at 1,000.
    assert!(departures.longest_delay.as_nanos() >= 990, "{departures:?}");
    assert_eq!(rig.device.monitor().counters().sent, 12);
}

#[test]
fn packets_that_are_dropped_or_held_back_pass_their_turn() {
    let pool = pool(256);
    let mut rig = Rig::new(40, None, &pool);
    let mut first = rig.receive(0, 3, 0);
    let second = rig.receive(1, 3, 0);
    rig.send(1, second);
    assert!(rig.receive(1, 0, 0).is_empty());
    // Of the first claim, one is dropped, one sent, and one held back until its turn is over.
    let held: Burst = first.drain(2..).collect();
    let dropped = first.remove(0);
    rig.cache.free(dropped);
    rig.send(0, first);
    assert!(rig.receive(0, 0, 0).is_empty());
    assert_eq!(rig.left(), [1, 3, 4, 5]);
    rig.send(0, held);
    assert_eq!(rig.left(), [2], "it belongs to no open turn");
}

#[test]
fn what_a_device_has_no_room_for_keeps_its_place() {
    let pool = pool(256);
    let mut rig = Rig::new(40, Some(4), &pool);
    for lane in [0, 1] {
        let packets = rig.receive(lane, 6, 0);
        rig.send(lane, packets);
    }
    for lane in [1, 0] {
        assert!(rig.receive(lane, 0, 0).is_empty());
    }
    assert_eq!(rig.left(), [0, 1, 2, 3]);
    assert_eq!((rig.waiting(0), rig.waiting(1)), (2, 6));
    let mut left = Vec::new();
    for now in (1_000..10_000).step_by(1_000) {
        assert!(rig.receive(1, 0, now).is_empty());
        left.extend(rig.left());
    }
    assert_eq!(left, (4..12).collect::<Vec<_>>());
    assert_eq!((rig.waiting(0), rig.waiting(1)), (0, 0));
}

#[test]
fn claims_wait_only_when_turns_are_used_up() {
    let pool = pool(256);
    let mut rig = Rig::new(200, None, &pool);
    let paused = rig.receive(0, 1, 0);
    let mut received = 1;
    loop {
        let packets = rig.receive(1, 32, 0);
        if packets.is_empty() {
            break;
        }
        received += packets.len();
        rig.send(1, packets);
    }
    assert_eq!((received, rig.left().len()), (64, 0), "as many as there are descriptors");
    rig.send(0, paused);
    assert!(rig.receive(0, 0, 50).is_empty());
    assert_eq!(rig.left(), (0..64).collect::<Vec<_>>());
    let stalled = rig.device.monitor().sharing().remove(0);
    assert_eq!((stalled.stalls, stalled.claimants[0].pauses), (1, 1));
}

#[test]
fn a_lane_that_ends_sending_leaves_nothing_behind() {
    let pool = pool(256);
    let mut rig = Rig::new(40, Some(4), &pool);
    let packets = rig.receive(0, 6, 0);
    rig.send(0, packets);
    assert!(rig.receive(0, 0, 0).is_empty());
    for lane in [0, 1] {
        rig.lanes[lane].tx.finish(&mut rig.cache);
    }
    let unsent = rig.lanes[0].tx.unsent();
    assert_eq!((unsent.waiting, unsent.refused, unsent.refused_bytes), (0, 2, 92));
    drop(rig);
    assert_eq!(pool.available(), 256);
}
