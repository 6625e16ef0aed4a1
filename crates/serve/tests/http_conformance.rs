//! Clauses of RFC 9110, 9111 and 9112 that a server of files is bound to; `docs/http.md` has the table.

use std::fs::FileTimes;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rheostat_base::ClockSource;
use rheostat_serve::http::HttpConfig;

use crate::http::{NOW, config, rig_of, split, talk, tree};
use crate::rig::{Client, Rig};

const SECOND: Duration = Duration::from_secs(1);
/// The time that the files of these tests were modified at, and its name.
const MODIFIED: Duration = Duration::from_nanos(784_111_777_000_000_005);
const MODIFIED_TEXT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Replies of one request each.
struct Asking {
    rig: Rig,
    port: u16,
}

impl Asking {
    fn of(config: HttpConfig) -> Asking {
        Asking { rig: rig_of(config).0, port: 1_000 }
    }

    /// The whole reply to a request with these fields.
    fn ask(&mut self, line: &str, fields: &str) -> String {
        self.send(format!("{line} HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes()).0
    }

    fn status(&mut self, line: &str, fields: &str) -> u16 {
        status(&self.ask(line, fields))
    }

    fn send(&mut self, bytes: &[u8]) -> (String, Client) {
        self.port += 1;
        talk(&mut self.rig, self.port, bytes)
    }
}

fn status(reply: &str) -> u16 {
    reply.split(' ').nth(1).unwrap_or("0").parse().unwrap()
}

/// The value of a header field.
fn field<'a>(reply: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = reply.split_once("\r\n\r\n").expect("a whole head");
    let value = |line: &'a str| {
        let (found, value) = line.split_once(": ")?;
        (found == name).then_some(value)
    };
    head.lines().find_map(value)
}

fn set_modified(path: &Path, since_1970: Duration) {
    let time = SystemTime::UNIX_EPOCH + since_1970;
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn every_reply_has_a_date() {
    let tree = tree();
    let mut asking = Asking::of(config(&tree, false));
    // RFC 9110, 6.6.1.
    let date = Some("Tue, 02 Oct 2096 07:06:40 GMT");
    for line in ["GET /a.txt", "HEAD /a.txt", "GET /none", "GET /sub", "PUT /x", "BREW /x"] {
        let reply = asking.ask(line, "");
        assert_eq!(field(&reply, "Date"), date, "{line}: {reply}");
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0", b"GET / HTTP/9.9\r\n\r\n"] {
        let (reply, _) = asking.send(bytes);
        assert_eq!(field(&reply, "Date"), date, "{reply}");
    }
    asking.rig.finish();
}

#[test]
fn files_have_validators_that_change_with_them() {
    let tree = tree();
    let path = tree.path().join("root/a.txt");
    set_modified(&path, MODIFIED);
    let mut asking = Asking::of(HttpConfig { cache_time: Duration::ZERO, ..config(&tree, false) });
    // RFC 9110, 8.8.2 and 8.8.3.
    let reply = asking.ask("GET /a.txt", "");
    assert_eq!(field(&reply, "Last-Modified"), Some(MODIFIED_TEXT));
    let tag = field(&reply, "ETag").unwrap();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "{tag}");
    assert_eq!(field(&asking.ask("HEAD /a.txt", ""), "ETag"), Some(tag));
    set_modified(&path, MODIFIED + Duration::from_nanos(1));
    let reply = asking.ask("GET /a.txt", "");
    assert_ne!(field(&reply, "ETag"), Some(tag));
    // 8.8.1: one that was modified within the last second may have another version with the same validators.
    set_modified(&path, NOW.since(rheostat_base::Time::ZERO));
    let tag = asking.ask("GET /a.txt", "");
    assert!(field(&tag, "ETag").unwrap().starts_with("W/\""), "{tag}");
    // 8.8.2.1: not in the future.
    set_modified(&path, NOW.since(rheostat_base::Time::ZERO) + 100 * SECOND);
    let reply = asking.ask("GET /a.txt", "");
    assert_eq!(field(&reply, "Last-Modified"), field(&reply, "Date"));
    asking.rig.finish();
}

#[test]
fn conditions_are_honoured() {
    let tree = tree();
    set_modified(&tree.path().join("root/a.txt"), MODIFIED);
    let mut asking = Asking::of(config(&tree, false));
    let first = asking.ask("GET /a.txt", "");
    let tag = field(&first, "ETag").unwrap().to_owned();
    let before = "Sun, 06 Nov 1994 08:49:36 GMT";
    for (fields, expected) in [
        // RFC 9110, 13.1.2, 13.1.3, 13.1.1, 13.1.4 and 13.2.2.
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: \"x\", W/{tag}\r\n"), 304),
        ("If-None-Match: *\r\n".to_owned(), 304),
        ("If-None-Match: \"x\"\r\n".to_owned(), 200),
        (format!("If-Modified-Since: {MODIFIED_TEXT}\r\n"), 304),
        (format!("If-Modified-Since: {before}\r\n"), 200),
        ("If-Modified-Since: now\r\n".to_owned(), 200),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {MODIFIED_TEXT}\r\n"), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: \"x\"\r\n".to_owned(), 412),
        (format!("If-Unmodified-Since: {before}\r\n"), 412),
        (format!("If-Unmodified-Since: {MODIFIED_TEXT}\r\n"), 200),
    ] {
        let reply = asking.ask("GET /a.txt", &fields);
        assert_eq!(status(&reply), expected, "{fields}: {reply}");
        assert_eq!(asking.status("HEAD /a.txt", &fields), expected, "{fields}");
        if expected == 304 {
            // 15.4.5: the validators, and no content; RFC 9112, 6.3: nor a length.
            assert_eq!(field(&reply, "ETag"), Some(&tag[..]));
            assert!(reply.ends_with("\r\n\r\n") && field(&reply, "Content-Length").is_none());
        }
        // 13.2.1: no condition counts where the reply is an error anyway.
        assert_eq!(asking.status("GET /none", &fields), 404, "{fields}");
    }
    asking.rig.finish();
}

#[test]
fn a_range_is_sent_of_the_version_that_the_client_has_only() {
    let tree = tree();
    set_modified(&tree.path().join("root/a.txt"), MODIFIED);
    let mut asking = Asking::of(config(&tree, false));
    let first = asking.ask("GET /a.txt", "");
    let tag = field(&first, "ETag").unwrap().to_owned();
    for (fields, expected, body) in [
        // RFC 9110, 13.1.5.
        (format!("If-Range: {tag}\r\n"), 206, "234"),
        (format!("If-Range: {MODIFIED_TEXT}\r\n"), 206, "234"),
        (format!("If-Range: W/{tag}\r\n"), 200, "0123456789"),
        ("If-Range: \"x\"\r\n".to_owned(), 200, "0123456789"),
        ("If-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n".to_owned(), 200, "0123456789"),
        // 13.2.2: conditions come before ranges.
        (format!("If-None-Match: {tag}\r\n"), 304, ""),
        ("If-Match: \"x\"\r\n".to_owned(), 412, "Precondition Failed\n"),
    ] {
        let reply = asking.ask("GET /a.txt", &format!("Range: bytes=2-4\r\n{fields}"));
        assert_eq!(status(&reply), expected, "{fields}: {reply}");
        assert!(reply.ends_with(&format!("\r\n\r\n{body}")), "{fields}: {reply}");
        assert_eq!(field(&reply, "Content-Range").is_some(), expected == 206, "{reply}");
    }
    // 14.2: no method but GET has ranges. 14.2: a condition without a range is ignored.
    let reply = asking.ask("HEAD /a.txt", "Range: bytes=2-4\r\n");
    assert_eq!((status(&reply), field(&reply, "Content-Length")), (200, Some("10")));
    assert_eq!(asking.status("GET /a.txt", "If-Range: \"x\"\r\n"), 200);
    // 15.5.17.
    let reply = asking.ask("GET /a.txt", "Range: bytes=10-\r\n");
    assert_eq!((status(&reply), field(&reply, "Content-Range")), (416, Some("bytes */10")));
    asking.rig.finish();
}

#[test]
fn targets_hosts_and_codings_are_those_of_the_standard() {
    let tree = tree();
    let mut asking = Asking::of(config(&tree, true));
    for (request, expected) in [
        // RFC 9112, 3.2.2: the absolute form.
        ("GET http://other/a.txt HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        ("GET http://other HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        ("GET a.txt HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        // 3.2: one host.
        ("GET /a.txt HTTP/1.1\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
        ("GET /a.txt HTTP/1.1\r\nHost: x/y\r\n\r\n", 400),
        ("GET http://other/a.txt HTTP/1.1\r\n\r\n", 400),
        // 6.1 and 6.3: bodies whose length is in doubt.
        ("PUT /n HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("PUT /n HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        // 5.1: no space before a colon; 5.2: no folded lines.
        ("GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400),
        // RFC 9110, 9.1: methods that are unknown, and those that are not allowed.
        ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405),
        ("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        // 14.5: a part of a file is not put.
        (
            "PUT /n HTTP/1.1\r\nHost: x\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n\r\na",
            400,
        ),
    ] {
        let (reply, client) = asking.send(request.as_bytes());
        assert_eq!(status(&reply), expected, "{request}: {reply}");
        assert_eq!(client.peer_finished, expected >= 400, "{request}");
    }
    let reply = asking.ask("DELETE /a.txt", "");
    assert_eq!(field(&reply, "Allow"), Some("GET, HEAD, PUT"), "RFC 9110, 15.5.6");
    asking.rig.finish();
}

#[test]
fn a_body_that_is_not_wanted_is_skipped() {
    let tree = tree();
    let mut asking = Asking::of(config(&tree, false));
    let next = "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    let get = |fields: &str| format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    // RFC 9110, 9.3.1; RFC 9112, 9.3: the next request begins behind it.
    for request in [
        get("Content-Length: 4\r\n") + "GET ",
        get("Transfer-Encoding: chunked\r\n") + "4;x=y\r\nGET \r\n0\r\nA: b\r\n\r\n",
        get("Content-Length: 65536\r\n") + &"x".repeat(65_536),
    ] {
        let (text, client) = asking.send((request + next).as_bytes());
        assert_eq!(split(&text, &[]).len(), 2, "{text}");
        assert!(text.ends_with("0123456789") && !client.peer_finished, "{text}");
    }
    // The client may leave out a body that it announces with an expectation (RFC 9110, 10.1.1).
    let request = get("Content-Length: 4\r\nExpect: 100-continue\r\n") + next;
    let (text, client) = asking.send(request.as_bytes());
    assert!(split(&text, &[]).len() == 1 && client.peer_finished, "{text}");
    // It has a bound, also where the length is not known before.
    let (text, client) = asking.send(get("Content-Length: 65537\r\n").as_bytes());
    assert!(status(&text) == 413 && client.peer_finished, "{text}");
    let chunks = format!("7fff\r\n{}\r\n", "x".repeat(0x7fff)).repeat(3);
    let request = get("Transfer-Encoding: chunked\r\n") + &chunks + next;
    let (text, client) = asking.send(request.as_bytes());
    assert!(text.contains("HTTP/1.1 413 ") && client.peer_finished, "{text}");
    assert!(!text.contains("0123456789"), "{text}");
    asking.rig.finish();
}

#[test]
fn uploads_may_come_in_chunks() {
    let tree = tree();
    let root = tree.path().join("root");
    let mut asking = Asking::of(config(&tree, true));
    let put = |chunks: &str| {
        format!("PUT /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
    };
    // RFC 9112, 7.1.
    let chunks = "5;a=\"b\"\r\nfirst\r\n00c\r\n and\r\nsecond\r\n0\r\nTrailer: x\r\n\r\n";
    let next = "GET /up HTTP/1.1\r\nHost: x\r\n\r\n";
    let (text, _) = asking.send((put(chunks) + next).as_bytes());
    let replies = split(&text, &[]);
    assert_eq!(replies[0].0, 201, "{text}");
    assert_eq!(replies[1], (200, "first and\r\nsecond".to_owned()));
    let long: String = (0..300_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let chunks: String = long
        .as_bytes()
        .chunks(7_777)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
        .collect();
    let (text, client) = asking.send(put(&(chunks + "0\r\n\r\n")).as_bytes());
    assert!(status(&text) == 200 && !client.peer_finished, "{text}");
    assert!(std::fs::read(root.join("up")).unwrap() == long.as_bytes());
    // One that makes no sense leaves nothing, and neither does one that ends early.
    let (text, client) = asking.send(put("5\r\nfirstX").as_bytes());
    assert!(status(&text) == 400 && client.peer_finished, "{text}");
    let (_, mut client) = asking.send(put("5\r\nfir").as_bytes());
    client.tcp.abort();
    asking.rig.pass(&mut [client], SECOND);
    assert!(std::fs::read(root.join("up")).unwrap() == long.as_bytes());
    let names = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    asking.rig.finish();
}

#[test]
fn uploads_have_conditions() {
    let tree = tree();
    let path = tree.path().join("root/a.txt");
    set_modified(&path, MODIFIED);
    let mut asking = Asking::of(config(&tree, true));
    let mut put = |path: &str, fields: &str| {
        let request =
            format!("PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n{fields}\r\nnew");
        let (text, _) = asking.send(request.as_bytes());
        status(&text)
    };
    // RFC 9110, 13.1.1, 13.1.2 and 13.1.4.
    assert_eq!(put("/a.txt", "If-None-Match: *\r\n"), 412);
    assert_eq!(put("/a.txt", "If-Match: \"x\"\r\n"), 412);
    assert_eq!(put("/a.txt", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n"), 412);
    assert_eq!(put("/fresh", "If-Match: *\r\n"), 412);
    assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
    assert_eq!(put("/fresh", "If-None-Match: *\r\n"), 201);
    assert_eq!(put("/a.txt", "If-Match: *\r\n"), 200);
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    // The file may get a rival while the body arrives.
    asking.port += 1;
    let mut client = [asking.rig.connect(asking.port)];
    let head = "PUT /rival HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nIf-None-Match: *\r\n\r\n";
    client[0].outgoing = head.as_bytes().to_vec();
    asking.rig.pass(&mut client, SECOND);
    std::fs::write(tree.path().join("root/rival"), "first").unwrap();
    client[0].outgoing = b"new".to_vec();
    asking.rig.pass(&mut client, SECOND);
    assert!(client[0].received.starts_with(b"HTTP/1.1 412 "));
    assert_eq!(std::fs::read(tree.path().join("root/rival")).unwrap(), b"first");
    asking.rig.finish();
}

#[test]
fn uploads_are_bounded() {
    let tree = tree();
    let config = HttpConfig { longest_upload: 10, ..config(&tree, true) };
    let (mut rig, clock) = rig_of(config);
    let put = |fields: &str| format!("PUT /up HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    let (text, _) =
        talk(&mut rig, 1_000, (put("Content-Length: 10\r\n") + "0123456789").as_bytes());
    assert_eq!(status(&text), 201);
    // RFC 9110, 15.5.14. No interim reply is sent.
    let fields = "Content-Length: 11\r\nExpect: 100-continue\r\n";
    let (text, client) = talk(&mut rig, 1_001, put(fields).as_bytes());
    assert!(status(&text) == 413 && client.peer_finished, "{text}");
    let chunks = "6\r\n012345\r\n5\r\n01234\r\n0\r\n\r\n";
    let request = put("Transfer-Encoding: chunked\r\n") + chunks;
    let (text, client) = talk(&mut rig, 1_002, request.as_bytes());
    assert!(status(&text) == 413 && client.peer_finished, "{text}");
    // Also when a chunk announces it.
    let request = put("Transfer-Encoding: chunked\r\n") + "ffffffffffffffff\r\n";
    let (text, client) = talk(&mut rig, 1_004, request.as_bytes());
    assert!(status(&text) == 413 && client.peer_finished, "{text}");
    // A byte now and then keeps none alive.
    let request = put("Content-Length: 10\r\n") + "0";
    let (text, client) = talk(&mut rig, 1_003, request.as_bytes());
    assert_eq!(text, "");
    clock.advance_to(clock.now() + 31 * SECOND);
    let mut client = [client];
    client[0].outgoing = b"1".to_vec();
    rig.pass(&mut client, SECOND);
    assert!(client[0].received.starts_with(b"HTTP/1.1 408 ") && client[0].peer_finished);
    rig.finish();
}

#[test]
fn no_more_uploads_than_may_be_are_under_way() {
    let tree = tree();
    let (mut rig, _) = rig_of(config(&tree, true));
    let request = b"PUT /up HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
    let mut clients: Vec<_> = (0..257).map(|n| rig.connect(1_000 + n)).collect();
    clients.iter_mut().for_each(|client| client.outgoing = request.to_vec());
    rig.pass(&mut clients, SECOND);
    let refused = |clients: &[Client]| {
        clients.iter().filter(|client| client.received.starts_with(b"HTTP/1.1 503 ")).count()
    };
    assert_eq!(refused(&clients), 1);
    clients.iter_mut().for_each(|client| client.outgoing = b"new".to_vec());
    rig.pass(&mut clients, SECOND);
    let mut client = [rig.connect(2_000)];
    client[0].outgoing = [&request[..], b"new"].concat();
    rig.pass(&mut client, SECOND);
    assert!(client[0].received.starts_with(b"HTTP/1.1 200 "), "places come back");
    rig.finish();
}

#[test]
fn a_head_that_is_late_ends_the_connection() {
    let tree = tree();
    let (mut rig, _) = rig_of(config(&tree, false));
    let mut clients = [rig.connect(1_000), rig.connect(1_001), rig.connect(1_002)];
    // RFC 9110, 15.5.9. One sends a byte each second, one is silent within a head, one without.
    clients[1].outgoing = b"GET / HTTP/1.1\r\n".to_vec();
    clients[2].outgoing = b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    for second in 0..40 {
        let head = b"GET / HTTP/1.1\r\nHost: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        clients[0].outgoing = vec![head[second]];
        rig.pass(&mut clients, SECOND);
        for client in &clients[..2] {
            let is_over = client.received.starts_with(b"HTTP/1.1 408 ") && client.peer_finished;
            assert_eq!(is_over, second >= 30, "after {second} s");
        }
    }
    assert!(clients[2].received.ends_with(b"0123456789") && !clients[2].peer_finished);
    assert_eq!(rig.control.totals().refused, 2);
    rig.finish();
}

#[test]
fn names_that_begin_with_a_dot_are_refused() {
    let tree = tree();
    let root = tree.path().join("root");
    for folder in [".git", ".well-known", "sub/.x"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
        std::fs::write(root.join(folder).join("f"), "inside").unwrap();
    }
    std::fs::write(root.join(".env"), "inside").unwrap();
    let hidden = ["/.env", "/%2eenv", "/.git/f", "/.git", "/sub/.x/f", "/sub/../.env", "/..x"];
    let mut asking = Asking::of(config(&tree, true));
    for path in hidden {
        assert_eq!(asking.status(&format!("GET {path}"), ""), 403, "{path}");
    }
    assert_eq!(asking.status("GET /.none", ""), 403, "the reply does not depend on the file");
    // RFC 8615, 3.
    assert_eq!(asking.status("GET /.well-known/f", ""), 200);
    assert_eq!(asking.status("GET /sub/../a.txt", ""), 200);
    assert_eq!(asking.status("PUT /.env", "Content-Length: 0\r\n"), 403);
    asking.rig.finish();
    let mut asking = Asking::of(HttpConfig { dotfiles: true, ..config(&tree, false) });
    assert_eq!(asking.status("GET /.git/f", ""), 200);
    assert_eq!(asking.status("GET /.none", ""), 404);
    // What clients are putting is nobody's.
    assert_eq!(asking.status("GET /.rheo-1-1", ""), 403);
    asking.rig.finish();
}

#[test]
fn a_name_that_no_file_can_have_is_refused_before_the_body_comes() {
    let tree = tree();
    let mut asking = Asking::of(config(&tree, true));
    let long = format!("/{}", "x".repeat(256));
    for (path, expected) in [
        ("/sub/", 403),
        ("/", 403),
        ("/a.txt/x", 409),
        ("/none/x", 409),
        (&long, 414),
        ("/sub/..", 403),
    ] {
        let fields = "Content-Length: 5\r\nExpect: 100-continue\r\n";
        let reply = asking.ask(&format!("PUT {path}"), fields);
        assert_eq!(status(&reply), expected, "{path}: {reply}");
    }
    // The place of a directory is known to be taken when the name is given.
    let reply = asking.ask("PUT /sub", "Content-Length: 0\r\n");
    assert_eq!(status(&reply), 409, "{reply}");
    let names = std::fs::read_dir(tree.path().join("root")).unwrap();
    assert!(
        names.into_iter().all(|name| !name.unwrap().file_name().to_string_lossy().starts_with('.'))
    );
    asking.rig.finish();
}

#[test]
fn of_uploads_under_the_same_condition_one_gets_the_name() {
    let tree = tree();
    set_modified(&tree.path().join("root/a.txt"), MODIFIED);
    let (mut rig, _) = rig_of(config(&tree, true));
    let (text, _) = talk(&mut rig, 1_000, b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    let tag = field(&text, "ETag").unwrap();
    let head =
        format!("PUT /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nIf-Match: {tag}\r\n\r\n");
    let mut clients: Vec<_> = (0..10).map(|n| rig.connect(2_000 + n)).collect();
    clients.iter_mut().for_each(|client| client.outgoing = head.clone().into_bytes());
    rig.pass(&mut clients, SECOND);
    clients.iter_mut().for_each(|client| client.outgoing = b"new".to_vec());
    rig.pass(&mut clients, SECOND);
    let with =
        |status: &[u8]| clients.iter().filter(|client| client.received.starts_with(status)).count();
    assert_eq!((with(b"HTTP/1.1 200 "), with(b"HTTP/1.1 412 ")), (1, 9));
    rig.finish();
}

#[test]
fn a_directory_is_redirected_to_itself() {
    let tree = tree();
    std::fs::create_dir(tree.path().join("root/a b%")).unwrap();
    let mut asking = Asking::of(config(&tree, false));
    for (path, location) in [
        ("/sub", "/sub/"),
        // Behind two slashes, it would be another host (RFC 3986, 4.2).
        ("//sub", "/sub/"),
        ("/a%20b%25", "/a%20b%25/"),
    ] {
        let reply = asking.ask(&format!("GET {path}"), "");
        assert_eq!((status(&reply), field(&reply, "Location")), (301, Some(location)), "{reply}");
    }
    asking.rig.finish();
}

#[test]
fn files_are_kept_for_a_second_and_no_longer_than_an_upload_lets_them() {
    let tree = tree();
    let path = tree.path().join("root/a.txt");
    let (mut rig, clock) = rig_of(config(&tree, true));
    // All on one connection, and so one lane.
    let mut client = [rig.connect(1_000)];
    let mut ask = |rig: &mut Rig, text: &str| {
        client[0].received.clear();
        client[0].outgoing = text.as_bytes().to_vec();
        rig.pass(&mut client, SECOND / 10);
        let text = String::from_utf8(client[0].received.clone()).unwrap();
        split(&text, &[]).pop().unwrap()
    };
    let get = "GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(ask(&mut rig, get), (200, "0123456789".to_owned()));
    std::fs::File::create(&path).unwrap().write_all(b"other").unwrap();
    assert_eq!(ask(&mut rig, get), (200, "0123456789".to_owned()));
    clock.advance_to(clock.now() + SECOND);
    assert_eq!(ask(&mut rig, get), (200, "other".to_owned()));
    // RFC 9112, 9.3.2: a request sees what those before it have put.
    let put = "PUT /a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nnew";
    assert_eq!(ask(&mut rig, &(put.to_owned() + get)), (200, "new".to_owned()));
    std::fs::remove_file(&path).unwrap();
    clock.advance_to(clock.now() + SECOND);
    assert_eq!(ask(&mut rig, get).0, 404);
    rig.finish();
}
