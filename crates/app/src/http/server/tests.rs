//! Timed: clock, sleep, sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::http::counted::Counted;

/// A feed that nobody waits for long.
const FAST: Pace = Pace { tick: Duration::from_millis(20), stall: Duration::from_secs(60) };

fn server() -> (HttpServer, SocketAddr, Arc<Counted>) {
    server_at("127.0.0.1:0", FAST)
}

fn server_at(address: &str, pace: Pace) -> (HttpServer, SocketAddr, Arc<Counted>) {
    let listener = HttpListener::bind(address.parse().unwrap(), &[]).unwrap();
    let (address, instance) = (listener.address().unwrap(), Arc::new(Counted::default()));
    (HttpServer::start_at(listener, instance.clone(), pace).unwrap(), address, instance)
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
    assert_eq!(instance.asked(), 0, "nobody got metrics");
}

#[test]
fn ten_thousand_scrapes_seldom_ask_lanes() {
    let (_server, address, instance) = server();
    let start = Instant::now();
    // A connection has a bound, too, which a busy machine may reach.
    for _ in 0..100 {
        let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
        for _ in 0..100 {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            let (mut length, mut line) = (0, String::new());
            while line != "\r\n" {
                line.clear();
                assert_ne!(stream.read_line(&mut line).unwrap(), 0, "closed in between");
                let known = line.strip_prefix("content-length: ");
                length = known.map_or(length, |known| known.trim().parse().unwrap());
            }
            let mut page = vec![0; length];
            stream.read_exact(&mut page).unwrap();
            assert!(page.ends_with(b"rheo_tcp_total{object=\"tcpInSegs\"} 7\n"));
        }
    }
    let most = start.elapsed().as_millis() as u64 / FRESH.as_millis() as u64 + 1;
    assert!(instance.asked() <= most, "asked {} times, {most} at most", instance.asked());
}

#[test]
fn the_page_comes_with_a_policy_under_which_nothing_else_is_loaded() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (_server, address, _) = server_at(address, FAST);
        for path in ["/", "/live.css", "/live.js", "/plots.js", "/icon.svg", "/config"] {
            let reply = get(address, path, "");
            let (head, body) = reply.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !body.is_empty(), "{path}: {head}");
            for header in [
                "content-security-policy: default-src 'none'; script-src 'self';",
                "x-content-type-options: nosniff",
                "cache-control: no-store",
                "referrer-policy: no-referrer",
            ] {
                assert!(head.contains(header), "{path}: {header} is missing in {head}");
            }
            assert!(!head.contains("access-control-"), "{head}");
        }
        let unknown = get(address, "/metric", "");
        assert!(unknown.starts_with("HTTP/1.1 404 "), "{unknown}");
        for path in [" / ", "/metrics", "/config", "/events"] {
            assert!(unknown.contains(path), "{path}: {unknown}");
        }
    }
}

#[test]
fn a_head_has_no_body_and_ends() {
    let (_server, address, _) = server();
    for path in ["/", "/metrics", "/events", "/config"] {
        let request =
            format!("HEAD {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let reply = ask(address, &request);
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\n"), "{reply}");
    }
}

/// A client of the feed, and the status of its reply.
fn listen(address: SocketAddr, headers: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut status = String::new();
    stream.read_line(&mut status).unwrap();
    let status = status.split(' ').nth(1).unwrap().to_owned();
    (stream, status)
}

/// The next line of a feed that begins so.
fn next_line(feed: &mut BufReader<TcpStream>, beginning: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(feed.read_line(&mut line).unwrap(), 0, "the feed has ended");
        if line.starts_with(beginning) {
            return line;
        }
    }
}

#[test]
fn a_listener_gets_the_state_and_then_updates_also_when_it_comes_again() {
    let (server, address, _) = server();
    for again in ["", "Last-Event-ID: 3\r\n"] {
        let (mut feed, status) = listen(address, again);
        assert_eq!(status, "200");
        assert_eq!(next_line(&mut feed, "content-type"), "content-type: text/event-stream\r\n");
        assert_eq!(next_line(&mut feed, "retry"), "retry: 2000\n");
        assert_eq!(next_line(&mut feed, "event"), "event: state\n");
        assert!(next_line(&mut feed, "data").contains("\"history\""));
        let number = |line: String| line[4..].trim().parse::<u64>().unwrap();
        let first = number(next_line(&mut feed, "id"));
        assert_eq!(next_line(&mut feed, "event"), "event: update\n");
        assert!(next_line(&mut feed, "data").contains("\"uptime\""));
        assert_eq!(number(next_line(&mut feed, "id")), first + 1, "none is left out");
    }
    let (mut feed, _) = listen(address, "");
    drop(server);
    // Reset or closed: either is an end.
    let _ = feed.read_to_end(&mut Vec::new());
}

#[test]
fn a_hundred_listeners_are_bounded_and_cost_no_more_than_one() {
    let (_server, address, instance) = server();
    let mut clients: Vec<_> = (0..100).map(|_| listen(address, "")).collect();
    let served = clients.iter().filter(|(_, status)| status == "200").count();
    assert_eq!(served, LISTENERS);
    assert!(clients.iter().all(|(_, status)| ["200", "503"].contains(&status.as_str())));
    // Scrapers have places of their own.
    assert!(get(address, "/metrics", "").starts_with("HTTP/1.1 200"));
    let number = |line: String| line[4..].trim().parse::<u64>().unwrap();
    clients.retain(|(_, status)| status == "200");
    let last = clients.iter_mut().map(|(feed, _)| number(next_line(feed, "id"))).max();
    // One scrape beside one snapshot for each update: the numbers of updates count them from the start.
    let (feed, _) = &mut clients[0];
    let asked = instance.asked();
    while number(next_line(feed, "id")) <= last.unwrap() {}
    let updates = number(next_line(feed, "id"));
    assert!(asked <= updates + 1, "asked {asked} times for {updates} updates");
    // A place is free again once its client has gone.
    clients.pop();
    let is_served = |_| {
        std::thread::sleep(Duration::from_millis(10));
        listen(address, "").1 == "200"
    };
    assert!((0..6_000).any(is_served), "the place of a listener that left is taken");
}

#[test]
fn a_listener_that_takes_no_update_loses_its_connection() {
    // No update comes, so that none is taken.
    let pace = Pace { tick: Duration::from_secs(3_600), stall: Duration::from_millis(50) };
    let (_server, address, _) = server_at("127.0.0.1:0", pace);
    let (mut feed, status) = listen(address, "");
    assert_eq!(status, "200");
    let _ = feed.read_to_end(&mut Vec::new());
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
