//! A store of keys and values for clients of Redis. As root:
//!
//!     cargo run --release --example resp_store -- rheo0
//!     ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up && redis-cli -h 10.0.0.1 incr visits
//!
//! serves on a tap interface. Without arguments, a client of this process stores something.
//!
//! Timed: threads, clock.

use std::error::Error;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use rheostat::tcp::resp::{Resp, RespConfig};
use rheostat::tcp::{Clock, Server, with_client};

/// Keys and values of 64 MiB at most, which both lanes share.
fn store() -> Server {
    Server::new(Resp::new(RespConfig::new(64 << 20), Arc::new(Clock::new()))).listen(6379).lanes(2)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(interface) = std::env::args().nth(1) else {
        print!("{}", replies(store(), &["SET visits 41", "INCR visits", "GET visits"])?);
        return Ok(());
    };
    let running = store().tap(&interface).address("10.0.0.1/24".parse()?).start()?;
    println!("listening 10.0.0.1:6379; Enter ends it");
    std::io::stdin().read_line(&mut String::new())?;
    running.finish(Duration::from_secs(5))?;
    Ok(())
}

/// A command as RESP has it: an array of strings.
fn command(words: &str) -> String {
    let words: Vec<_> = words.split(' ').collect();
    let strings: String =
        words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{strings}", words.len())
}

/// What the store replies to commands that follow each other without waiting.
fn replies(server: Server, commands: &[&str]) -> Result<String, Box<dyn Error>> {
    let (running, client) = with_client(server, &[])?;
    let (mut stream, mut text) = (client.connect(6379)?, String::new());
    let all: String = commands.iter().map(|words| command(words)).collect();
    stream.write_all(all.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_string(&mut text)?;
    drop(stream);
    let reports = [client.finish(Duration::from_secs(5))?, running.finish(Duration::from_secs(5))?];
    assert!(reports.iter().all(|report| report.violations.is_empty()));
    Ok(text)
}

#[test]
fn values_are_set_counted_listed_and_deleted() {
    let commands =
        ["SET a 41", "INCR a", "GET a", "SET b x", "MGET a b c", "DEL a b c", "GET a", "INCR b"];
    let expected =
        "+OK\r\n:42\r\n$2\r\n42\r\n+OK\r\n*3\r\n$2\r\n42\r\n$1\r\nx\r\n$-1\r\n:2\r\n$-1\r\n:1\r\n";
    assert_eq!(replies(store(), &commands).unwrap(), expected);
}

#[test]
fn values_live_as_long_as_they_may() {
    let commands = ["SET a x", "TTL a", "EXPIRE a 1000", "TTL a", "EXPIRE a 0", "GET a"];
    let text = replies(store(), &commands).unwrap();
    let [set, forever, expires, left, gone, got, ..] = text.split("\r\n").collect::<Vec<_>>()[..]
    else {
        panic!("{text}")
    };
    assert_eq!([set, forever, expires, gone, got], ["+OK", ":-1", ":1", ":1", "$-1"]);
    assert!((1..=1_000).contains(&left[1..].parse::<u32>().unwrap()), "{left}");
}
