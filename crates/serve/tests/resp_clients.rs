//! The store of keys and values, as programs of Redis use it: what they ask at the start, both protocols, long values.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::VirtualClock;
use rheostat_serve::ServeConfig;
use rheostat_serve::resp::{Resp, RespConfig};

use crate::rig::{Client, Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);

fn rig(config: RespConfig) -> Rig {
    let limits = ServeConfig { longest_request: 16 << 20, ..ServeConfig::default() };
    let app = Resp::new(config, Arc::new(VirtualClock::new()));
    Rig::new(app, Plan { limits, ..Plan::default() })
}

/// A connection.
struct Asking {
    client: [Client; 1],
}

impl Asking {
    fn connect(rig: &mut Rig, port: u16) -> Asking {
        Asking { client: [rig.connect(port)] }
    }

    /// The reply to a command, or to several lines.
    fn ask(&mut self, rig: &mut Rig, lines: &str) -> String {
        String::from_utf8(self.ask_bytes(rig, format!("{lines}\r\n").into_bytes())).unwrap()
    }

    fn ask_bytes(&mut self, rig: &mut Rig, bytes: Vec<u8>) -> Vec<u8> {
        let [client] = &mut self.client;
        client.received.clear();
        client.outgoing = bytes;
        rig.pass(&mut self.client, SECOND / 5);
        self.client[0].received.clone()
    }

    fn is_ended(&self) -> bool {
        self.client[0].peer_finished
    }
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn a_client_chooses_its_protocol() {
    let mut rig = rig(RespConfig::new(1 << 20));
    let mut one = Asking::connect(&mut rig, 1_000);
    let hello = one.ask(&mut rig, "HELLO");
    assert!(hello.starts_with("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{hello}");
    assert!(hello.contains("$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n"), "{hello}");
    assert_eq!(one.ask(&mut rig, "GET none"), "$-1\r\n");
    // The reply is in the new protocol, and so are those behind it, also to commands sent along.
    let replies =
        one.ask(&mut rig, "HELLO 3 SETNAME me\r\nGET none\r\nMGET none none\r\nSET a 1 XX");
    assert!(replies.starts_with("%7\r\n$6\r\nserver\r\n"), "{replies}");
    assert!(replies.contains("$5\r\nproto\r\n:3\r\n"), "{replies}");
    assert!(replies.ends_with("*0\r\n_\r\n*2\r\n_\r\n_\r\n_\r\n"), "{replies}");
    assert_eq!(one.ask(&mut rig, "CLIENT GETNAME"), "$2\r\nme\r\n");
    assert!(one.ask(&mut rig, "CONFIG GET save").starts_with("%1\r\n$4\r\nsave\r\n$0\r\n"));
    assert!(one.ask(&mut rig, "INFO server").starts_with('='), "a verbatim string");
    assert!(one.ask(&mut rig, "COMMAND DOCS get").starts_with("%1\r\n$3\r\nget\r\n%3\r\n"));
    assert!(one.ask(&mut rig, "COMMAND INFO get").contains("~2\r\n+readonly\r\n+fast\r\n"));
    // Another connection has its own.
    let mut other = Asking::connect(&mut rig, 1_001);
    assert_eq!(other.ask(&mut rig, "GET none"), "$-1\r\n");
    assert!(one.ask(&mut rig, "HELLO 2").starts_with("*14\r\n"));
    assert_eq!(one.ask(&mut rig, "GET none"), "$-1\r\n");
    one.ask(&mut rig, "HELLO 3");
    assert_eq!(
        one.ask(&mut rig, "RESET\r\nGET none\r\nCLIENT GETNAME"),
        "+RESET\r\n$-1\r\n$-1\r\n"
    );
    rig.finish();
}

#[test]
fn a_hello_that_cannot_be_answered_changes_nothing() {
    let mut rig = rig(RespConfig::new(1 << 20));
    let mut one = Asking::connect(&mut rig, 1_000);
    for (line, start) in [
        ("HELLO 4", "-NOPROTO "),
        ("HELLO x", "-ERR Protocol version"),
        ("HELLO 3 AUTH default secret", "-ERR AUTH"),
        ("HELLO 3 AUTH default", "-ERR syntax"),
        ("HELLO 3 SETNAME", "-ERR syntax"),
        ("HELLO 3 SETNAME a SETNAME \u{fc}", "-ERR Client names"),
        ("HELLO 3 BREW", "-ERR syntax"),
        ("AUTH secret", "-ERR AUTH"),
        ("AUTH default secret", "-ERR AUTH"),
    ] {
        let reply = one.ask(&mut rig, line);
        assert!(reply.starts_with(start), "{line}: {reply}");
    }
    assert_eq!(one.ask(&mut rig, "GET none\r\nCLIENT GETNAME"), "$-1\r\n$-1\r\n");
    rig.finish();
}

#[test]
fn clients_have_numbers_names_and_a_list() {
    let mut rig = rig(RespConfig::new(1 << 20));
    let (mut one, mut two) = (Asking::connect(&mut rig, 1_000), Asking::connect(&mut rig, 1_001));
    assert_eq!(one.ask(&mut rig, "CLIENT ID"), ":1\r\n");
    assert_eq!(two.ask(&mut rig, "CLIENT ID"), ":2\r\n");
    let lines = "CLIENT SETNAME first\r\nCLIENT SETINFO LIB-NAME lib\r\nclient setinfo lib-ver 1.2";
    assert_eq!(one.ask(&mut rig, lines), "+OK\r\n+OK\r\n+OK\r\n");
    let expected =
        "id=1 addr=10.0.0.2:1000 name=first age=0 flags=N db=0 resp=2 lib-name=lib lib-ver=1.2\n";
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    assert_eq!(one.ask(&mut rig, "CLIENT INFO"), bulk(expected));
    assert_eq!(two.ask(&mut rig, "CLIENT LIST ID 1 7"), bulk(expected));
    assert_eq!(two.ask(&mut rig, "CLIENT LIST").matches("id=").count(), 2);
    assert_eq!(two.ask(&mut rig, "CLIENT LIST TYPE replica"), "$0\r\n\r\n");
    assert_eq!(two.ask(&mut rig, "CLIENT NO-EVICT ON"), "+OK\r\n");
    for (line, start) in [
        ("CLIENT", "-ERR wrong number of arguments for 'client'"),
        ("CLIENT ID 1", "-ERR wrong number"),
        ("CLIENT BREW", "-ERR unknown subcommand 'BREW'"),
        ("CLIENT SETINFO BREW x", "-ERR Unrecognized option"),
        ("CLIENT LIST BREW", "-ERR syntax"),
    ] {
        let reply = two.ask(&mut rig, line);
        assert!(reply.starts_with(start), "{line}: {reply}");
    }
    one.client[0].finishes = true;
    rig.pass(&mut one.client, SECOND);
    assert_eq!(two.ask(&mut rig, "CLIENT LIST").matches("id=").count(), 1, "one has gone");
    assert!(two.ask(&mut rig, "INFO clients").contains("connected_clients:1\r\n"));
    rig.finish();
}

#[test]
fn programs_find_what_they_ask_at_the_start() {
    let mut rig = rig(RespConfig::new(1 << 20));
    let mut one = Asking::connect(&mut rig, 1_000);
    assert_eq!(one.ask(&mut rig, "SELECT 0"), "+OK\r\n");
    assert_eq!(one.ask(&mut rig, "SELECT 1"), "-ERR DB index is out of range\r\n");
    let all = one.ask(&mut rig, "INFO");
    for wanted in ["redis_version:7", "loading:0", "role:master", "maxmemory:1048576", "# Clients"]
    {
        assert!(all.contains(wanted), "{wanted}: {all}");
    }
    assert!(!all.contains("db0:"));
    one.ask(&mut rig, "SET a 1");
    assert_eq!(one.ask(&mut rig, "INFO keyspace"), "$24\r\n# Keyspace\r\ndb0:keys=1\r\n\r\n");
    assert_eq!(one.ask(&mut rig, "INFO brew"), "$0\r\n\r\n");
    let settings = "*4\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n";
    assert_eq!(one.ask(&mut rig, "CONFIG GET MAXMEM*"), settings);
    assert_eq!(one.ask(&mut rig, "CONFIG GET brew"), "*0\r\n");
    assert!(one.ask(&mut rig, "CONFIG SET save x").starts_with("-ERR unknown subcommand 'SET'"));
    let count = one.ask(&mut rig, "COMMAND COUNT");
    assert!(count.starts_with(':'), "{count}");
    let number = &count[1..count.len() - 2];
    assert!(one.ask(&mut rig, "COMMAND").starts_with(&format!("*{number}\r\n*10\r\n")));
    assert!(
        one.ask(&mut rig, "COMMAND LIST").starts_with(&format!("*{number}\r\n$6\r\nappend\r\n"))
    );
    let info = "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n*-1\r\n";
    assert_eq!(one.ask(&mut rig, "COMMAND INFO GET brew"), info);
    rig.finish();
}

#[test]
fn strings_and_keys_have_the_rest_of_their_commands() {
    let mut rig = rig(RespConfig::new(1 << 20));
    let mut one = Asking::connect(&mut rig, 1_000);
    for (line, expected) in [
        ("SETNX a 1", ":1\r\n"),
        ("SETNX a 2", ":0\r\n"),
        ("GET a", "$1\r\n1\r\n"),
        ("APPEND a 23", ":3\r\n"),
        ("APPEND b xy", ":2\r\n"),
        ("MGET a b", "*2\r\n$3\r\n123\r\n$2\r\nxy\r\n"),
        ("STRLEN a", ":3\r\n"),
        ("STRLEN none", ":0\r\n"),
        ("EXISTS a a none b", ":3\r\n"),
        ("TYPE a", "+string\r\n"),
        ("TYPE none", "+none\r\n"),
        ("SETEX c 10 v", "+OK\r\n"),
        ("TTL c", ":10\r\n"),
        ("APPEND c w", ":2\r\n"),
        ("TTL c", ":10\r\n"),
        ("PSETEX c 0 v", "-ERR value is not an integer or out of range\r\n"),
        ("UNLINK c none", ":1\r\n"),
        ("FLUSHALL BREW", "-ERR syntax error\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("FLUSHDB ASYNC", "+OK\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("INCR a", ":1\r\n"),
        ("SETNX a", "-ERR wrong number of arguments for 'setnx' command\r\n"),
    ] {
        assert_eq!(one.ask(&mut rig, line), expected, "{line}");
    }
    rig.finish();
}

#[test]
fn what_is_removed_at_once_gives_its_memory_back() {
    let mut rig = rig(RespConfig::new(10_000));
    let mut one = Asking::connect(&mut rig, 1_000);
    let value = "v".repeat(3_000);
    for _ in 0..3 {
        for key in ["a", "b", "c"] {
            assert_eq!(one.ask(&mut rig, &format!("SET {key} {value} EX 100")), "+OK\r\n");
        }
        assert!(one.ask(&mut rig, &format!("SET d {value}")).starts_with("-OOM "));
        assert!(one.ask(&mut rig, &format!("APPEND a {value}")).starts_with("-OOM "));
        assert!(one.ask(&mut rig, "STRLEN a") == ":3000\r\n", "as it was");
        one.ask(&mut rig, "FLUSHALL");
        assert!(one.ask(&mut rig, "INFO memory").contains("used_memory:0\r\n"));
    }
    // A long value, which replies share with the store.
    one.ask(&mut rig, &format!("SET a {value}"));
    assert_eq!(one.ask(&mut rig, "APPEND a tail"), ":3004\r\n");
    assert_eq!(one.ask(&mut rig, "GET a"), format!("$3004\r\n{value}tail\r\n"));
    assert_eq!(one.ask(&mut rig, "GETx\r\nAPPEND a more").lines().last(), Some(":3008"));
    assert_eq!(one.ask(&mut rig, "DEL a"), ":1\r\n");
    assert!(one.ask(&mut rig, "INFO memory").contains("used_memory:0\r\n"));
    rig.finish();
}

#[test]
fn long_values_have_a_bound_of_their_own() {
    let config = RespConfig { longest_value: 2_000_000, ..RespConfig::new(64 << 20) };
    let mut rig = rig(config);
    let mut one = Asking::connect(&mut rig, 1_000);
    let value: Vec<u8> =
        (0..2_000_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 9) as u8).collect();
    let replies = {
        one.client[0].outgoing = command(&[b"SET", b"a", &value]);
        one.client[0].received.clear();
        rig.pass(&mut one.client, 20 * SECOND);
        one.client[0].received.clone()
    };
    assert_eq!(replies, b"+OK\r\n");
    one.client[0].received.clear();
    one.client[0].outgoing = command(&[b"GET", b"a"]);
    rig.pass(&mut one.client, 20 * SECOND);
    let reply = &one.client[0].received;
    assert!(reply.starts_with(b"$2000000\r\n") && reply[10..2_000_010] == value);
    assert!(
        one.ask(&mut rig, "APPEND a x").starts_with("-ERR string exceeds maximum allowed size")
    );
    assert_eq!(one.ask(&mut rig, "STRLEN a"), ":2000000\r\n");
    assert!(one.ask(&mut rig, "CONFIG GET proto-max-bulk-len").contains("2000000"));
    // It is told so, before the value arrives.
    let reply = one.ask_bytes(&mut rig, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2000001\r\n".to_vec());
    assert_eq!(reply, b"-ERR Protocol error: invalid bulk length\r\n");
    assert!(one.is_ended());
    // A command with several values has a bound, too.
    let mut two = Asking::connect(&mut rig, 1_001);
    let long = vec![b'x'; 1_500_000];
    two.client[0].outgoing = command(&[b"MSET", b"a", &long, b"b", &long, b"c", &long]);
    rig.pass(&mut two.client, 20 * SECOND);
    assert_eq!(two.client[0].received, b"-ERR Protocol error: too long command\r\n");
    assert!(two.is_ended());
    rig.finish();
}
