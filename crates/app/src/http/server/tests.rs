//! Timed: clock, sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_observe::control::{Reply, Status};
use rheostat_observe::{Summary, control};
use rheostat_run::Sample;

use super::*;
use crate::control::Peer;

/// An instance that counts how often it is asked.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Answers for Counted {
    fn answer(&self, _request: control::Request, peer: &mut Peer) -> io::Result<()> {
        peer.send(&Reply::Stopping)
    }

    fn snapshot(&self) -> Snapshot {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        let status = Status {
            summary: Summary::so_far(&Sample { seconds: asked as f64, ..Sample::default() }),
            devices: Vec::new(),
            tcp: [("tcpInSegs".to_owned(), 7)].into(),
            service: Default::default(),
            application: Default::default(),
            missing_shards: 0,
            tcp_by: None,
            backends: Vec::new(),
        };
        Snapshot::of("1.2.3", status)
    }
}

fn server() -> (HttpServer, SocketAddr, Arc<Counted>) {
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap(), &[]).unwrap();
    let (address, instance) = (listener.address().unwrap(), Arc::new(Counted::default()));
    (HttpServer::start(listener, instance.clone()).unwrap(), address, instance)
}

/// The reply to a request, until the server closes.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"),
    )
}

#[test]
fn metrics_come_in_the_format_that_is_asked_for() {
    let (_server, address, _) = server();
    let older = get(address, "/metrics", "");
    assert!(older.starts_with("HTTP/1.1 200 OK\r\n"), "{older}");
    assert!(older.contains("content-type: text/plain; version=0.0.4"), "{older}");
    assert!(older.contains("rheo_tcp_total{object=\"tcpInSegs\"} 7\n"), "{older}");
    let openmetrics = get(address, "/metrics", "Accept: application/openmetrics-text\r\n");
    assert!(openmetrics.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(openmetrics.ends_with("# EOF\n"), "{openmetrics}");
}

#[test]
fn what_is_no_request_for_a_page_gets_a_status() {
    let (_server, address, instance) = server();
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "421"),
        (
            "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "421",
        ),
        (
            "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "405",
        ),
        ("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"),
        ("GET /metrics HTTP/1.0\r\n\r\n", "421"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let reply = ask(address, request);
        let found = reply.split(' ').nth(1);
        assert_eq!(found, Some(status), "{request}: {reply}");
    }
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(2 * HEAD));
    assert_eq!(ask(address, &long).split(' ').nth(1), Some("431"));
    assert_eq!(instance.0.load(Ordering::Relaxed), 0, "nobody got metrics");
}

#[test]
fn however_many_scrapes_come_lanes_are_seldom_asked() {
    let (_server, address, instance) = server();
    let start = Instant::now();
    for _ in 0..200 {
        assert!(get(address, "/metrics", "").ends_with("rheo_tcp_total{object=\"tcpInSegs\"} 7\n"));
    }
    let most = start.elapsed().as_millis() as u64 / FRESH.as_millis() as u64 + 1;
    let asked = instance.0.load(Ordering::Relaxed);
    assert!(asked <= most, "asked {asked} times, {most} at most");
}

#[test]
fn clients_that_send_nothing_wait_in_line_and_end_with_the_server() {
    let (server, address, _) = server();
    let silent: Vec<_> = (0..CLIENTS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(get(address, "/metrics", "").starts_with("HTTP/1.1 200"));
    let waiting: Vec<_> = (0..CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
    drop(server);
    for mut stream in silent.into_iter().chain(waiting) {
        // Reset or closed: either is an end.
        let _ = stream.read(&mut [0; 1]);
    }
    TcpStream::connect(address).unwrap_err();
}
