//! Files over HTTP.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Time, VirtualClock};
use rheostat_serve::ListenerConfig;
use rheostat_serve::http::{Http, HttpConfig};
use rheostat_tcp::CloseReason;
use tempfile::TempDir;

use crate::rig::{Client, PORT, Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// A directory with some files, beside one that is not to be reached.
pub(crate) fn tree() -> TempDir {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("index.html"), "<p>index").unwrap();
    std::fs::write(root.join("a.txt"), "0123456789").unwrap();
    std::fs::write(root.join("sub/b c"), "beneath").unwrap();
    std::fs::write(outer.path().join("secret"), "secret").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("a.txt", root.join("inner")).unwrap();
    outer
}

/// Long after the files of tests are written.
pub(crate) const NOW: Time = Time::from_secs(4_000_000_000);

pub(crate) fn config(tree: &TempDir, is_writable: bool) -> HttpConfig {
    HttpConfig { writable: is_writable, ..HttpConfig::new(tree.path().join("root")) }
}

/// A service of these files at [`NOW`], and its clock.
pub(crate) fn rig_of(config: HttpConfig) -> (Rig, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::new());
    clock.advance_to(NOW);
    let listener = ListenerConfig {
        request_timeout: Some(Duration::from_secs(30)),
        ..ListenerConfig::new(PORT)
    };
    let app = Http::new(config, clock.clone()).unwrap();
    (Rig::new(app, Plan { listener, ..Plan::default() }), clock)
}

fn rig(tree: &TempDir, is_writable: bool) -> Rig {
    rig_of(config(tree, is_writable)).0
}

/// What comes back for these bytes, and the client.
pub(crate) fn talk(rig: &mut Rig, port: u16, text: &[u8]) -> (String, Client) {
    let mut client = [rig.connect(port)];
    client[0].outgoing = text.to_vec();
    rig.pass(&mut client, SECOND);
    let [client] = client;
    (String::from_utf8_lossy(&client.received).into_owned(), client)
}

/// Requests, one after the other without waiting, and the status and body of each reply.
fn exchange(rig: &mut Rig, port: u16, requests: &[&str]) -> Vec<(u16, String)> {
    let text: String =
        requests.iter().map(|line| format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
    let (replies, client) = talk(rig, port, text.as_bytes());
    assert!(!client.peer_finished, "the connection is kept");
    split(&replies, &requests.iter().map(|line| line.starts_with("HEAD")).collect::<Vec<_>>())
}

pub(crate) fn split(mut text: &str, without_body: &[bool]) -> Vec<(u16, String)> {
    let mut replies = Vec::new();
    while !text.is_empty() {
        let (head, rest) = text.split_once("\r\n\r\n").expect("a whole head");
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or("0")
        };
        let is_without = without_body.get(replies.len()).copied().unwrap_or_default();
        let len = if is_without { 0 } else { field("Content-Length:").parse().unwrap() };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        replies.push((status, rest[..len].to_owned()));
        text = &rest[len..];
    }
    replies
}

#[test]
fn files_are_delivered_in_the_order_of_the_requests() {
    let tree = tree();
    let mut rig = rig(&tree, false);
    let requests = [
        "GET /a.txt",
        "GET /",
        "HEAD /a.txt",
        "GET /sub/b%20c",
        "GET /inner",
        "GET /none",
        "GET /sub",
    ];
    let ok = |text: &str| (200, text.to_owned());
    let expected = [
        ok("0123456789"),
        ok("<p>index"),
        ok(""),
        ok("beneath"),
        ok("0123456789"),
        (404, "Not Found\n".to_owned()),
        (301, "Moved Permanently\n".to_owned()),
    ];
    assert_eq!(exchange(&mut rig, 1_000, &requests), expected);
    rig.finish();
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let tree = tree();
    let mut rig = rig(&tree, true);
    let requests = ["GET /../secret", "GET /link", "GET /sub/../../secret", "GET /%2e%2e/secret"];
    for (n, (status, body)) in exchange(&mut rig, 1_000, &requests).into_iter().enumerate() {
        assert!(status == 403 && !body.contains("secret"), "{}: {status}", requests[n]);
    }
    let put = b"PUT /../secret HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nnew";
    let (reply, _) = talk(&mut rig, 1_001, put);
    assert!(reply.starts_with("HTTP/1.1 403 "), "{reply}");
    assert_eq!(std::fs::read(tree.path().join("secret")).unwrap(), b"secret");
    rig.finish();
}

#[test]
fn parts_of_files_are_delivered() {
    let tree = tree();
    let mut rig = rig(&tree, false);
    for (port, range, start, body) in [
        (1_000, "bytes=2-4", "HTTP/1.1 206 ", "234"),
        (1_001, "bytes=-3", "HTTP/1.1 206 ", "789"),
        (1_002, "bytes=20-", "HTTP/1.1 416 ", "Range Not Satisfiable\n"),
    ] {
        let text = format!("GET /a.txt HTTP/1.1\r\nHost: x\r\nRange: {range}\r\n\r\n");
        let (reply, _) = talk(&mut rig, port, text.as_bytes());
        assert!(reply.starts_with(start) && reply.ends_with(&format!("\r\n\r\n{body}")), "{reply}");
        assert!(reply.contains("Content-Range: bytes "), "{reply}");
    }
    rig.finish();
}

#[test]
fn a_long_file_arrives_as_it_is_and_one_that_shrinks_resets() {
    let tree = tree();
    let data: Vec<u8> =
        (0..3_000_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 9) as u8).collect();
    let path = tree.path().join("root/long");
    std::fs::write(&path, &data).unwrap();
    let mut rig = rig(&tree, false);
    let request = b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut client = [rig.connect(1_000)];
    client[0].outgoing = request.to_vec();
    rig.run_until(&mut client, 60 * SECOND, |all| all[0].peer_finished);
    let start = client[0].received.len() - data.len();
    assert!(
        client[0].received[start..] == data && client[0].received[..start].ends_with(b"\r\n\r\n")
    );
    client[0].reads = false;
    let mut client = [rig.connect(1_001)];
    client[0].reads = false;
    client[0].outgoing = request.to_vec();
    rig.pass(&mut client, SECOND);
    std::fs::write(&path, "").unwrap();
    client[0].reads = true;
    rig.pass(&mut client, 10 * SECOND);
    assert_eq!(client[0].closed, Some(CloseReason::Reset));
    rig.finish();
}

#[test]
fn files_are_put_when_that_is_permitted_and_only_whole_ones() {
    let tree = tree();
    let root = tree.path().join("root");
    let mut rig = rig(&tree, true);
    let data: Vec<u8> =
        (0..500_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 9) as u8).collect();
    let head = |expects: &str| {
        format!("PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{expects}\r\n", data.len())
            .into_bytes()
    };
    // The client waits to be told to go on.
    let mut client = [rig.connect(1_000)];
    client[0].outgoing = head("Expect: 100-continue\r\n");
    rig.pass(&mut client, SECOND);
    assert_eq!(client[0].received, b"HTTP/1.1 100 Continue\r\n\r\n");
    client[0].outgoing = [&data[..], b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
    rig.pass(&mut client, 5 * SECOND);
    let text = String::from_utf8_lossy(&client[0].received[25..]).into_owned();
    let statuses: Vec<_> = split(&text, &[]).into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, [201, 200]);
    assert!(std::fs::read(root.join("up")).unwrap() == data);
    let (reply, _) =
        talk(&mut rig, 1_001, b"PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nnew");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    let (reply, _) =
        talk(&mut rig, 1_002, b"PUT /none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 201 "), "{reply}");
    // One that ends half way leaves nothing.
    let mut client = [rig.connect(1_003)];
    client[0].outgoing = [&head("")[..], &data[..1_000]].concat();
    rig.pass(&mut client, SECOND);
    client[0].tcp.abort();
    rig.pass(&mut client, SECOND);
    assert_eq!(std::fs::read(root.join("up")).unwrap(), b"new");
    let names = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden = names.filter(|name| name.to_string_lossy().starts_with('.')).count();
    assert_eq!(hidden, 0);
    rig.finish();
}

#[test]
fn what_is_not_served_is_refused() {
    let tree = tree();
    let mut rig = rig(&tree, false);
    for (port, request, status) in [
        (1_000, "PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nnew", "405"),
        (1_001, "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "501"),
        (1_006, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
        (1_002, "GET\0", "400"),
        (1_003, "GET / HTTP/9.9\r\n\r\n", "505"),
        (1_004, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\nbody", "413"),
    ] {
        let (reply, client) = talk(&mut rig, port, request.as_bytes());
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {reply}");
        assert!(client.peer_finished && client.closed.is_none(), "closed in good order");
    }
    let (reply, client) = talk(&mut rig, 1_005, b"GET /a.txt HTTP/1.0\r\n\r\n");
    assert!(reply.ends_with("0123456789") && client.peer_finished, "{reply}");
    rig.finish();
}

#[test]
fn a_connection_of_http_1_0_is_kept_if_the_client_asks_and_is_told_so() {
    let tree = tree();
    let mut rig = rig(&tree, true);
    let asking = b"GET /a.txt HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
    let (replies, client) = talk(&mut rig, 1_000, &asking.repeat(2));
    assert_eq!(replies.matches("\r\nConnection: keep-alive\r\n").count(), 2, "{replies}");
    assert!(!client.peer_finished);
    let (reply, client) = talk(&mut rig, 1_001, b"GET /a.txt HTTP/1.0\r\n\r\n");
    assert!(client.peer_finished && reply.contains("\r\nConnection: close\r\n"), "{reply}");
    // An upload always ends one.
    let put = b"PUT /n HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
    let (reply, client) = talk(&mut rig, 1_002, put);
    assert!(client.peer_finished && reply.contains("\r\nConnection: close\r\n"), "{reply}");
    let (reply, _) = talk(&mut rig, 1_003, b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(!reply.contains("Connection:"), "{reply}");
    rig.finish();
}
