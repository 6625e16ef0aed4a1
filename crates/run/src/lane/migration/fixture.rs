//! Three lanes and packets of one flow, for tests of how its shard moves.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use rheostat_base::{DeviceId, LaneId, ShardId, Time};
use rheostat_io::{ArrivalOrder, DeviceCounters, QueuePair, RxQueue, Stamping, TxQueue, Unsent};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, HashKind, LinkType, Mempool, PoolCache};
use rheostat_state::{FlowHasher, Shard};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_testkit::flow_order::note_arrival;
use rheostat_testkit::runtime;

use crate::handoff::Handoff;
use crate::invariant::{Remains, Violation};
use crate::lane::classify::Classifier;
use crate::lane::{Batch, HandoffPacket, Output};
use crate::lane::{Lane, LaneConfig, TimeSource, Unusual};
use crate::load::LoadReporting;
use crate::migrate::{Command, MigratorMailbox, mailbox};
use crate::runtime::{remains, run_dry};
use crate::service::Service;
use crate::shard_set::ShardSet;

pub(in crate::lane) const A: usize = 0;
pub(in crate::lane) const B: usize = 1;
pub(in crate::lane) const C: usize = 2;
const BUFFERS: u32 = 128;

/// Sends everything on, and notes whether flows keep their order.
pub(in crate::lane) struct Ordered;

impl Service for Ordered {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        for (packet, &info) in batch.drain() {
            send_on(HandoffPacket { packet, info }, shards, out);
        }
    }
}

/// Sends a packet on, and notes whether its flow keeps its order.
pub(in crate::lane) fn send_on(
    HandoffPacket { packet, info }: HandoffPacket,
    shards: &mut ShardSet,
    out: &mut Output,
) {
    let shard = shards.get_mut(info.shard).expect("a packet meets its shard");
    let flow = (info.hash, &info.key());
    let noted = note_arrival(shard, &packet, flow, info.forward(), info.now);
    out.counters().flows_created.add(noted.is_new.into());
    out.counters().reordered.add(noted.is_reordered.into());
    out.send(DeviceId(0), packet);
}

/// A queue into which a test puts packets of one flow, by their stamps.
#[derive(Clone, Default)]
pub(in crate::lane) struct Queue {
    pub(in crate::lane) stamps: Arc<Mutex<VecDeque<u32>>>,
    pub(in crate::lane) sent: Arc<Mutex<u64>>,
    /// Says that nothing waits, whatever does.
    lies: bool,
    /// Where all queues get their stamps from, if packets have none before they are received.
    receipts: Option<Arc<AtomicU32>>,
    pub(in crate::lane) hash: u32,
    /// What the device says that its hash covers.
    kind: Option<HashKind>,
    /// Which of many flows its packets are of.
    flow: u16,
    /// The order in which packets of all queues leave, where it is checked.
    departures: Option<Arc<Mutex<Departures>>>,
    /// Packets that one call takes at most.
    pub(in crate::lane) most: Arc<Mutex<Option<usize>>>,
}

/// Which packets have left through several queues.
#[derive(Default)]
pub(in crate::lane) struct Departures {
    /// The last stamp of each flow.
    last: HashMap<u16, u32>,
    /// Calls of devices.
    pub(in crate::lane) sends: u64,
    /// Packets that left behind a younger one of their flow.
    pub(in crate::lane) reordered: u64,
    /// Full bursts that were put off, until the queue is asked for the second time what it has not sent.
    pub(in crate::lane) put_off: u64,
    is_asked: bool,
}

impl Departures {
    fn note(&mut self, burst: &Burst) {
        self.sends += 1;
        (self.put_off, self.is_asked) = (u64::from(burst.is_full()), false);
        for packet in burst {
            let port = u16::from_be_bytes([packet.data()[20], packet.data()[21]]);
            let last = self.last.entry(port).or_insert(packet.stamp());
            self.reordered += u64::from(packet.stamp() < *last);
            *last = packet.stamp().max(*last);
        }
    }
}

impl Queue {
    /// A queue of packets of this flow, of whose hash the device says nothing.
    pub(in crate::lane) fn of_flow(flow: u16) -> Queue {
        Queue { flow, kind: Some(HashKind::None), ..Queue::default() }
    }

    /// The same queue, whose packets are noted when they leave.
    pub(in crate::lane) fn noting(self, departures: &Arc<Mutex<Departures>>) -> Queue {
        Queue { departures: Some(departures.clone()), ..self }
    }
}

fn flow(number: u16) -> Vec<u8> {
    let udp = Transport::Udp { ports: (1_000 + number, 53) };
    FrameBuilder::new([10, 0, 0, 1].into(), [192, 0, 2, 1].into(), udp, Payload::Pattern(8))
        .to_vec()
}

impl RxQueue for Queue {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let mut stamps = self.stamps.lock().unwrap();
        let count = stamps.len().min(burst.remaining_capacity());
        for stamp in stamps.drain(..count) {
            let mut packet = pool.alloc_from(&flow(self.flow)).unwrap();
            packet.set_stamp(self.order().stamping.draw().unwrap_or(stamp));
            packet.set_link(LinkType::Raw);
            packet.set_hash(self.hash, self.kind.unwrap_or(HashKind::Ports));
            burst.push(packet);
        }
        count
    }

    fn backlog(&self) -> usize {
        if self.lies { 0 } else { self.stamps.lock().unwrap().len() }
    }

    fn order(&self) -> ArrivalOrder<'_> {
        let stamping = self.receipts.as_deref().map_or(Stamping::Source, Stamping::Receipt);
        ArrivalOrder { stamping, rings: None }
    }
}

impl TxQueue for Queue {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len().min(self.most.lock().unwrap().unwrap_or(burst.len()));
        if let Some(departures) = &self.departures {
            departures.lock().unwrap().note(burst);
        }
        burst.drain(..count).for_each(|packet| pool.free(packet));
        *self.sent.lock().unwrap() += count as u64;
        count
    }

    fn unsent(&mut self) -> Unsent {
        if let Some(departures) = &self.departures {
            let departures = &mut *departures.lock().unwrap();
            if std::mem::replace(&mut departures.is_asked, true) {
                departures.put_off = 0;
            }
        }
        Unsent::default()
    }
}

/// Three lanes; the first has the flow's shard, and all others unless packets are misdirected.
pub(in crate::lane) struct Fixture {
    pub(in crate::lane) lanes: Vec<Lane>,
    pub(in crate::lane) queues: Vec<Queue>,
    orders: Vec<MigratorMailbox>,
    pub(in crate::lane) shard: ShardId,
    pub(in crate::lane) misdirected: ShardId,
    pub(in crate::lane) pool: Mempool,
    pub(in crate::lane) arrived: u64,
}

pub(in crate::lane) fn shard(id: ShardId) -> Box<Shard> {
    runtime::shard(id, 8, ())
}

impl Fixture {
    pub(in crate::lane) fn new(lies: bool) -> Fixture {
        Fixture::with(Queue { lies, ..Queue::default() }, |_| Box::new(Ordered))
    }

    /// A fixture whose device stamps packets as lanes receive them.
    pub(in crate::lane) fn live() -> Fixture {
        Fixture::with(Queue { receipts: Some(Arc::default()), ..Queue::default() }, |_| {
            Box::new(Ordered)
        })
    }

    /// A fixture whose device places the packets by the buckets of another shard, [`Fixture::misdirected`], which lane C
    /// has, and says that its hash covers `kind`.
    pub(in crate::lane) fn misdirecting(kind: HashKind) -> Fixture {
        Fixture::with(Queue { kind: Some(kind), ..Queue::default() }, |_| Box::new(Ordered))
    }

    /// A fixture of queues like `queue`, each with packets of its own, and of a service per lane.
    pub(in crate::lane) fn with(
        queue: Queue,
        mut service: impl FnMut(usize) -> Box<dyn Service>,
    ) -> Fixture {
        let pool = runtime::pool(BUFFERS);
        let steering = Steering::new(&HashKey::MICROSOFT, 4, 4, vec![Orientation::Inside]).unwrap();
        let steering = Arc::new(steering);
        // What a device would say, and where it belongs.
        let mut cache = PoolCache::new(pool.clone());
        let mut packet = cache.alloc_from(&flow(0)).unwrap();
        packet.set_link(LinkType::Raw);
        let (names, time, now) = (FlowHasher::fixed(), TimeSource::Poll, Time::ZERO);
        let by = Classifier {
            steering: &steering,
            hasher: &names,
            time,
            now,
            unusual: Unusual::default(),
        };
        let info = by.one(&packet).unwrap();
        let (shard_id, hash) = (info.shard, steering.hash(&info.key(), HashKind::Ports));
        cache.free(packet);
        drop(cache);

        let misdirected = ShardId(shard_id.0 ^ 1);
        let (hash, owner_of_misdirected) = match queue.kind {
            Some(_) => (u32::from(misdirected.0), C),
            None => (hash, A),
        };
        let mut owners = vec![LaneId(A as u16); 4];
        owners[misdirected.index()] = LaneId(owner_of_misdirected as u16);
        let Queue { lies, receipts, kind, .. } = queue;
        let queue = || Queue { lies, hash, kind, receipts: receipts.clone(), ..Queue::default() };
        let queues: Vec<_> = (0..3).map(|_| queue()).collect();
        let handoffs = Handoff::mesh(3, 64, 4, 4);
        let (mut lanes, mut orders) = (Vec::new(), Vec::new());
        for ((index, queue), handoff) in queues.iter().enumerate().zip(handoffs) {
            let mut shards = ShardSet::new(4);
            let own = (0..4).map(ShardId).filter(|id| owners[id.index()].index() == index);
            own.for_each(|id| shards.install(shard(id)));
            let pair = QueuePair { rx: Box::new(queue.clone()), tx: Box::new(queue.clone()) };
            let mut lane = Lane::new(LaneConfig {
                id: LaneId(index as u16),
                queues: vec![pair],
                shards,
                owners: owners.clone(),
                claimants: Vec::new(),
                takes_turns: false,
                steering: steering.clone(),
                hasher: FlowHasher::fixed(),
                handoff,
                hold_capacity: 64,
                pool: PoolCache::new(pool.clone()),
                service: service(index),
                time: TimeSource::Poll,
                reporting: LoadReporting::Shards,
                classes: None,
                stages: None,
                hops: None,
            });
            let (migrator, mine) = mailbox(4);
            lane.take_orders_from(mine);
            lanes.push(lane);
            orders.push(migrator);
        }
        Fixture { lanes, queues, orders, shard: shard_id, misdirected, pool, arrived: 0 }
    }

    /// Packets of the flow arrive at the queue of a lane, the next so many.
    pub(in crate::lane) fn arrive(&mut self, lane: usize, count: u32) {
        let first = self.arrived as u32;
        self.queues[lane].stamps.lock().unwrap().extend(first..first + count);
        self.arrived += u64::from(count);
    }

    pub(in crate::lane) fn poll(&mut self, lane: usize) {
        self.lanes[lane].poll(Time::from_millis(1));
    }

    fn order(&mut self, lane: usize, command: Command) {
        self.orders[lane].send(command);
    }

    pub(in crate::lane) fn expect(&mut self) {
        let from = LaneId(A as u16);
        let (shard, sent) = (self.shard, Time::ZERO);
        self.order(B, Command::Expect { shard, pending_acks: 1, sent });
        self.order(B, Command::Redirect { shard, from, to: LaneId(B as u16) });
    }

    /// The shard by whose buckets packets come is to move from C to B.
    pub(in crate::lane) fn expect_misdirected(&mut self) {
        let (shard, from, sent) = (self.misdirected, LaneId(C as u16), Time::ZERO);
        self.order(B, Command::Expect { shard, pending_acks: 1, sent });
        self.order(B, Command::Redirect { shard, from, to: LaneId(B as u16) });
    }

    /// The shard by whose buckets packets come, and the flow's own, are to change places: one goes from C to A, the
    /// other from A to C.
    pub(in crate::lane) fn expect_swap(&mut self) {
        let (pending_acks, sent) = (1, Time::ZERO);
        self.order(A, Command::Expect { shard: self.misdirected, pending_acks, sent });
        self.order(C, Command::Expect { shard: self.shard, pending_acks, sent });
    }

    /// What lane `lane` is told once no packet can be placed by the old entries.
    pub(in crate::lane) fn switch_swap(&mut self, lane: usize) {
        let [a, c] = [A, C].map(|lane| LaneId(lane as u16));
        for (shard, from, to) in [(self.misdirected, c, a), (self.shard, a, c)] {
            let command = match from.index() == lane {
                true => Command::Release { shard, to, redirects: 2 },
                false => Command::Redirect { shard, from, to },
            };
            self.order(lane, command);
        }
    }

    pub(in crate::lane) fn release_misdirected(&mut self) {
        let (shard, from, to) = (self.misdirected, LaneId(C as u16), LaneId(B as u16));
        self.order(A, Command::Redirect { shard, from, to });
        self.order(C, Command::Release { shard, to, redirects: 2 });
    }

    pub(in crate::lane) fn redirect(&mut self) {
        let (from, to) = (LaneId(A as u16), LaneId(B as u16));
        self.order(C, Command::Redirect { shard: self.shard, from, to });
    }

    pub(in crate::lane) fn release(&mut self, redirects: u16) {
        self.order(A, Command::Release { shard: self.shard, to: LaneId(B as u16), redirects });
    }

    pub(in crate::lane) fn finish(mut self) -> Vec<Violation> {
        run_dry(&mut self.lanes, Time::from_millis(2));
        self.account()
    }

    /// The account of the lanes as they are.
    pub(in crate::lane) fn account(self) -> Vec<Violation> {
        let sent = self.queues.iter().map(|queue| *queue.sent.lock().unwrap()).sum();
        let device = DeviceCounters { arrived: self.arrived, sent, ..DeviceCounters::default() };
        let found = remains(&self.lanes, &[device], 4);
        drop(self.lanes);
        let (buffers, buffers_home) = (self.pool.capacity(), self.pool.available());
        Remains { buffers, buffers_home, ..found }.check()
    }
}
