//! Workers that sleep: a packet wakes the worker of its queue, a hand-off that of its owner, and a reply of
//! a pool that of its lane.
//!
//! Timed: threads, sleep, clock.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rheostat_base::{Clock, DeviceId, LaneId, Time};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair, RxQueue, TxQueue};
use rheostat_packet::{Burst, LinkType, Mbuf, PoolCache};
use rheostat_run::poll::Interrupt;
use rheostat_run::poll::metronome::{MetronomeSettings, ModeRules};
use rheostat_run::{
    AnyPoolClient, Batch, DeferredWork, HandoffPacket, Output, PacketClient, Polling, Pool,
    PoolConfig, Runtime, RuntimeConfig, Service, ShardSet,
};
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rustix::event::{EventfdFlags, eventfd};

const LANES: usize = 2;
const LIMIT: Duration = Duration::from_secs(120);

/// A wire with frames on it, which a worker can sleep on.
struct Wire {
    frames: Mutex<VecDeque<Vec<u8>>>,
    event: OwnedFd,
    arrived: AtomicU64,
    sent: AtomicU64,
    stopped: AtomicBool,
}

impl Wire {
    fn new() -> Arc<Wire> {
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let frames = Mutex::default();
        let (arrived, sent) = Default::default();
        Arc::new(Wire { frames, event, arrived, sent, stopped: AtomicBool::new(false) })
    }

    fn deliver(&self, frame: Vec<u8>) {
        self.frames.lock().unwrap().push_back(frame);
        rustix::io::write(&self.event, &1_u64.to_ne_bytes()).unwrap();
    }
}

struct End(Arc<Wire>);

impl RxQueue for End {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let mut frames = self.0.frames.lock().unwrap();
        let _ = rustix::io::read(&self.0.event, &mut [0; 8]);
        let count = frames.len().min(burst.remaining_capacity());
        for frame in frames.drain(..count) {
            let mut packet = pool.alloc_from(&frame).unwrap();
            packet.set_timestamp(now);
            packet.set_link(LinkType::Raw);
            burst.push(packet);
        }
        self.0.arrived.fetch_add(count as u64, Ordering::Relaxed);
        count
    }

    fn backlog(&self) -> usize {
        self.0.frames.lock().unwrap().len()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.event.as_fd())
    }
}

impl TxQueue for End {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        burst.drain(..).for_each(|packet| pool.free(packet));
        self.0.sent.fetch_add(count as u64, Ordering::Relaxed);
        count
    }
}

/// One wire per lane.
struct Wires(Vec<Arc<Wire>>);

impl Device for Wires {
    fn name(&self) -> &str {
        "wires"
    }

    fn id(&self) -> DeviceId {
        DeviceId(0)
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let ends = |wire: &Arc<Wire>| (Box::new(End(wire.clone())), Box::new(End(wire.clone())));
        self.0.iter().map(ends).map(|(rx, tx)| QueuePair { rx, tx }).collect()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(Wires(self.0.clone()))
    }
}

impl DeviceMonitor for Wires {
    fn counters(&self) -> DeviceCounters {
        let sum = |count: fn(&Wire) -> &AtomicU64| {
            self.0.iter().map(|wire| count(wire).load(Ordering::Relaxed)).sum()
        };
        let (arrived, sent) = (sum(|wire| &wire.arrived), sum(|wire| &wire.sent));
        DeviceCounters { arrived, sent, ..DeviceCounters::default() }
    }

    fn is_exhausted(&self) -> bool {
        self.0.iter().all(|wire| wire.stopped.load(Ordering::Relaxed))
    }

    fn stop(&self) {
        self.0.iter().for_each(|wire| wire.stopped.store(true, Ordering::Relaxed));
    }
}

/// Sends everything back, after a pool had its way with it if there is one.
struct Echo {
    lane: LaneId,
    processed: Arc<[AtomicU64; LANES]>,
    client: Option<PacketClient<(), ()>>,
}

impl Echo {
    fn send(&self, packet: Mbuf, out: &mut Output) {
        out.send(DeviceId(0), packet);
        self.processed[self.lane.index()].fetch_add(1, Ordering::Relaxed);
    }
}

impl Service for Echo {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, out: &mut Output) {
        for (packet, &info) in batch.drain() {
            match &mut self.client {
                None => self.send(packet, out),
                Some(client) => {
                    let placed = HandoffPacket { packet, info };
                    assert!(client.submit(placed, ()).is_none(), "one packet at a time");
                }
            }
        }
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        match self.client.is_some() {
            true => Some(self),
            false => None,
        }
    }
}

impl DeferredWork for Echo {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        self.client.as_mut().map(|client| client as &mut dyn AnyPoolClient)
    }

    fn settle(&mut self, _: &mut ShardSet, out: &mut Output) {
        while let Some(reply) = self.client.as_mut().and_then(PacketClient::next_reply) {
            self.send(reply.placed.packet, out);
        }
    }
}

/// Frames one by one on the first lane's wire, each sent once the one before is through. A worker that is not woken sees
/// each of its own half a second later; one that is, in most cases, in less than half of that, whatever else the machine
/// does. So the median of each lane distinguishes the two.
fn one_by_one(polling: Polling, mut clients: impl Iterator<Item = PacketClient<(), ()>>) {
    const FRAMES: u64 = 100;
    let config = RuntimeConfig { polling, ..config(LANES, LANES, pool(512)) };
    let shards = shards(LANES, 8, ());
    let processed: Arc<[AtomicU64; LANES]> = Arc::default();
    let service = |lane| {
        Box::new(Echo { lane, processed: processed.clone(), client: clients.next() })
            as Box<dyn Service>
    };
    let wires: Vec<_> = (0..LANES).map(|_| Wire::new()).collect();
    let device = Box::new(Wires(wires.clone()));
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
    let through = || processed.iter().map(|count| count.load(Ordering::Relaxed)).sum::<u64>();
    let mut took = [const { Vec::new() }; LANES];
    for number in 0..FRAMES {
        let (start, before) = (Instant::now(), processed[1].load(Ordering::Relaxed));
        wires[0].deliver(Datagrams::frame(number as u16));
        while through() == number {
            assert!(start.elapsed() < LIMIT, "packet {number} never came through");
            std::thread::sleep(Duration::from_micros(50));
        }
        let lane = processed[1].load(Ordering::Relaxed) - before;
        took[lane as usize].push(start.elapsed());
    }
    for (lane, took) in took.iter_mut().enumerate() {
        took.sort();
        let median = took[took.len() / 2];
        assert!(median < Duration::from_millis(250), "lane {lane} was not woken: {median:?}");
    }
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    let second = processed[1].load(Ordering::Relaxed);
    assert!((FRAMES / 4..FRAMES * 3 / 4).contains(&second), "{second} went to the second lane");
}

#[test]
fn hand_offs_wake_their_owner() {
    one_by_one(Interrupt::polling(Duration::ZERO), std::iter::empty());
}

/// Metronome whose lanes wait for an interrupt as soon as they are empty.
fn idle_at_once() -> Polling {
    let rules = ModeRules { idle_after: Some(Duration::ZERO), ..ModeRules::default() };
    MetronomeSettings { rules, ..MetronomeSettings::default() }.polling()
}

#[test]
fn packets_and_hand_offs_wake_a_worker_that_may_run_their_lane() {
    one_by_one(idle_at_once(), std::iter::empty());
}

/// A pool of two members, and the lanes' clients.
fn members() -> (Pool, impl Iterator<Item = PacketClient<(), ()>>) {
    let (pool, clients) = Pool::start(&PoolConfig::new(2, LANES, 1), |_| |()| ()).unwrap();
    (pool, clients.into_iter().map(|client| PacketClient::new(client, 8)))
}

#[test]
fn replies_wake_a_worker_that_may_run_their_lane() {
    let (pool, clients) = members();
    one_by_one(idle_at_once(), clients);
    assert_eq!(pool.stop().unwrap().tasks, 100);
}

#[test]
fn tasks_wake_members_of_a_pool_and_replies_wake_lanes() {
    let (pool, clients) = members();
    one_by_one(Interrupt::polling(Duration::ZERO), clients);
    assert_eq!(pool.stop().unwrap().tasks, 100);
}
