//! What a service allocates, counted inside of it: nothing for a request, nothing to open and close a connection. All threads of
//! the process are counted, so this is the only test of it.

#[allow(dead_code, unused_imports, reason = "other tests need more of it")]
mod rig;

use std::alloc::System;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time, VirtualClock};
use rheostat_io::TxQueue;
use rheostat_packet::{Burst, PoolCache};
use rheostat_run::{AnyPoolClient, Batch, DeferredWork, LaneNotifier, Output, Service, ShardSet};
use rheostat_serve::resp::{Resp, RespConfig};
use rheostat_serve::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use rheostat_state::Shard;
use rig::{Around, Client, Members, Plan, QUEUEING, Rig};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations inside of services, and of them those of the cable when they send. Relaxed: one thread runs the lanes.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static OF_CABLE: AtomicUsize = AtomicUsize::new(0);
/// Bytes of those allocations.
static BYTES: AtomicUsize = AtomicUsize::new(0);
static BYTES_OF_CABLE: AtomicUsize = AtomicUsize::new(0);

fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

fn allocated_bytes() -> usize {
    ALLOCATOR.stats().bytes_allocated
}

struct Counted(Box<dyn Service>);

impl Counted {
    fn count(&mut self, work: impl FnOnce(&mut dyn Service)) {
        let own = || allocations() - OF_CABLE.load(Ordering::Relaxed);
        let own_bytes = || allocated_bytes() - BYTES_OF_CABLE.load(Ordering::Relaxed);
        let (before, bytes_before) = (own(), own_bytes());
        work(&mut *self.0);
        COUNT.fetch_add(own() - before, Ordering::Relaxed);
        BYTES.fetch_add(own_bytes() - bytes_before, Ordering::Relaxed);
    }
}

impl Service for Counted {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.count(|service| service.process(batch, shards, out));
    }

    fn shard_arrived(&mut self, shard: &mut Shard) {
        self.0.shard_arrived(shard);
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.count(|service| service.tick(shards, out, now));
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.0.finish(shards, out, now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.0.next_deadline()
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        match self.0.deferred()?.pool_client().is_some() {
            true => Some(self),
            false => None,
        }
    }
}

impl DeferredWork for Counted {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        Some(self)
    }

    fn settle(&mut self, shards: &mut ShardSet, out: &mut Output) {
        self.count(|service| service.deferred().expect("it has some").settle(shards, out));
    }
}

/// The client of a service that has one.
impl AnyPoolClient for Counted {
    fn collect(&mut self) -> usize {
        let mut ready = 0;
        self.count(|service| ready = client(service).collect());
        ready
    }

    fn ring(&mut self) {
        self.count(|service| client(service).ring());
    }

    fn packets(&self) -> usize {
        0
    }

    fn outstanding(&self, _: ShardId) -> usize {
        0
    }

    fn has_replies(&self) -> bool {
        true
    }

    fn wake_by(&mut self, notifier: LaneNotifier) {
        client(&mut *self.0).wake_by(notifier);
    }
}

fn client(service: &mut dyn Service) -> &mut dyn AnyPoolClient {
    service.deferred().and_then(|work| work.pool_client()).expect("it has one")
}

/// A queue of the cable, which copies what it carries.
struct Carrying(Box<dyn TxQueue>);

impl TxQueue for Carrying {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let (before, bytes_before) = (allocations(), allocated_bytes());
        let sent = self.0.send(burst, pool, now);
        OF_CABLE.fetch_add(allocations() - before, Ordering::Relaxed);
        BYTES_OF_CABLE.fetch_add(allocated_bytes() - bytes_before, Ordering::Relaxed);
        sent
    }
}

/// What the service allocates meanwhile.
fn counted(work: impl FnOnce()) -> usize {
    let before = COUNT.load(Ordering::Relaxed);
    work();
    COUNT.load(Ordering::Relaxed) - before
}

const REQUEST: usize = 128;

/// Sends each request back, and allocates nothing itself.
struct Repeat;

impl Application for Repeat {
    type Conn = ();
    type Worker = ();
    type Request = [u8; REQUEST];
    type Reply = [u8; REQUEST];

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<[u8; REQUEST], [u8; REQUEST]> {
        match bytes.first_chunk() {
            Some(request) => Parsed::Request { request: *request, len: REQUEST, class: 0 },
            None => Parsed::Need(REQUEST),
        }
    }

    fn handle(&self, (): &mut (), request: [u8; REQUEST]) -> Handled<[u8; REQUEST], [u8; REQUEST]> {
        Handled::Done(request)
    }

    fn encode(&self, (): &mut (), reply: &mut [u8; REQUEST], out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

const LIMIT: Duration = Duration::from_secs(10);

const COUNTED: Around = Around {
    service: |service| Box::new(Counted(service)),
    transmit: |queue| Box::new(Carrying(queue)),
};

/// Requests that are under way at a time.
const TOGETHER: usize = 16;

/// Each of these clients sends a request and gets its reply.
fn request(rig: &mut Rig, clients: &mut [Client], who: Range<usize>) {
    for client in &mut clients[who.clone()] {
        client.received.clear();
        client.outgoing = vec![7; REQUEST];
    }
    let has_reply = |client: &Client| client.received.len() == REQUEST;
    rig.run_until(clients, LIMIT, |all| all[who.clone()].iter().all(has_reply));
}

/// So many clients more connect, send a request beside the acknowledgement that opens the connection, get the reply, and close.
fn come_and_go(rig: &mut Rig, clients: &mut Vec<Client>, ports: Range<u16>) {
    let residents = clients.len();
    clients.extend(ports.map(|port| rig.connect(port)));
    let guests = residents..clients.len();
    request(rig, clients, guests.clone());
    clients[guests.clone()].iter_mut().for_each(|client| client.finishes = true);
    let is_finished = |client: &Client| client.peer_finished;
    rig.run_until(clients, LIMIT, |all| all[guests.clone()].iter().all(is_finished));
    rig.pass(clients, Duration::from_millis(50));
    assert_eq!(rig.control.connections(), residents, "guests have left");
    clients.truncate(residents);
}

/// With members that handle requests, however these wait, on connections that stay.
fn members_allocate_nothing() {
    for queueing in QUEUEING {
        let members = Some(Members { queueing, ..Members::default() });
        let mut rig = Rig::new(Repeat, Plan { around: COUNTED, members, ..Plan::default() });
        let mut clients: Vec<_> = (1_000..1_064).map(|port| rig.connect(port)).collect();
        let mut all_request = |rig: &mut Rig| {
            for first in (0..64).step_by(TOGETHER) {
                request(rig, &mut clients, first..first + TOGETHER);
            }
        };
        (0..4).for_each(|_| all_request(&mut rig));
        let requests = counted(|| (0..8).for_each(|_| all_request(&mut rig)));
        assert_eq!(requests, 0, "of 512 requests: {queueing:?}");
        rig.finish();
    }
}

#[test]
fn neither_requests_nor_connections_that_come_and_go_allocate() {
    let counting = || Rig::new(Repeat, Plan { around: COUNTED, ..Plan::default() });
    let mut rig = counting();
    // Connections that stay, in each shard.
    let mut clients = Vec::new();
    let opening = counted(|| {
        for port in 1_000..1_128 {
            clients.push(rig.connect(port));
            let last = clients.len() - 1;
            request(&mut rig, &mut clients, last..last + 1);
        }
    });
    assert!(opening >= clients.len() / 8, "{opening}: places and buffers are counted");
    let all_request = |rig: &mut Rig, clients: &mut [Client]| {
        for first in (0..clients.len()).step_by(TOGETHER) {
            request(rig, clients, first..first + TOGETHER);
        }
    };
    // As many as come later, so that there are places and buffers.
    let ports = 2_000..2_000 + TOGETHER as u16;
    all_request(&mut rig, &mut clients);
    come_and_go(&mut rig, &mut clients, ports.clone());
    let requests = counted(|| (0..4).for_each(|_| all_request(&mut rig, &mut clients)));
    assert_eq!(requests, 0, "of 512 requests");
    let connections = counted(|| {
        (0..16).for_each(|_| come_and_go(&mut rig, &mut clients, ports.clone()));
    });
    assert_eq!(connections, 0, "of 256 connections");
    rig.finish();
    // Nor where no connection stays.
    let mut rig = counting();
    let mut clients = Vec::new();
    (0..2).for_each(|_| come_and_go(&mut rig, &mut clients, ports.clone()));
    let connections = counted(|| {
        (0..16).for_each(|_| come_and_go(&mut rig, &mut clients, ports.clone()));
    });
    assert_eq!(connections, 0, "of 256 connections in empty shards");
    rig.finish();
    members_allocate_nothing();
    stored_values_are_sent_without_a_copy_of_the_whole();
}

/// 10 MB of values are requested at once, and sent by way of buffers that do not grow with them.
fn stored_values_are_sent_without_a_copy_of_the_whole() {
    const VALUE: usize = 500_000;
    let store = Resp::new(RespConfig::new(64 << 20), Arc::new(VirtualClock::new()));
    let mut rig = Rig::new(store, Plan { around: COUNTED, ..Plan::default() });
    let mut client = [rig.connect(1_000)];
    client[0].outgoing = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE}\r\n").into_bytes();
    client[0].outgoing.extend_from_slice(&[7; VALUE]);
    client[0].outgoing.extend_from_slice(b"\r\n");
    rig.run_until(&mut client, LIMIT, |all| all[0].received.ends_with(b"+OK\r\n"));
    client[0].outgoing = format!("MGET{}\r\n", " k".repeat(20)).into_bytes();
    let before = BYTES.load(Ordering::Relaxed);
    rig.run_until(&mut client, LIMIT, |all| all[0].received.len() > 20 * VALUE);
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    // The send buffer, which grows by quarters up to 256 KiB, and the buffer of pieces.
    assert!(bytes <= 2 << 20, "{bytes} bytes for {}", 20 * VALUE);
    client[0].finishes = true;
    rig.pass(&mut client, Duration::from_millis(50));
    rig.finish();
}
