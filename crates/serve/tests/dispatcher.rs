//! Requests that members of a pool handle: their replies are those of one worker, whatever members do when.
//!
//! Timed: threads, sleep, clock.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::LaneId;
use rheostat_base::choice::Outstanding;
use rheostat_io::ImpairConfig;
use rheostat_run::{PoolConfig, PoolQueueing};
use rheostat_serve::relay::Relay;
use rheostat_serve::{
    Application, Encoded, Handled, ListenerConfig, MembersError, Parsed, ReplyBuffer, ServeConfig,
    StepMembers, TcpServer,
};
use rheostat_tcp::CloseReason;

use crate::rig::{Client, Members, PORT, Plan, QUEUEING, Rig, RunningMembers, seeds};

const SECOND: Duration = Duration::from_secs(1);
/// Seeds of a network without faults, and of one with them.
const SEEDS: (u64, u64) = (240, 80);

/// Requests are lines; the reply is the line with the number of the request in its connection. One that begins with `~` takes as
/// many turns as its length is, one that begins with `!` waits until it may end.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    may_end: Arc<AtomicBool>,
    handled: Arc<AtomicU64>,
}

thread_local! {
    /// Has a member take a step whenever a request is looked for.
    static STEPS: RefCell<Option<StepMembers>> = const { RefCell::new(None) };
}

pub(crate) struct Line {
    number: u32,
    text: Vec<u8>,
    turns: usize,
}

impl Application for Lines {
    type Conn = u32;
    type Worker = u64;
    type Request = Line;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) -> u64 {
        0
    }

    fn accept(&self, _: SocketAddr) -> u32 {
        0
    }

    fn parse(&self, seen: &mut u32, bytes: &[u8]) -> Parsed<Line, Vec<u8>> {
        STEPS.with_borrow_mut(|steps| steps.as_mut().map(|step| step(0)));
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Parsed::Need(0);
        };
        let text = bytes[..end].to_vec();
        let turns = if text.first() == Some(&b'~') { text.len() } else { 0 };
        let request = Line { number: *seen, text, turns };
        *seen += 1;
        Parsed::Request { request, len: end + 1, class: 0 }
    }

    fn handle(&self, _: &mut u64, mut line: Line) -> Handled<Line, Vec<u8>> {
        if line.turns > 0 {
            line.turns -= 1;
            return Handled::More(line);
        }
        while line.text.first() == Some(&b'!') && !self.may_end.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
        Handled::Done(reply_to(line.number, &line.text))
    }

    fn encode(&self, _: &mut u32, reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

fn reply_to(number: u32, text: &[u8]) -> Vec<u8> {
    [number.to_string().as_bytes(), b":", text, b"\n"].concat()
}

/// Numbers that follow from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Lines of unequal lengths, of which one in ten takes turns.
    pub(crate) fn lines(&mut self, count: u64) -> Vec<Vec<u8>> {
        let mut line = |_| {
            let len = if self.below(20) == 0 { 4_000 } else { 1 + self.below(60) };
            let letter = b'a' + self.below(26) as u8;
            match self.below(10) {
                0 => [vec![b'~'], vec![letter; len.min(12) as usize]].concat(),
                _ => vec![letter; len as usize],
            }
        };
        (0..count).map(&mut line).collect()
    }

    /// Lines of each client: up to 150, and 60 over a bad network.
    pub(crate) fn lines_of(&mut self, clients: u64, has_faults: bool) -> Vec<Vec<Vec<u8>>> {
        let most = if has_faults { 60 } else { 150 };
        let of_client = |_| {
            let count = 1 + self.below(most);
            self.lines(count)
        };
        (0..clients).map(of_client).collect()
    }
}

/// What clients that send these lines all at once receive. Without faults, no segment comes early and none is sent twice.
pub(crate) fn received(plan: Plan, lines: &[Vec<Vec<u8>>], seed: u64) -> Vec<Vec<u8>> {
    let is_perfect = plan.faults.is_none();
    let mut rig = Rig::new(Lines::default(), plan);
    let mut clients: Vec<_> = (0..lines.len() as u16).map(|n| rig.connect(1_000 + n)).collect();
    let mut random = Random(seed);
    let mut left: Vec<_> = lines.iter().map(|lines| lines.join(&b'\n')).collect();
    left.iter_mut().for_each(|text| text.push(b'\n'));
    while left.iter().any(|text| !text.is_empty()) {
        // In pieces that end anywhere.
        for (client, text) in clients.iter_mut().zip(&mut left) {
            let piece = (random.below(3_000) as usize).min(text.len());
            client.outgoing.extend(text.drain(..piece));
            client.finishes = text.is_empty();
        }
        rig.step(&mut clients);
    }
    rig.run_until(&mut clients, 3_000 * SECOND, |all| all.iter().all(|one| one.closed.is_some()));
    assert!(clients.iter().all(|client| client.closed == Some(CloseReason::Finished)));
    let totals = rig.control.totals();
    assert_eq!((totals.requests, totals.unclaimed), (lines.concat().len() as u64, 0));
    if is_perfect {
        assert_eq!(totals.retransmitted, 0, "seed {seed}");
        for info in clients.iter().map(|client| client.tcp.info()) {
            assert_eq!((info.retransmitted, info.out_of_order), (0, 0), "seed {seed}");
        }
    }
    rig.finish();
    clients.into_iter().map(|client| client.received).collect()
}

fn same_as_inline(seed: u64, faults: Option<ImpairConfig>) {
    let mut random = Random(seed);
    let lanes = 1 + random.below(3) as usize;
    let clients = 1 + random.below(8);
    let lines = random.lines_of(clients, faults.is_some());
    let members = Members {
        each: 1 + random.below(4) as usize,
        queueing: QUEUEING[random.below(4) as usize],
        depth: 1 << random.below(6),
        seed,
        ..Members::default()
    };
    let plan = Plan { lanes, members: Some(members), faults, ..Plan::default() };
    check_same_as_inline(plan, &lines, seed);
}

/// Clients get the bytes that they get under `inline-dfcfs`: the replies in the order of requests, each once.
pub(crate) fn check_same_as_inline(plan: Plan, lines: &[Vec<Vec<u8>>], seed: u64) {
    let inline = received(Plan { lanes: plan.lanes, ..Plan::default() }, lines, seed);
    let dispatched = received(plan, lines, seed);
    assert!(dispatched == inline, "seed {seed}: other bytes than inline-dfcfs");
    for (lines, received) in lines.iter().zip(&dispatched) {
        let replies = lines.iter().enumerate().map(|(number, text)| reply_to(number as u32, text));
        assert!(
            *received == replies.collect::<Vec<_>>().concat(),
            "seed {seed}: in order, each once"
        );
    }
}

#[test]
fn replies_are_those_of_one_worker_whatever_members_do_when() {
    seeds(SEEDS.0).for_each(|seed| same_as_inline(seed, None));
}

#[test]
fn replies_are_those_of_one_worker_though_packets_are_lost_doubled_and_reordered() {
    for seed in seeds(SEEDS.1) {
        let faults = ImpairConfig {
            seed,
            loss: 0.02,
            duplicate: 0.02,
            reorder: 0.05,
            ..ImpairConfig::default()
        };
        same_as_inline(10_000 + seed, Some(faults));
    }
}

/// A rig with one lane.
fn rig(app: Lines, members: Members) -> Rig {
    Rig::new(app, Plan { lanes: 1, members: Some(members), ..Plan::default() })
}

fn paused(members: &mut RunningMembers) {
    members.pause = true;
}

/// Steps, with time for threads, until it is done.
fn wait_until(rig: &mut Rig, clients: &mut [Client], is_done: impl Fn(&[Client]) -> bool) {
    let last = Instant::now() + Duration::from_secs(60);
    while !is_done(clients) {
        assert!(Instant::now() < last, "not done");
        rig.step(clients);
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn a_request_that_does_not_end_holds_up_its_connection_alone() {
    for queueing in [QUEUEING[0], QUEUEING[3]] {
        let app = Lines::default();
        let mut rig =
            rig(app.clone(), Members { queueing, are_threads: true, ..Members::default() });
        let mut clients: Vec<_> = (0..9).map(|n| rig.connect(1_000 + n)).collect();
        clients[0].outgoing = b"a\n!wait\nb\n".to_vec();
        wait_until(&mut rig, &mut clients, |all| all[0].received == b"0:a\n");
        for client in &mut clients[1..] {
            client.outgoing = b"x\ny\nz\n".to_vec();
        }
        let others = b"0:x\n1:y\n2:z\n";
        wait_until(&mut rig, &mut clients, |all| all[1..].iter().all(|one| one.received == others));
        assert_eq!(clients[0].received, b"0:a\n", "{queueing:?}");
        app.may_end.store(true, Ordering::Relaxed);
        wait_until(&mut rig, &mut clients, |all| all[0].received.ends_with(b"2:b\n"));
        assert_eq!(clients[0].received, b"0:a\n1:!wait\n2:b\n");
        let members = rig.take_members();
        rig.finish();
        let report = members.stop(Duration::from_secs(60));
        assert_eq!((report.tasks, report.running), (27, vec![]));
    }
}

#[test]
fn a_member_that_never_returns_is_named_at_the_end_and_its_request_is_counted() {
    let app = Lines::default();
    let mut rig = rig(app.clone(), Members { are_threads: true, ..Members::default() });
    let mut clients = [rig.connect(1_000), rig.connect(1_001)];
    clients[0].outgoing = b"!wait\nbehind\n".to_vec();
    clients[1].outgoing = b"x\n".to_vec();
    wait_until(&mut rig, &mut clients, |all| all[1].received == b"0:x\n");
    // The second request of the first connection is handled, and its reply waits.
    let handled = app.handled.clone();
    wait_until(&mut rig, &mut clients, |_| handled.load(Ordering::Relaxed) == 2);
    rig.pass(&mut clients, SECOND);
    rig.control.drain();
    rig.pass(&mut clients, SECOND);
    assert!(clients[1].peer_finished && !clients[0].peer_finished);
    let (control, members) = (rig.control.clone(), rig.take_members());
    rig.finish();
    let totals = control.totals();
    assert_eq!((totals.requests, totals.unanswered), (2, 1));
    assert_eq!(members.stop(Duration::from_millis(50)).running, [0]);
    app.may_end.store(true, Ordering::Relaxed);
}

#[test]
fn a_client_that_never_reads_is_not_read_from_and_others_go_on() {
    for queueing in QUEUEING {
        let mut rig = rig(Lines::default(), Members { queueing, ..Members::default() });
        let mut clients = [rig.connect(1_000), rig.connect(1_001)];
        clients[0].reads = false;
        clients[0].outgoing = [&[b'x'; 999][..], b"\n"].concat().repeat(5_000);
        rig.pass(&mut clients, 5 * SECOND);
        let taken = 5_000_000 - clients[0].outgoing.len();
        assert!(taken < 5 * (256 << 10), "{queueing:?}: {taken} bytes were taken");
        assert!(rig.control.memory() < 2 << 20, "{} bytes", rig.control.memory());
        clients[1].outgoing = b"y\n".to_vec();
        rig.run_until(&mut clients, SECOND, |all| all[1].received == b"0:y\n");
        clients[0].reads = true;
        rig.run_until(&mut clients, 600 * SECOND, |all| {
            all[0].received.ends_with(b"x\n") && all[0].outgoing.is_empty()
        });
        rig.pass(&mut clients, 20 * SECOND);
        assert_eq!(clients[0].received.iter().filter(|byte| **byte == b'\n').count(), 5_000);
        rig.finish();
    }
}

#[test]
fn what_comes_of_requests_whose_client_has_vanished_is_dropped_and_counted() {
    for queueing in QUEUEING {
        let mut rig = rig(Lines::default(), Members { queueing, ..Members::default() });
        let mut clients = [rig.connect(1_000), rig.connect(1_001)];
        rig.pass(&mut clients, SECOND);
        paused(rig.members());
        clients[0].outgoing = b"a\nb\nc\n".to_vec();
        clients[1].outgoing = b"d\n".to_vec();
        rig.pass(&mut clients, SECOND);
        clients[0].tcp.abort();
        rig.pass(&mut clients, SECOND);
        assert_eq!(rig.control.connections(), 1, "its place is free");
        // Another one may have the place by then.
        let mut later = [rig.connect(1_002)];
        later[0].outgoing = b"e\n".to_vec();
        rig.pass(&mut later, SECOND);
        rig.members().pause = false;
        rig.run_until(&mut clients, SECOND, |all| all[1].received == b"0:d\n");
        rig.run_until(&mut later, SECOND, |all| all[0].received == b"0:e\n");
        let totals = rig.control.totals();
        assert_eq!((totals.requests, totals.unclaimed, totals.panics), (5, 3, 0), "{queueing:?}");
        rig.finish();
    }
}

#[test]
fn members_get_more_while_the_lane_is_at_work_on_a_burst() {
    let app = Lines::default();
    let queueing = PoolQueueing::Central(Outstanding::ONE);
    let mut rig = rig(app.clone(), Members { each: 1, queueing, ..Members::default() });
    let mut clients: Vec<_> = (0..8).map(|n| rig.connect(1_000 + n)).collect();
    rig.pass(&mut clients, SECOND);
    STEPS.set(Some(rig.members().take_steps()));
    clients.iter_mut().for_each(|client| client.outgoing = b"a\n".to_vec());
    rig.step(&mut clients);
    // The member has done what it was given before the next request was looked for.
    assert_eq!(app.handled.load(Ordering::Relaxed), 7);
    STEPS.set(None);
    rig.finish();
}

#[test]
fn requests_that_no_member_has_done_when_the_run_ends_are_counted() {
    for queueing in QUEUEING {
        let mut rig = rig(Lines::default(), Members { queueing, depth: 1, ..Members::default() });
        let mut clients: Vec<_> = (0..6).map(|n| rig.connect(1_000 + n)).collect();
        rig.pass(&mut clients, SECOND);
        paused(rig.members());
        clients.iter_mut().for_each(|client| client.outgoing = b"a\n".to_vec());
        rig.pass(&mut clients, SECOND);
        let control = rig.control.clone();
        rig.finish();
        assert_eq!(
            (control.totals().requests, control.totals().unanswered),
            (0, 6),
            "{queueing:?}"
        );
    }
}

#[test]
fn a_full_pool_is_not_parsed_for_and_loses_nothing() {
    for queueing in QUEUEING {
        let app = Lines::default();
        let mut rig = rig(app, Members { queueing, depth: 2, ..Members::default() });
        let mut clients: Vec<_> = (0..20).map(|n| rig.connect(1_000 + n)).collect();
        rig.pass(&mut clients, SECOND);
        paused(rig.members());
        let lines: Vec<_> = (0..100).map(|n| format!("{n}\n")).collect();
        clients.iter_mut().for_each(|client| client.outgoing = lines.concat().into_bytes());
        rig.pass(&mut clients, SECOND);
        // Nobody has done anything, so all that was parsed is under way: what the pool holds, and one of each connection.
        let control = rig.control.clone();
        rig.members().pause = false;
        rig.run_until(&mut clients, 60 * SECOND, |all| {
            all.iter().all(|one| one.received.ends_with(b"99:99\n"))
        });
        let replies: String = (0..100).map(|n| format!("{n}:{n}\n")).collect();
        assert!(clients.iter().all(|client| client.received == replies.as_bytes()));
        assert_eq!(control.totals().requests, 2_000, "{queueing:?}");
        rig.finish();
    }
}

#[test]
fn a_shard_stays_while_requests_of_it_are_at_members() {
    let mut rig = Rig::new(
        Lines::default(),
        Plan { lanes: 2, members: Some(Members::default()), ..Plan::default() },
    );
    let mut clients: Vec<_> = (0..30).map(|n| rig.connect(1_000 + n)).collect();
    rig.pass(&mut clients, SECOND);
    let shards = 0..crate::rig::SHARDS as u16;
    let before: Vec<_> = shards.clone().map(|shard| rig.owner(shard)).collect();
    paused(rig.members());
    clients.iter_mut().for_each(|client| client.outgoing = b"a\n".to_vec());
    rig.pass(&mut clients, SECOND / 10);
    let moved = shards.filter(|shard| rig.move_shard(*shard, 1 - before[usize::from(*shard)]));
    assert_eq!(moved.count(), crate::rig::SHARDS);
    rig.pass(&mut clients, SECOND / 10);
    let waiting = rig.control.totals().moved_connections;
    assert!(waiting < 30, "{waiting} connections have moved");
    rig.members().pause = false;
    rig.run_until(&mut clients, SECOND, |all| all.iter().all(|one| one.received == b"0:a\n"));
    rig.pass(&mut clients, SECOND / 10);
    assert_eq!(rig.control.totals().moved_connections, 30);
    clients.iter_mut().for_each(|client| client.outgoing = b"b\n".to_vec());
    rig.run_until(&mut clients, SECOND, |all| all.iter().all(|one| one.received == b"0:a\n1:b\n"));
    rig.finish();
}

#[test]
fn a_reply_that_takes_long_is_not_sent_twice() {
    let mut rig = rig(Lines::default(), Members::default());
    let mut clients = [rig.connect(1_000)];
    clients[0].outgoing = b"a\n".to_vec();
    paused(rig.members());
    rig.pass(&mut clients, 3 * SECOND);
    rig.members().pause = false;
    rig.run_until(&mut clients, SECOND, |all| all[0].received == b"0:a\n");
    rig.pass(&mut clients, SECOND);
    assert_eq!(rig.control.totals().retransmitted, 0);
    rig.control.drain();
    clients[0].finishes = true;
    rig.run_until(&mut clients, SECOND, |all| all[0].closed.is_some());
    rig.finish();
}

#[test]
fn requests_given_before_a_drain_are_answered() {
    for queueing in QUEUEING {
        let mut rig = rig(Lines::default(), Members { queueing, ..Members::default() });
        let mut clients: Vec<_> = (0..10).map(|n| rig.connect(1_000 + n)).collect();
        rig.pass(&mut clients, SECOND);
        paused(rig.members());
        clients.iter_mut().for_each(|client| client.outgoing = b"a\nb\n".to_vec());
        rig.pass(&mut clients, SECOND / 10);
        rig.control.drain();
        rig.pass(&mut clients, SECOND / 10);
        assert!(clients.iter().all(|client| !client.peer_finished));
        rig.members().pause = false;
        rig.run_until(&mut clients, SECOND, |all| all.iter().all(|one| one.peer_finished));
        assert!(clients.iter().all(|client| client.received == b"0:a\n1:b\n"), "{queueing:?}");
        rig.finish();
    }
}

#[test]
fn members_that_cannot_handle_requests_are_refused() {
    let network = || {
        let policy = rheostat_ip::Policy::default();
        Arc::new(rheostat_ip::Network::new(Vec::new(), &[], policy).expect("a network"))
    };
    let (listeners, limits) = (vec![ListenerConfig::new(PORT)], ServeConfig::default());
    let relay = Relay::new(Vec::new());
    let server = TcpServer::with_handler(relay, listeners.clone(), limits, network(), 2, &[1; 16]);
    let refused = server.expect("a service").start_members(&PoolConfig::new(2, 2, 1));
    assert!(matches!(refused, Err(MembersError::NoRequests)));
    let server = TcpServer::new(Lines::default(), listeners, limits, network(), 2, &[1; 16]);
    let server = server.expect("a service");
    let refused = server.start_members(&PoolConfig::new(2, 1, 1));
    assert!(matches!(refused, Err(MembersError::Lanes { pool: 1, run: 2 })));
    let none = PoolConfig { queueing: PoolQueueing::PerMember, ..PoolConfig::new(0, 2, 1) };
    assert!(matches!(server.start_members(&none), Err(MembersError::Pool(_))));
}
