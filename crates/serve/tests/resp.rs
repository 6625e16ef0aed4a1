//! The store of keys and values.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Time, VirtualClock};
use rheostat_serve::resp::{Resp, RespConfig};

use crate::rig::{Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// A store, and the time it goes by.
fn rig(bytes: usize) -> (Rig, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::new());
    (Rig::new(Resp::new(RespConfig::new(bytes), clock.clone()), Plan::default()), clock)
}

/// What comes back for these lines, all sent at once.
fn ask(rig: &mut Rig, port: u16, lines: &[&str]) -> String {
    let mut client = [rig.connect(port)];
    client[0].outgoing =
        lines.iter().map(|line| format!("{line}\r\n")).collect::<String>().into_bytes();
    rig.pass(&mut client, SECOND / 10);
    String::from_utf8(client[0].received.clone()).unwrap()
}

#[test]
fn keys_have_values_until_they_are_removed() {
    let (mut rig, _) = rig(1 << 20);
    let said = ask(
        &mut rig,
        1_000,
        &[
            "PING",
            "SET a 1",
            "GET a",
            "GET b",
            "INCR a",
            "INCRBY a 40",
            "DECR n",
            "MSET x 5 y 6",
            "MGET x z y",
            "EXISTS a b x",
            "DEL a b x",
            "DBSIZE",
            "SET y 7 NX",
            "SET w 7 XX",
            "SET y 8 XX",
        ],
    );
    let expected = "+PONG\r\n+OK\r\n$1\r\n1\r\n$-1\r\n:2\r\n:42\r\n:-1\r\n+OK\r\n*3\r\n$1\r\n5\r\n$-1\r\n\
                    $1\r\n6\r\n:2\r\n:2\r\n:2\r\n$-1\r\n$-1\r\n+OK\r\n";
    assert_eq!(said, expected);
    rig.finish();
}

#[test]
fn keys_live_as_long_as_they_may() {
    let (mut rig, clock) = rig(1 << 20);
    let lines =
        ["SET a 1 EX 10", "TTL a", "PTTL a", "SET b 1", "TTL b", "TTL c", "EXPIRE b 5", "TTL b"];
    let expected = "+OK\r\n:10\r\n:10000\r\n+OK\r\n:-1\r\n:-2\r\n:1\r\n:5\r\n";
    assert_eq!(ask(&mut rig, 1_000, &lines), expected);
    clock.advance_to(Time::from_secs(5));
    assert_eq!(ask(&mut rig, 1_001, &["GET a", "GET b", "INCR b"]), "$1\r\n1\r\n$-1\r\n:1\r\n");
    clock.advance_to(Time::from_secs(10));
    assert_eq!(ask(&mut rig, 1_002, &["GET a", "TTL b", "DBSIZE"]), "$-1\r\n:-1\r\n:1\r\n");
    rig.finish();
}

#[test]
fn mistakes_are_answered_and_nonsense_ends_the_connection() {
    let (mut rig, _) = rig(1 << 20);
    let said =
        ask(&mut rig, 1_000, &["GET", "SET a x", "INCR a", "SET a 1 EX 0", "SET a 1 HX", "BREW"]);
    let starts: Vec<_> =
        said.lines().map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "-ERR wrong number",
        "+OK",
        "-ERR value is",
        "-ERR value is",
        "-ERR syntax error",
        "-ERR unknown command",
    ];
    assert_eq!(starts, expected);
    let mut client = [rig.connect(1_001)];
    client[0].outgoing = b"PING\r\n*1\r\n$x\r\n".to_vec();
    rig.pass(&mut client, SECOND);
    assert_eq!(client[0].received, b"+PONG\r\n-ERR Protocol error: invalid length\r\n");
    assert!(client[0].peer_finished);
    rig.finish();
}

#[test]
fn no_more_is_stored_than_there_is_room_for() {
    let (mut rig, clock) = rig(1_000);
    let value = "v".repeat(300);
    let set = |key| format!("SET {key} {value} EX 1");
    let (a, b, c) = (set("a"), set("b"), set("c"));
    let said = ask(&mut rig, 1_000, &[&a, &b, &c, "DEL a", &c, &b]);
    assert!(
        said.starts_with("+OK\r\n+OK\r\n-OOM ") && said.ends_with(":1\r\n+OK\r\n+OK\r\n"),
        "{said}"
    );
    // What has expired makes room when its stripe is looked at.
    clock.advance_to(Time::from_secs(2));
    assert_eq!(ask(&mut rig, 1_001, &["GET b", "GET c", &a]), "$-1\r\n$-1\r\n+OK\r\n");
    rig.finish();
}
