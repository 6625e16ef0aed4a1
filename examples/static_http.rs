//! The files of a directory over HTTP/1.1: ranges, kept connections, requests that do not wait for replies. As root:
//!
//!     cargo run --release --example static_http -- docs rheo0
//!     ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up && curl http://10.0.0.1/serve.md
//!
//! serves `docs` on a tap interface. With a directory alone, a client of this process asks for what is in it.
//!
//! Timed: threads, clock.

use std::error::Error;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use rheostat::tcp::http::{Http, HttpConfig};
use rheostat::tcp::{Server, WallClock, with_client};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().unwrap_or_else(|| "docs".to_owned());
    let files = Http::new(HttpConfig::new(root), Arc::new(WallClock))?;
    let server = Server::new(files).listen(80).lanes(2);
    let Some(interface) = arguments.next() else {
        let requests = "HEAD /serve.md HTTP/1.1\r\nHost: x\r\n\r\n\
                        GET /serve.md HTTP/1.1\r\nHost: x\r\nRange: bytes=0-19\r\nConnection: close\r\n\r\n";
        println!("{}", replies(server, &[requests])?);
        return Ok(());
    };
    let running = server.tap(&interface).address("10.0.0.1/24".parse()?).start()?;
    println!("listening 10.0.0.1:80; Enter ends it");
    std::io::stdin().read_line(&mut String::new())?;
    running.finish(Duration::from_secs(5))?;
    Ok(())
}

/// What the service replies on one connection to pieces that are written one after the other. The last request must end it.
fn replies(server: Server, pieces: &[&str]) -> Result<String, Box<dyn Error>> {
    let (running, client) = with_client(server, &[])?;
    let (mut stream, mut text) = (client.connect(80)?, String::new());
    for piece in pieces {
        stream.write_all(piece.as_bytes())?;
    }
    stream.read_to_string(&mut text)?;
    drop(stream);
    let reports = [client.finish(Duration::from_secs(5))?, running.finish(Duration::from_secs(5))?];
    assert!(reports.iter().all(|report| report.violations.is_empty()));
    Ok(text)
}

#[test]
fn requests_follow_each_other_on_a_kept_connection_and_ranges_are_cut_out() {
    let root = std::env::temp_dir().join(format!("static_http-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("digits"), "0123456789").unwrap();
    let files = Http::new(HttpConfig::new(&root), Arc::new(WallClock)).unwrap();
    let server = Server::new(files).listen(80);
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let pipelined = get("/digits", "") + &get("/digits", "Range: bytes=2-4\r\n") + "HEAD /dig";
    let rest =
        "its HTTP/1.1\r\nHost: x\r\n\r\n".to_owned() + &get("/none", "Connection: close\r\n");
    let text = replies(server, &[&pipelined, &rest]).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let statuses: Vec<_> = text.split("HTTP/1.1 ").skip(1).map(|reply| &reply[..3]).collect();
    assert_eq!(statuses, ["200", "206", "200", "404"], "{text}");
    let bodies: Vec<_> = text
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|reply| reply.split_once("\r\n\r\n").unwrap().1)
        .collect();
    assert_eq!(bodies[..3], ["0123456789", "234", ""], "{text}");
    assert!(text.to_ascii_lowercase().contains("content-range: bytes 2-4/10\r\n"), "{text}");
}
