//! Each step of a move was seen to matter: left out, the account names what comes of it. The same moves
//! with nothing left out are sound.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use rheostat_base::{DeviceId, LaneId, ShardId, Time};
use rheostat_io::{DeviceCounters, QueuePair, RxQueue, TxQueue};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, HashKind, LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_state::{FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard};
use rheostat_state::{StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};

use super::super::{Lane, LaneConfig, TimeSource};
use crate::handoff::{Handoff, Parcel};
use crate::invariant::{Remains, Violation};
use crate::lane::{Arrivals, Egress};
use crate::migrate::{Command, MoverMailbox, mailbox};
use crate::runtime::{remains, run_dry};
use crate::service::{LaneState, Service};
use crate::shard_set::ShardSet;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
fn hasher() -> FlowHasher {
    FlowHasher::new([1, 2, 3, 4, 5, 6, 7])
}
const BUFFERS: u32 = 128;

/// Sends everything on, and notes whether flows keep their order.
struct Ordered;

impl Service for Ordered {
    type Local = ();

    const STATEFUL: bool = true;

    fn process(&mut self, arrivals: &mut Arrivals, lane: &mut LaneState<'_, ()>, out: &mut Egress) {
        arrivals.drain(|packet, arrival| {
            let shard = lane.shards.get_mut(arrival.shard).expect("a packet meets its shard");
            if shard.table.find_now(arrival.hash, &arrival.key).is_none() {
                shard.table.insert(arrival.hash, &arrival.key, arrival.now).expect("room");
                lane.counters.flows_created.increment();
            }
            let flow = shard.table.find_now(arrival.hash, &arrival.key).expect("there now");
            let mut flow = shard.table.flow(flow).expect("there now");
            if flow.note_arrival(arrival.forward, packet.meta.device, packet.meta.stamp) {
                lane.counters.reordered.increment();
            }
            out.send(DeviceId(0), packet, lane.pool, lane.counters);
        });
    }

    fn relay(&mut self, _: &mut Burst, _: &mut LaneState<'_, ()>, _: &mut Egress) {
        unreachable!("a service with state is given arrivals")
    }

    fn tick(&mut self, _: &mut LaneState<'_, ()>, _: &mut Egress, _: Time) {}

    fn finish(&mut self, _: &mut LaneState<'_, ()>, _: &mut Egress, _: Time) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}

/// A queue into which a test puts packets of one flow, by their stamps.
#[derive(Clone, Default)]
struct Queue {
    stamps: Arc<Mutex<VecDeque<u32>>>,
    sent: Arc<Mutex<u64>>,
    /// Says that nothing waits, whatever does.
    lies: bool,
    hash: u32,
}

fn flow() -> Vec<u8> {
    let udp = Transport::Udp { ports: (1_000, 53) };
    FrameBuilder::new([10, 0, 0, 1].into(), [192, 0, 2, 1].into(), udp, Payload::Pattern(8)).to_vec()
}

impl RxQueue for Queue {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let mut stamps = self.stamps.lock().unwrap();
        let count = stamps.len().min(burst.remaining_capacity());
        for stamp in stamps.drain(..count) {
            let mut packet = pool.alloc_from(&flow()).unwrap();
            packet.meta.stamp = stamp;
            packet.meta.set_link(LinkType::Raw);
            packet.meta.set_hash(self.hash, HashKind::Ports);
            burst.push(packet);
        }
        count
    }

    fn backlog(&self) -> usize {
        if self.lies { 0 } else { self.stamps.lock().unwrap().len() }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl TxQueue for Queue {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        burst.drain(..).for_each(|packet| pool.free(packet));
        *self.sent.lock().unwrap() += count as u64;
        count
    }
}

/// Three lanes; the first has the flow's shard.
struct Scene {
    lanes: Vec<Lane<Ordered>>,
    queues: Vec<Queue>,
    orders: Vec<MoverMailbox>,
    shard: ShardId,
    pool: Mempool,
    arrived: u64,
}

fn shard(id: ShardId) -> Box<Shard<()>> {
    let table = TableConfig { capacity: 8, aliases: false };
    let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher()).unwrap();
    Box::new(Shard { id, table, fragments: FragmentTracker::new(FragmentConfig::default()), local: () })
}

impl Scene {
    fn new(lies: bool) -> Scene {
        let pool = MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).unwrap();
        let steering = Steering::new(&HashKey::MICROSOFT, 4, 4, vec![Orientation::Inside]).unwrap();
        let steering = Arc::new(steering);
        // What a device would say, and where it belongs.
        let mut cache = PoolCache::new(pool.clone());
        let mut packet = cache.alloc_from(&flow()).unwrap();
        packet.meta.set_link(LinkType::Raw);
        let mut arrival = crate::lane::Arrival::default();
        arrival.classify(&packet, &steering, &hasher(), Time::ZERO).unwrap();
        let (shard_id, hash) = (arrival.shard, steering.hash(&arrival.key, HashKind::Ports));
        cache.free(packet);
        drop(cache);

        let queues: Vec<_> =
            (0..3).map(|_| Queue { lies, hash, ..Queue::default() }).collect();
        let handoffs = Handoff::mesh(3, 64, 4);
        let (mut lanes, mut orders) = (Vec::new(), Vec::new());
        for ((index, queue), handoff) in queues.iter().enumerate().zip(handoffs) {
            let mut shards = ShardSet::new(4);
            if index == A {
                (0..4).for_each(|id| shards.install(shard(ShardId(id))));
            }
            let pair = QueuePair { rx: Box::new(queue.clone()), tx: Box::new(queue.clone()) };
            let mut lane = Lane::new(LaneConfig {
                id: LaneId(index as u16),
                queues: vec![pair],
                shards,
                owners: vec![LaneId(A as u16); 4],
                steering: steering.clone(),
                hasher: hasher(),
                handoff,
                hold_capacity: 64,
                pool: PoolCache::new(pool.clone()),
                service: Ordered,
                time: TimeSource::Poll,
            });
            let (mover, mine) = mailbox(4);
            lane.take_orders_from(mine);
            lanes.push(lane);
            orders.push(mover);
        }
        Scene { lanes, queues, orders, shard: shard_id, pool, arrived: 0 }
    }

    /// Packets of the flow arrive at the queue of a lane, the next so many.
    fn arrive(&mut self, lane: usize, count: u32) {
        let first = self.arrived as u32;
        self.queues[lane].stamps.lock().unwrap().extend(first..first + count);
        self.arrived += u64::from(count);
    }

    fn poll(&mut self, lane: usize) {
        self.lanes[lane].poll(Time::from_millis(1));
    }

    fn order(&mut self, lane: usize, command: Command) {
        self.orders[lane].send(command);
    }

    fn expect(&mut self) {
        let from = LaneId(A as u16);
        self.order(B, Command::Expect { shard: self.shard, from, sent: Time::ZERO });
    }

    fn redirect(&mut self) {
        let (from, to) = (LaneId(A as u16), LaneId(B as u16));
        self.order(C, Command::Redirect { shard: self.shard, from, to });
    }

    fn release(&mut self, switches: u16) {
        self.order(A, Command::Release { shard: self.shard, to: LaneId(B as u16), switches });
    }

    fn finish(mut self) -> Vec<Violation> {
        run_dry(&mut self.lanes, Time::from_millis(2));
        let sent = self.queues.iter().map(|queue| *queue.sent.lock().unwrap()).sum();
        let device = DeviceCounters { arrived: self.arrived, sent, ..DeviceCounters::default() };
        let found = remains(&self.lanes, &[device], 4);
        drop(self.lanes);
        let (buffers, buffers_home) = (self.pool.capacity(), self.pool.available());
        Remains { buffers, buffers_home, ..found }.check()
    }
}

/// A packet takes the way over lane C; the owner waits for so many lanes to switch.
fn by_way_of_a_third(switches: u16) -> Vec<Violation> {
    let mut scene = Scene::new(false);
    scene.expect();
    scene.poll(B);
    // The commands to A and C are under way, and C is slow.
    scene.release(switches);
    scene.poll(A);
    scene.arrive(C, 1);
    scene.poll(C);
    scene.redirect();
    scene.arrive(C, 1);
    scene.poll(C);
    scene.poll(B);
    scene.poll(A);
    scene.finish()
}

#[test]
fn an_owner_that_does_not_wait_for_every_lane_lets_packets_pass() {
    assert_eq!(by_way_of_a_third(2), []);
    assert_eq!(by_way_of_a_third(1), [Violation::Reordered { packets: 1 }]);
}

/// More packets wait in the owner's queue than it takes at once.
fn with_a_backlog(lies: bool) -> (Vec<Violation>, u64) {
    let mut scene = Scene::new(lies);
    scene.arrive(A, 40);
    scene.expect();
    scene.poll(B);
    scene.redirect();
    scene.poll(C);
    // The table leads to B now.
    scene.arrive(B, 1);
    scene.poll(B);
    scene.release(2);
    scene.poll(A);
    scene.poll(B);
    let late = scene.lanes[A].counters();
    let violations = scene.finish();
    (violations, late.late_handoff.get())
}

#[test]
fn an_owner_that_does_not_wait_for_its_queue_lets_packets_pass() {
    assert_eq!(with_a_backlog(false), (vec![], 0));
    assert_eq!(with_a_backlog(true), (vec![Violation::Reordered { packets: 8 }], 8));
}

/// A shard moves while a packet is on hold for it, and `meddle` has its way in between.
fn with_a_packet_on_hold(meddle: impl FnOnce(&mut Scene)) -> Vec<Violation> {
    let mut scene = Scene::new(false);
    scene.expect();
    scene.poll(B);
    scene.arrive(B, 1);
    scene.poll(B);
    scene.redirect();
    scene.poll(C);
    scene.release(2);
    scene.poll(A);
    meddle(&mut scene);
    scene.poll(B);
    scene.finish()
}

#[test]
fn a_packet_that_is_lost_on_hold_is_named() {
    assert_eq!(with_a_packet_on_hold(|_| ()), []);
    let lost = with_a_packet_on_hold(|scene| {
        let lane = &mut scene.lanes[B];
        let (placed, _) = lane.hold.take(scene.shard).pop().expect("a packet on hold");
        lane.pool.free(placed.packet);
    });
    assert_eq!(lost, [Violation::LaneUnbalanced { lane: B, entered: 1, left: 0 }]);
}

#[test]
fn a_box_that_is_lost_is_named() {
    let mut shard = ShardId(0);
    let lost = with_a_packet_on_hold(|scene| {
        shard = scene.shard;
        let mut parcels = 0;
        scene.lanes[B].handoff.take(8, |_| parcels += 1);
        assert_eq!(parcels, 1, "the box was on its way");
    });
    let stranded = Violation::Stranded { lane: B, packets: 1 };
    let unowned = Violation::Ownership { shard, owners: 0 };
    assert!(lost.contains(&stranded) && lost.contains(&unowned), "{lost:?}");
}

#[test]
fn a_second_box_is_named() {
    let mut id = ShardId(0);
    let doubled = with_a_packet_on_hold(|scene| {
        id = scene.shard;
        scene.lanes[C].shards.install(shard(id));
    });
    assert_eq!(doubled, [Violation::Ownership { shard: id, owners: 2 }]);
}

#[test]
#[should_panic(expected = "comes to a lane that awaits it")]
fn a_second_box_is_not_taken() {
    with_a_packet_on_hold(|scene| {
        let second = shard(scene.shard);
        scene.lanes[A].handoff.post(LaneId(C as u16), Parcel::Shard(second));
        scene.poll(C);
    });
}
