//! Requests made up by chance from valid ones: each is read or refused, and a server that gets them goes on.
//!
//! Timed: threads, sockets.

use std::io::{BufRead, BufReader, Write};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

/// The variable that sets how many requests are made up.
const COUNT: &str = "RHEO_HOSTILE_REQUESTS";
/// One in so many is sent to a server.
const SENT: u64 = 20;

const SEEDS: [&str; 14] = [
    r#"{"command":"status"}"#,
    r#"{"command":"hello"}"#,
    r#"{"command":"keep"}"#,
    r#"{"command":"stop"}"#,
    r#"{"command":"config"}"#,
    r#"{"command":"delete_flows","filter":"host 10.0.0.7"}"#,
    r#"{"command":"table","device":"lan","entries":[0,1,1,0]}"#,
    r#"{"command":"table","device":"lan","shuffle":{"seed":7,"times":3,"pause_ms":10}}"#,
    r#"{"command":"backend","service":"web","backend":"10.0.0.2","health":"draining"}"#,
    r#"{"command":"capture","device":"lan","before":true,"filter":"tcp port 443","count":3,"snaplen":96}"#,
    r#"{"command":"trace","filter":"host 10.0.0.7","count":3}"#,
    r#"{"command":"explain","policy":"rsspp","over_ms":100,"sample":1000}"#,
    r#"{"command":"profile","over_ms":100}"#,
    r#"{"command":"connections","states":["established"],"local_port":80,"limit":4294967295}"#,
];

/// Text that parsers stumble over.
const HOSTILE: [&str; 14] = [
    "[",
    "{",
    "}",
    "]",
    "\"",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-1",
    "18446744073709551616",
    "null",
    "\u{1b}]0;x\u{7}",
    "\u{202e}",
    "{\"command\":\"status\"}",
];

/// A request made of a valid one by a few changes; without line ends.
fn made_up(rng: &mut SmallRng) -> Vec<u8> {
    let mut line = SEEDS[rng.random_range(0..SEEDS.len())].as_bytes().to_vec();
    for _ in 0..rng.random_range(0..6) {
        let place = rng.random_range(0..=line.len());
        match rng.random_range(0..7) {
            0 => line.truncate(place),
            1 => line.insert(place, rng.random()),
            2 if place < line.len() => line[place] = rng.random(),
            3 if place < line.len() => drop(line.remove(place)),
            4 => {
                let text = HOSTILE[rng.random_range(0..HOSTILE.len())].as_bytes();
                line.splice(place..place, text.iter().copied());
            }
            5 => {
                // Deeper than any stack, now and then.
                let text = HOSTILE[rng.random_range(0..2)].repeat(rng.random_range(0..200));
                line.splice(place..place, text.bytes());
            }
            _ => line.extend_from_within(..place),
        }
    }
    line.retain(|byte| *byte != b'\n');
    line
}

/// Whether a request is answered at once by an instance without lanes.
fn is_short(request: &Request) -> bool {
    matches!(
        request,
        Request::Status
            | Request::Keep
            | Request::Backend { .. }
            | Request::Hello
            | Request::Config
    )
}

#[test]
fn requests_made_up_by_chance_are_read_or_refused() {
    let count = std::env::var(COUNT).map_or(100_000, |text| text.parse().expect("a number"));
    let (_server, interrupted, path, _folder) = serve();
    let mut stream = connect(&path);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut rng = SmallRng::seed_from_u64(43);
    let (mut read, mut refused, mut sent) = (0_u64, 0_u64, 0_u64);
    for number in 0..count {
        let line = made_up(&mut rng);
        let text = String::from_utf8_lossy(&line);
        let is_sent = match control::parse(&text) {
            Ok(request) => {
                read += 1;
                let again = control::parse(control::line(&request).trim_end());
                assert_eq!(again.as_ref(), Ok(&request), "{text}");
                is_short(&request)
            }
            Err(Reply::Error { message }) => {
                refused += 1;
                assert!(message.len() <= 4_096, "{} bytes about {text}", message.len());
                true
            }
            Err(reply) => panic!("{text}: {reply:?}"),
        };
        if is_sent && number % SENT == 0 {
            sent += 1;
            stream.write_all(&line).unwrap();
            stream.write_all(b"\n").unwrap();
            let mut answer = String::new();
            reader.read_line(&mut answer).unwrap();
            serde_json::from_str::<Reply>(&answer)
                .unwrap_or_else(|error| panic!("{error}: {text}: {answer}"));
        }
    }
    // The generator makes both kinds.
    assert!(
        read > count / 20 && refused > count / 2 && sent > count / 50,
        "{read} {refused} {sent}"
    );
    assert!(!interrupted.load(Ordering::Relaxed), "no request to stop was sent");
    assert!(ask(&mut stream, r#"{"command":"status"}"#).contains(r#""reply":"status""#));
}
