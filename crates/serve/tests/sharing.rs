//! Lanes that share connections: a central queue, and stealing.
//!
//! Timed: threads.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_io::ImpairConfig;
use rheostat_ip::{Interface, Network, Policy};
use rheostat_run::Sharing;
use rheostat_serve::echo::Echo;
use rheostat_serve::relay::Relay;
use rheostat_serve::{
    Application, AvailableScheduler, ConnectionFilter, Encoded, Handled, ListenerConfig, Parsed,
    ReplyBuffer, ServeConfig, ServeError, TcpServer,
};
use rheostat_tcp::CloseReason;
use rheostat_tcp::sched::SchedulerName;

use crate::listing::list;
use crate::rig::{
    Client, LOCAL_V4, MAC, Members, PORT, Plan, QUEUEING, Rig, central, parse_line, seeds,
    shared_dispatchers, stealing,
};

const SECOND: Duration = Duration::from_secs(1);
/// Seeds of a network without faults, and of one with them.
const SEEDS: (u64, u64) = (100, 20);

/// Requests are lines, which come back. The one that says "wait" waits until the test lets it go.
struct Gate {
    entered: Sender<()>,
    released: Mutex<Receiver<()>>,
}

/// The test's end of a gate.
struct Warden {
    entered: Receiver<()>,
    release: Sender<()>,
}

fn gate() -> (Gate, Warden) {
    let ((entered, is_entered), (release, is_released)) = (channel(), channel());
    let gate = Gate { entered, released: Mutex::new(is_released) };
    (gate, Warden { entered: is_entered, release })
}

impl Application for Gate {
    type Conn = ();
    type Worker = ();
    type Request = Vec<u8>;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, _: &mut (), bytes: &[u8]) -> Parsed<Vec<u8>, Vec<u8>> {
        parse_line(bytes)
    }

    fn handle(&self, _: &mut (), request: Vec<u8>) -> Handled<Vec<u8>, Vec<u8>> {
        if request == b"wait\n" {
            self.entered.send(()).expect("the test runs");
            self.released.lock().unwrap().recv().expect("the test lets it go");
        }
        Handled::Done(request)
    }

    fn encode(&self, _: &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

/// Lanes that share connections and handle requests, and those whose members do.
fn plans(seed: u64) -> [Plan; 4] {
    let queueing = QUEUEING[(seed % 4) as usize];
    let members = Members { queueing, seed, ..Members::default() };
    let dispatchers = |sharing| shared_dispatchers(sharing, members);
    [central(), stealing(), dispatchers(Sharing::CENTRAL), dispatchers(Sharing::STEALING)]
}

/// Clients that send lines in pieces whose lengths a seed decides, and what they get.
fn converse(plan: Plan) -> Vec<Vec<u8>> {
    let mut seed = plan.seed;
    let of_seed = seed;
    let is_perfect = plan.faults.is_none();
    let (gate, _warden) = gate();
    let mut rig = Rig::new(gate, plan);
    let mut clients: Vec<_> = (0..8).map(|n| rig.connect(1_000 + n)).collect();
    let texts: Vec<Vec<u8>> = (0..8)
        .map(|client| (0..60).map(|n| format!("line {n} of {client}\n")).collect::<String>())
        .map(String::into_bytes)
        .collect();
    let mut sent = [0; 8];
    while clients.iter().zip(&texts).any(|(client, text)| client.received.len() < text.len()) {
        for ((client, text), sent) in clients.iter_mut().zip(&texts).zip(&mut sent) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let piece = ((seed >> 40) as usize % 200).min(text.len() - *sent);
            client.outgoing.extend_from_slice(&text[*sent..*sent + piece]);
            *sent += piece;
        }
        rig.step(&mut clients);
        assert!(rig.now < Time::from_secs(300), "seed {of_seed}: all come to an end");
    }
    if is_perfect {
        let totals = rig.control.totals();
        assert_eq!((totals.retransmitted, totals.unclaimed), (0, 0));
        for info in clients.iter().map(|client| client.tcp.info()) {
            assert_eq!((info.retransmitted, info.out_of_order), (0, 0));
        }
        let all = list(&mut rig, &mut clients, ConnectionFilter::default(), 100);
        assert_eq!((all.records.len(), all.matched, all.silent), (8, 8, 0), "each once");
        let early = all.records.iter().filter_map(|seen| seen.info).map(|info| info.out_of_order);
        assert_eq!(early.sum::<u64>(), 0);
    }
    rig.control.drain();
    clients.iter_mut().for_each(|client| client.finishes = true);
    rig.run_until(&mut clients, 300 * SECOND, |all| all.iter().all(|one| one.closed.is_some()));
    while rig.control.connections() > 0 {
        rig.step(&mut clients);
        assert!(rig.now < Time::from_secs(900), "seed {of_seed}: all connections end");
    }
    rig.finish();
    clients.into_iter().map(|client| client.received).collect()
}

#[test]
fn clients_get_the_same_bytes_whichever_lane_is_polled_next() {
    let alone = converse(Plan::default());
    for seed in seeds(SEEDS.0) {
        for plan in plans(seed) {
            let sharing = plan.sharing;
            let lanes = 2 + seed as usize % 3;
            let shared = converse(Plan { lanes, seed, ..plan });
            assert!(shared == alone, "{sharing:?}, seed {seed}");
        }
    }
}

#[test]
fn clients_get_the_same_bytes_over_a_bad_network() {
    let alone = converse(Plan::default());
    for seed in seeds(SEEDS.1) {
        for plan in plans(seed) {
            let (sharing, reorder) = (plan.sharing, 0.05);
            let faults =
                ImpairConfig { seed, loss: 0.05, duplicate: 0.02, reorder, ..Default::default() };
            let lanes = 2 + seed as usize % 3;
            let shared = converse(Plan { lanes, seed, faults: Some(faults), ..plan });
            assert!(shared == alone, "{sharing:?}, seed {seed}");
        }
    }
}

/// Lets a lane take a request that waits, on a thread; it returns when the request is handled.
fn stall(
    rig: &mut Rig,
    client: Client,
    warden: &Warden,
) -> (Vec<Client>, impl FnOnce(&mut Rig) + use<>) {
    let mut clients = vec![client];
    rig.run_until(&mut clients, SECOND, |all| all[0].tcp.info().send_window > 0);
    clients[0].outgoing = b"wait\nafter\n".to_vec();
    let now = rig.now;
    let client = &mut clients[0];
    client.tick(now);
    while let Some(frame) = client.poll_frame(now) {
        rig.inject(frame, 0);
    }
    let mut lane = rig.take_lane(0);
    let thread = std::thread::spawn(move || {
        while lane.poll(now).packets > 0 {}
        lane
    });
    warden.entered.recv().expect("the request is being handled");
    (clients, move |rig: &mut Rig| rig.put_lane(0, thread.join().expect("the lane ends its poll")))
}

#[test]
fn a_worker_that_stalls_in_a_request_delays_that_request_alone() {
    for plan in [central(), stealing()] {
        let (gate, warden) = gate();
        let mut rig = Rig::new(gate, plan);
        // Even ports are those of the hardware queue whose lane stalls.
        let client = rig.connect(1_000);
        let (mut clients, rejoin) = stall(&mut rig, client, &warden);
        clients.extend((0..6).map(|n| rig.connect(1_002 + n)));
        for client in &mut clients[1..] {
            client.outgoing = b"a\nb\n".to_vec();
        }
        rig.run_until(&mut clients, SECOND, |all| {
            all[1..].iter().all(|client| client.received == b"a\nb\n")
        });
        // Another lane takes what comes on the same connection, and the reply waits for the earlier ones.
        clients[0].outgoing = b"later\n".to_vec();
        rig.pass(&mut clients, SECOND / 10);
        assert_eq!(clients[0].received, b"");
        assert_eq!(clients[0].tcp.info().unacknowledged, 0, "the segment was taken");
        warden.release.send(()).unwrap();
        rejoin(&mut rig);
        rig.pass(&mut clients, SECOND / 10);
        assert_eq!(clients[0].received, b"wait\nafter\nlater\n");
        assert!(clients.iter().all(|client| client.tcp.info().retransmitted == 0));
        assert_eq!(rig.control.totals().retransmitted, 0);
        rig.control.drain();
        clients.iter_mut().for_each(|client| client.finishes = true);
        rig.run_until(&mut clients, 2 * SECOND, |all| all.iter().all(|one| one.closed.is_some()));
        rig.finish();
    }
}

#[test]
fn what_comes_of_a_request_whose_client_vanished_is_counted() {
    for plan in [central(), stealing()] {
        let (gate, warden) = gate();
        let mut rig = Rig::new(gate, plan);
        let client = rig.connect(1_000);
        let (mut clients, rejoin) = stall(&mut rig, client, &warden);
        clients[0].tcp.abort();
        rig.pass(&mut clients, SECOND / 10);
        assert_eq!(rig.control.connections(), 0, "another lane has ended it");
        // One with the same addresses is another connection.
        let mut clients = [rig.connect(1_000)];
        clients[0].outgoing = b"new\n".to_vec();
        rig.run_until(&mut clients, SECOND, |all| all[0].received == b"new\n");
        warden.release.send(()).unwrap();
        rejoin(&mut rig);
        rig.pass(&mut clients, SECOND / 10);
        assert_eq!(
            (rig.control.totals().unclaimed, clients[0].received.as_slice()),
            (2, &b"new\n"[..])
        );
        rig.finish();
    }
}

#[test]
fn timers_of_connections_are_looked_after_by_one_lane_whichever_armed_them() {
    for plan in [central(), stealing()] {
        let mut listener = ListenerConfig::new(PORT);
        listener.idle_timeout = Some(5 * SECOND);
        let mut rig = Rig::new(Echo, Plan { listener, lanes: 3, ..plan });
        let mut clients: Vec<_> = (0..30).map(|n| rig.connect(1_000 + n)).collect();
        clients.iter_mut().for_each(|client| client.outgoing = vec![1; 100]);
        rig.pass(&mut clients, 4 * SECOND);
        assert_eq!(rig.control.totals().idle_closed, 0);
        rig.pass(&mut clients, 2 * SECOND);
        assert_eq!(rig.control.totals().idle_closed, 30);
        assert!(clients.iter().all(|client| client.peer_finished && client.received.len() == 100));
        clients.iter_mut().for_each(|client| client.finishes = true);
        rig.run_until(&mut clients, SECOND, |all| {
            all.iter().all(|one| one.closed == Some(CloseReason::Finished))
        });
        rig.finish();
    }
}

#[test]
fn services_of_events_do_not_run_on_shared_connections() {
    let target: SocketAddr = "192.0.2.7:22".parse().unwrap();
    let address = format!("{LOCAL_V4}/24").parse().unwrap();
    let interface =
        Interface { addresses: vec![address], ..Interface::new(DeviceId(0), "cable", MAC) };
    let network = Arc::new(Network::new(vec![interface], &[], Policy::default()).unwrap());
    for name in ["inline-cfcfs", "inline-ws"] {
        let scheduler = AvailableScheduler::from(name.parse::<SchedulerName>().unwrap());
        let listener = vec![ListenerConfig::new(80)];
        let relay = Relay::new(vec![target]);
        let limits = ServeConfig::default();
        let server =
            TcpServer::with_handler(relay, listener, limits, network.clone(), 2, &[7; 16]).unwrap();
        let refused = server.under(scheduler.clone()).map(drop);
        assert_eq!(refused, Err(ServeError::Scheduler(scheduler)));
    }
}
