//! What clients get.

use std::net::SocketAddr;
use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_serve::echo::Echo;
use rheostat_serve::{Application, Encoded, Handled, ListenerConfig, Parsed, ReplyBuffer};
use rheostat_tcp::CloseReason;

use crate::rig::{Client, LOCAL_V6, PORT, Plan, Rig, each_way};

const SECOND: Duration = Duration::from_secs(1);

/// Bytes that differ from place to place.
fn pattern(len: usize, salt: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(0x9e37_79b9).wrapping_add(salt) >> 11) as u8)
        .collect()
}

fn echo_once(rig: &mut Rig, client: Client, len: usize) {
    let data = pattern(len, client.port().into());
    let mut client = [client];
    client[0].outgoing = data.clone();
    client[0].finishes = true;
    rig.run_until(&mut client, 60 * SECOND, |all| all[0].closed.is_some());
    rig.pass(&mut client, SECOND / 100);
    assert!(client[0].received == data, "{} bytes came back", client[0].received.len());
    assert_eq!(client[0].closed, Some(CloseReason::Finished));
}

#[test]
fn what_is_sent_comes_back_and_the_connection_ends_in_good_order() {
    each_way(|plan| {
        let mut rig = Rig::new(Echo, plan());
        for (port, len) in [(1_000, 0), (1_001, 1), (1_002, 5_000), (1_003, 2_000_000)] {
            let client = rig.connect(port);
            echo_once(&mut rig, client, len);
        }
        let totals = rig.control.totals();
        assert_eq!((totals.accepted, totals.finished, totals.retransmitted), (4, 4, 0));
        assert_eq!((totals.bytes_in, totals.bytes_out), (2_005_001, 2_005_001));
        rig.finish();
    });
}

#[test]
fn ipv6_a_vlan_and_long_packets_work_as_well() {
    each_way(|plan| {
        let mut rig = Rig::new(Echo, plan());
        let client = Client::connect(LOCAL_V6, "fd00::2", 1_000, None, rig.now);
        echo_once(&mut rig, client, 300_000);
        rig.finish();
        let mut rig = Rig::new(Echo, Plan { vlan: Some(7), ..plan() });
        let client = rig.connect(1_000);
        echo_once(&mut rig, client, 300_000);
        rig.finish();
        let mut rig = Rig::new(Echo, Plan { mtu: 9_000, ..plan() });
        let client = rig.connect(1_000);
        echo_once(&mut rig, client, 300_000);
        rig.finish();
    });
}

#[test]
fn many_connections_at_once_each_get_their_own_bytes() {
    each_way(|plan| {
        let mut rig = Rig::new(Echo, plan());
        let mut clients: Vec<_> = (0..200).map(|n| rig.connect(2_000 + n)).collect();
        let data: Vec<_> = (0..200).map(|n| pattern(3_000 + 50 * n, n as u64)).collect();
        for (client, data) in clients.iter_mut().zip(&data) {
            client.outgoing.clone_from(data);
            client.finishes = true;
        }
        rig.run_until(&mut clients, 60 * SECOND, |all| all.iter().all(|one| one.closed.is_some()));
        assert!(clients.iter().zip(&data).all(|(client, data)| client.received == *data));
        assert_eq!(rig.control.totals().accepted, 200);
        rig.finish();
    });
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from() {
    each_way(|plan| {
        let mut plan = plan();
        (plan.listener.tcp.send_buffer, plan.listener.tcp.receive_buffer) = (256 << 10, 256 << 10);
        let mut rig = Rig::new(Echo, plan);
        let mut client = [rig.connect(1_000)];
        client[0].reads = false;
        client[0].outgoing = pattern(10_000_000, 1);
        rig.pass(&mut client, 10 * SECOND);
        // Both its buffers and both of ours, and a piece or two between.
        let taken = 10_000_000 - client[0].outgoing.len();
        assert!(taken < 4 * (256 << 10) + (256 << 10), "{taken} bytes were taken");
        assert!(rig.control.memory() < 1 << 20, "{} bytes", rig.control.memory());
        // It goes on when it reads.
        client[0].reads = true;
        client[0].finishes = true;
        rig.run_until(&mut client, 600 * SECOND, |all| all[0].closed.is_some());
        assert!(client[0].received == pattern(10_000_000, 1));
        rig.finish();
    });
}

/// Requests are lines; "panic" panics, "slow" takes a hundred turns, "no" is refused, "end" ends.
struct Lines;

enum Line {
    Text(Vec<u8>),
    Slow(u32),
    Panic,
}

impl Application for Lines {
    type Conn = u32;
    type Worker = u32;
    type Request = Line;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) -> u32 {
        0
    }

    fn accept(&self, peer: SocketAddr) -> u32 {
        assert_eq!(peer.ip().to_string(), "10.0.0.2");
        0
    }

    fn parse(&self, seen: &mut u32, bytes: &[u8]) -> Parsed<Line, Vec<u8>> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return Parsed::Need(0);
        };
        *seen += 1;
        let request = match &bytes[..end] {
            b"no" => return Parsed::Refuse(b"refused\n".to_vec()),
            b"panic" => Line::Panic,
            b"slow" => Line::Slow(100),
            text => Line::Text(text.to_vec()),
        };
        Parsed::Request { request, len: end + 1, class: 0 }
    }

    fn handle(&self, handled: &mut u32, request: Line) -> Handled<Line, Vec<u8>> {
        *handled += 1;
        match request {
            Line::Text(mut text) => {
                text.push(b'\n');
                Handled::Done(text)
            }
            Line::Slow(0) => Handled::Done(b"slow\n".to_vec()),
            Line::Slow(left) => Handled::More(Line::Slow(left - 1)),
            Line::Panic => panic!("as the client wished"),
        }
    }

    fn encode(&self, _: &mut u32, reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        if reply == b"end\n" { Encoded::Close } else { Encoded::Done }
    }
}

fn talk(rig: &mut Rig, port: u16, text: &str) -> Client {
    let mut client = [rig.connect(port)];
    client[0].outgoing = text.as_bytes().to_vec();
    rig.pass(&mut client, SECOND);
    let [client] = client;
    client
}

#[test]
fn requests_are_answered_in_order_however_they_are_cut() {
    each_way(|plan| {
        let mut rig = Rig::new(Lines, plan());
        let text: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
        assert_eq!(talk(&mut rig, 1_000, &text).received, text.as_bytes());
        // Byte by byte, and a slow one among them.
        let mut client = [rig.connect(1_001)];
        for byte in b"a\nslow\nb\nc" {
            client[0].outgoing.push(*byte);
            rig.step(&mut client);
        }
        rig.pass(&mut client, SECOND);
        assert_eq!(client[0].received, b"a\nslow\nb\n");
        rig.finish();
    });
}

#[test]
fn a_refusal_and_an_end_come_behind_earlier_replies_and_close_in_good_order() {
    each_way(|plan| {
        let mut rig = Rig::new(Lines, plan());
        for (port, last, reply) in [(1_000, "no", "refused"), (1_001, "end", "end")] {
            let mut client = talk(&mut rig, port, &format!("a\nb\n{last}\nignored\nmore"));
            assert_eq!(client.received, format!("a\nb\n{reply}\n").as_bytes());
            assert!(client.peer_finished && client.closed.is_none(), "not reset");
            client.finishes = true;
            let mut client = [client];
            rig.run_until(&mut client, SECOND, |all| all[0].closed.is_some());
            assert_eq!(client[0].closed, Some(CloseReason::Finished));
        }
        assert_eq!(rig.control.totals().refused, 1);
        rig.finish();
    });
}

#[test]
fn a_peer_that_does_not_finish_is_not_waited_for() {
    each_way(|plan| {
        let mut rig = Rig::new(Lines, plan());
        let mut client = [talk(&mut rig, 1_000, "end\n")];
        assert_eq!(rig.control.connections(), 1);
        // The time to linger, and then that which TCP itself gives.
        rig.pass(&mut client, 70 * SECOND);
        assert_eq!(rig.control.connections(), 0);
        assert_eq!(rig.control.totals().timed_out, 1);
        rig.finish();
    });
}

#[test]
fn a_panic_resets_its_connection_and_nothing_else() {
    each_way(|plan| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let mut rig = Rig::new(Lines, Plan { lanes: 1, ..plan() });
        let mut clients = [rig.connect(1_000), rig.connect(1_001)];
        clients[0].outgoing = b"a\npanic\n".to_vec();
        clients[1].outgoing = b"b\n".to_vec();
        rig.pass(&mut clients, SECOND);
        assert_eq!(clients[0].closed, Some(CloseReason::Reset));
        clients[1].outgoing = b"c\n".to_vec();
        rig.pass(&mut clients, SECOND);
        assert_eq!((&clients[1].received[..], clients[1].closed), (&b"b\nc\n"[..], None));
        assert_eq!((rig.control.totals().panics, rig.control.connections()), (1, 1));
        rig.finish();
        std::panic::set_hook(hook);
    });
}

#[test]
fn idle_connections_are_closed_and_busy_ones_are_not() {
    each_way(|plan| {
        let listener =
            ListenerConfig { idle_timeout: Some(5 * SECOND), ..ListenerConfig::new(PORT) };
        let mut rig = Rig::new(Lines, Plan { listener, ..plan() });
        let mut clients = [rig.connect(1_000), rig.connect(1_001)];
        for _ in 0..8 {
            clients[1].outgoing = b"b\n".to_vec();
            rig.pass(&mut clients, SECOND);
        }
        assert!(clients[0].peer_finished && !clients[1].peer_finished);
        assert_eq!(rig.control.totals().idle_closed, 1);
        rig.finish();
    });
}

#[test]
fn draining_closes_idle_connections_and_others_behind_their_replies() {
    each_way(|plan| {
        let mut rig = Rig::new(Lines, plan());
        let mut clients = [rig.connect(1_000), rig.connect(1_001)];
        clients[1].outgoing = b"half".to_vec();
        rig.pass(&mut clients, SECOND);
        rig.control.drain();
        rig.pass(&mut clients, SECOND);
        assert!(clients[0].peer_finished && !clients[1].peer_finished);
        clients[1].outgoing = b" a line\n".to_vec();
        clients.iter_mut().for_each(|client| client.finishes = true);
        let mut late = [rig.connect(1_002)];
        rig.run_until(&mut clients, SECOND, |all| all.iter().all(|one| one.closed.is_some()));
        assert_eq!(clients[1].received, b"half a line\n");
        assert_eq!(
            clients.each_ref().map(|client| client.closed),
            [Some(CloseReason::Finished); 2]
        );
        rig.run_until(&mut late, SECOND, |all| all[0].closed.is_some());
        assert_eq!(late[0].closed, Some(CloseReason::Refused));
        rig.pass(&mut clients, SECOND / 100);
        assert_eq!(rig.control.connections(), 0);
        rig.finish();
    });
}

/// The texts of requests, which are handled apart in the order in which they were found. A reply waits for earlier ones.
#[test]
fn replies_to_requests_that_take_turns_leave_in_order() {
    let mut rig = Rig::new(Lines, Plan { apart: true, ..Plan::default() });
    let text: String = (0..300).map(|n| format!("slow\nline {n}\n")).collect();
    assert!(talk(&mut rig, 1_000, &text).received == text.as_bytes());
    let totals = rig.control.totals();
    assert_eq!((totals.requests, totals.unclaimed), (600, 0));
    rig.finish();
}

/// Requests behind one that ends the connection, in the same segment, have been handed over by then.
#[test]
fn what_comes_of_requests_behind_the_last_is_counted() {
    let mut rig = Rig::new(Lines, Plan { apart: true, ..Plan::default() });
    let client = talk(&mut rig, 1_000, "a\nend\nb\nc\n");
    assert_eq!(client.received, b"a\nend\n");
    let totals = rig.control.totals();
    assert_eq!((totals.requests, totals.unclaimed), (4, 2));
    rig.finish();
}

/// Lines one at a time.
struct Serial(Lines);

impl Application for Serial {
    const SERIAL: bool = true;
    type Conn = u32;
    type Worker = u32;
    type Request = Line;
    type Reply = Vec<u8>;

    fn worker(&self, lane: LaneId) -> u32 {
        self.0.worker(lane)
    }

    fn accept(&self, peer: SocketAddr) -> u32 {
        self.0.accept(peer)
    }

    fn parse(&self, seen: &mut u32, bytes: &[u8]) -> Parsed<Line, Vec<u8>> {
        self.0.parse(seen, bytes)
    }

    fn handle(&self, handled: &mut u32, request: Line) -> Handled<Line, Vec<u8>> {
        self.0.handle(handled, request)
    }

    fn encode(&self, seen: &mut u32, reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        self.0.encode(seen, reply, out)
    }
}

#[test]
fn a_serial_application_gets_the_next_request_when_the_reply_is_there() {
    let mut rig = Rig::new(Serial(Lines), Plan { apart: true, ..Plan::default() });
    // Behind "end", the others are never found.
    let client = talk(&mut rig, 1_000, "a\nslow\nend\nb\nc\n");
    assert_eq!(client.received, b"a\nslow\nend\n");
    let totals = rig.control.totals();
    assert_eq!((totals.requests, totals.unclaimed), (3, 0));
    rig.finish();
}
