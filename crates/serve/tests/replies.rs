//! Large replies: pieces, and the memory that they take while a peer does not read.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DropReason, LaneId, VirtualClock};
use rheostat_serve::resp::{Resp, RespConfig};
use rheostat_serve::{Application, Encoded, Handled, Parsed, ReplyBuffer, ServeConfig};
use rheostat_tcp::{CloseReason, State};

use crate::rig::{Client, Plan, Rig, each_way};

const SECOND: Duration = Duration::from_secs(1);
/// Bytes of the value that is stored.
const VALUE: usize = 500_000;
/// Bytes that a connection may hold while its peer does not read.
const HELD: usize = 8 << 10;

/// A store with one value, under the key `k`.
fn store(plan: Plan) -> (Rig, Vec<u8>) {
    let mut rig =
        Rig::new(Resp::new(RespConfig::new(64 << 20), Arc::new(VirtualClock::new())), plan);
    let value: Vec<u8> = (0..VALUE as u32).map(|at| (at.wrapping_mul(97) >> 5) as u8).collect();
    let mut client = [rig.connect(999)];
    client[0].outgoing = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE}\r\n").into_bytes();
    client[0].outgoing.extend_from_slice(&value);
    client[0].outgoing.extend_from_slice(b"\r\n");
    client[0].finishes = true;
    rig.run_until(&mut client, 60 * SECOND, |all| all[0].closed.is_some());
    assert_eq!(client[0].received, b"+OK\r\n");
    (rig, value)
}

/// A client that requests the value `times` times at once.
fn ask(rig: &mut Rig, port: u16, times: usize) -> Client {
    let mut client = rig.connect(port);
    client.outgoing = format!("MGET{}\r\n", " k".repeat(times)).into_bytes();
    client
}

fn expected(value: &[u8], times: usize) -> Vec<u8> {
    let mut reply = format!("*{times}\r\n").into_bytes();
    for _ in 0..times {
        reply.extend_from_slice(format!("${VALUE}\r\n").as_bytes());
        reply.extend_from_slice(value);
        reply.extend_from_slice(b"\r\n");
    }
    reply
}

#[test]
fn a_large_reply_takes_no_memory_but_that_of_its_pieces() {
    each_way(|plan| {
        let (mut rig, value) = store(plan());
        let mut client = [ask(&mut rig, 1_000, 6)];
        let reply = expected(&value, 6);
        let mut most = 0;
        while client[0].received.len() < reply.len() {
            rig.step(&mut client);
            most = most.max(rig.control.memory());
        }
        assert!(client[0].received == reply);
        assert!(most <= 512 << 10, "{most} bytes for {}", reply.len());
        client[0].finishes = true;
        rig.run_until(&mut client, 10 * SECOND, |all| all[0].closed.is_some());
        rig.finish();
    });
}

#[test]
fn clients_that_do_not_read_hold_little_and_keep_nobody_out() {
    each_way(|plan| {
        let (mut rig, value) = store(plan());
        let mut clients: Vec<_> = (0..20).map(|n| ask(&mut rig, 1_000 + n, 6)).collect();
        clients.iter_mut().for_each(|client| client.reads = false);
        rig.pass(&mut clients, 5 * SECOND);
        let held = rig.control.memory();
        assert!(held <= 20 * HELD, "{held} bytes of {} clients", clients.len());
        clients.push(ask(&mut rig, 2_000, 1));
        let reply = expected(&value, 1);
        rig.run_until(&mut clients, SECOND, |all| all[20].received.len() == reply.len());
        // They go on when they read.
        clients.truncate(2);
        clients[0].reads = true;
        let reply = expected(&value, 6);
        rig.run_until(&mut clients[..1], 60 * SECOND, |all| all[0].received.len() == reply.len());
        assert!(clients[0].received == reply);
        rig.control.drain();
        rig.pass(&mut clients, SECOND);
        drop(rig);
    });
}

#[test]
fn a_reply_sends_the_value_that_was_stored_when_it_was_requested() {
    each_way(|plan| {
        let (mut rig, value) = store(plan());
        let mut clients = [ask(&mut rig, 1_000, 2), rig.connect(1_001)];
        clients[0].reads = false;
        rig.pass(&mut clients, SECOND);
        clients[1].outgoing = b"SET k short\r\nGET k\r\n".to_vec();
        rig.pass(&mut clients, SECOND);
        assert_eq!(clients[1].received, b"+OK\r\n$5\r\nshort\r\n");
        clients[0].reads = true;
        let reply = expected(&value, 2);
        rig.run_until(&mut clients, 10 * SECOND, |all| all[0].received.len() >= reply.len());
        assert!(clients[0].received == reply);
        clients.iter_mut().for_each(|client| client.finishes = true);
        rig.run_until(&mut clients, 10 * SECOND, |all| all.iter().all(|one| one.closed.is_some()));
        rig.finish();
    });
}

/// Requests are lines with a number of bytes; the reply has so many, written at once. Reports the memory of its replies, or not.
struct AtOnce {
    reports: bool,
    has_error: bool,
}

const BOTH: AtOnce = AtOnce { reports: true, has_error: true };

impl Application for AtOnce {
    type Conn = ();
    type Worker = ();
    type Request = usize;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<usize, Vec<u8>> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Parsed::Need(0);
        };
        let number = String::from_utf8_lossy(&bytes[..end]).parse();
        Parsed::Request { request: number.expect("a number"), len: end + 1, class: 0 }
    }

    fn handle(&self, (): &mut (), len: usize) -> Handled<usize, Vec<u8>> {
        Handled::Done(vec![len as u8; len])
    }

    fn reply_memory(&self, reply: &Vec<u8>) -> usize {
        if self.reports { reply.len() } else { 0 }
    }

    fn too_large(&self) -> Option<Vec<u8>> {
        self.has_error.then(|| b"too large".to_vec())
    }

    fn encode(&self, (): &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

fn limits(limits: ServeConfig, plan: Plan) -> Plan {
    Plan { limits, ..plan }
}

#[test]
fn a_reply_that_takes_more_memory_than_it_may_becomes_an_error_reply() {
    each_way(|plan| {
        for reports in [true, false] {
            let bounds = ServeConfig { reply_memory: 300_000, ..ServeConfig::default() };
            let app = AtOnce { reports, has_error: true };
            let mut rig = Rig::new(app, limits(bounds, plan()));
            let mut client = [rig.connect(1_000)];
            client[0].outgoing = b"300001\n300000\n7\n".to_vec();
            let expected = [&b"too large"[..], &[300_000_u32 as u8; 300_000], &[7; 7]].concat();
            rig.run_until(&mut client, 10 * SECOND, |all| all[0].received.len() == expected.len());
            assert!(client[0].received == expected, "{reports}");
            assert_eq!(rig.control.totals().replies_refused, 1, "{reports}");
            client[0].finishes = true;
            rig.pass(&mut client, SECOND);
            rig.finish();
        }
    });
}

#[test]
fn without_an_error_reply_the_connection_is_reset() {
    each_way(|plan| {
        for reports in [true, false] {
            let bounds = ServeConfig { reply_memory: 300_000, ..ServeConfig::default() };
            let app = AtOnce { reports, has_error: false };
            let mut rig = Rig::new(app, limits(bounds, plan()));
            let mut client = [rig.connect(1_000)];
            client[0].outgoing = b"300001\n".to_vec();
            rig.pass(&mut client, SECOND);
            assert_eq!(client[0].closed, Some(CloseReason::Reset), "{reports}");
            assert_eq!(rig.control.totals().replies_refused, 1, "{reports}");
            rig.finish();
        }
    });
}

#[test]
fn a_reply_written_at_once_is_charged_to_its_shard_until_it_is_read() {
    each_way(|plan| {
        let mut rig = Rig::new(BOTH, plan());
        let mut client = [rig.connect(1_000)];
        client[0].reads = false;
        client[0].outgoing = b"5000000\n5000000\n".to_vec();
        rig.pass(&mut client, 2 * SECOND);
        let (total, shards) = (rig.control.memory(), rig.control.shard_memory());
        // A second reply may wait behind the first.
        assert!((4_000_000..11_000_000).contains(&total), "{total} bytes");
        assert_eq!(shards.iter().copied().max(), Some(total), "all in one shard");
        client[0].reads = true;
        rig.run_until(&mut client, 60 * SECOND, |all| all[0].received.len() == 10_000_000);
        rig.pass(&mut client, 2 * SECOND);
        assert!(rig.control.memory() <= HELD, "{} bytes", rig.control.memory());
        client[0].finishes = true;
        rig.pass(&mut client, SECOND);
        rig.finish();
    });
}

/// Clients that request so many bytes each and do not read.
fn hoard(rig: &mut Rig, sizes: &[usize]) -> Vec<Client> {
    let ports = 1_000..;
    let client = |(port, size): (u16, &usize)| {
        let mut client = rig.connect(port);
        (client.reads, client.outgoing) = (false, format!("{size}\n").into_bytes());
        client
    };
    ports.zip(sizes).map(client).collect()
}

fn is_reset(client: &Client) -> bool {
    client.closed == Some(CloseReason::Reset)
}

#[test]
fn beyond_the_limit_the_connection_with_the_most_bytes_ends_first() {
    const LIMIT: usize = 4 << 20;
    each_way(|plan| {
        let bounds = ServeConfig { memory: LIMIT, shard_memory: LIMIT, ..ServeConfig::default() };
        let mut rig = Rig::new(BOTH, limits(bounds, plan()));
        // 5.4 MB; without the largest 3.9 MB.
        let sizes = [900_000, 1_000_000, 1_500_000, 700_000, 800_000, 500_000];
        let mut clients = hoard(&mut rig, &sizes);
        rig.pass(&mut clients, SECOND);
        let reset: Vec<_> = clients.iter().map(is_reset).collect();
        assert_eq!(reset, [false, false, true, false, false, false]);
        assert!(rig.control.memory() <= LIMIT, "{} bytes", rig.control.memory());
        assert_eq!(rig.control.totals().memory_closed, 1);
        clients.iter_mut().for_each(|client| client.reads = true);
        rig.run_until(&mut clients, 60 * SECOND, |all| {
            let mut ends = all.iter().zip(sizes);
            ends.all(|(client, size)| is_reset(client) || client.received.len() == size)
        });
        clients.iter_mut().for_each(|client| client.finishes = true);
        rig.pass(&mut clients, SECOND);
        rig.finish();
    });
}

#[test]
fn clients_that_send_or_read_a_byte_at_a_time_do_not_keep_others_out() {
    const LIMIT: usize = 512 << 10;
    each_way(|plan| {
        let bounds = ServeConfig { memory: LIMIT, shard_memory: LIMIT, ..ServeConfig::default() };
        let mut rig = Rig::new(BOTH, limits(bounds, plan()));
        // Each takes less than a request or reply may take whatever the limit; together they are beyond it.
        let mut clients = hoard(&mut rig, &[180_000; 6]);
        rig.pass(&mut clients, SECOND);
        assert!(rig.control.is_under_pressure(), "{} bytes", rig.control.memory());
        clients.push(rig.connect(2_000));
        let end = rig.now + 9 * SECOND;
        while clients[6].tcp.state() != State::Established {
            assert!(rig.now < end, "it is let in");
            rig.pass(&mut clients, SECOND / 10);
            for client in &mut clients[..6] {
                let _ = client.tcp.read(&mut [0]);
                client.outgoing.push(b'1');
            }
        }
        assert!((1..6).contains(&rig.control.totals().memory_closed));
        clients.iter_mut().for_each(|client| client.reads = true);
        rig.control.drain();
        rig.pass(&mut clients, 10 * SECOND);
        drop(rig);
    });
}

#[test]
fn under_pressure_a_connection_on_which_nothing_moves_makes_room_for_others() {
    const LIMIT: usize = 4 << 20;
    each_way(|plan| {
        let bounds = ServeConfig { memory: LIMIT, shard_memory: LIMIT, ..ServeConfig::default() };
        let mut rig = Rig::new(BOTH, limits(bounds, plan()));
        // 3.7 MB of 4.2: under pressure, and within the limit.
        let mut clients = hoard(&mut rig, &[1_000_000, 1_200_000, 800_000, 700_000]);
        rig.pass(&mut clients, SECOND);
        assert!(rig.control.is_under_pressure(), "{} bytes", rig.control.memory());
        clients.push(rig.connect(2_000));
        rig.pass(&mut clients, SECOND / 2);
        assert!(rig.sample().dropped[DropReason::ConnectionMemory as usize] > 0);
        assert!(!clients.iter().any(is_reset), "their progress is not known");
        // Its SYN is sent again after 1, 3 and 7 seconds.
        rig.run_until(&mut clients, 8 * SECOND, |all| all[4].tcp.state() == State::Established);
        let reset: Vec<_> = clients.iter().map(is_reset).collect();
        assert_eq!(reset, [false, true, false, false, false], "the one with the most bytes");
        assert_eq!(rig.control.totals().memory_closed, 1);
        clients.iter_mut().for_each(|client| client.reads = true);
        rig.pass(&mut clients, 10 * SECOND);
        clients.iter_mut().for_each(|client| client.finishes = true);
        rig.pass(&mut clients, SECOND);
        rig.finish();
    });
}
