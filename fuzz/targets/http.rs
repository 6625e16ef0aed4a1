//! Any bytes as requests of HTTP. It does not matter how they are cut, and every reply is one.
#![no_main]

mod requests;

use std::cell::OnceCell;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use requests::requests;
use rheostat_base::VirtualClock;
use rheostat_serve::http::{Http, HttpConfig, HttpRequest};
use rheostat_serve::rehearse;

thread_local! {
    /// A directory with a file, read by one and written by none of them.
    static APPS: OnceCell<(Http, Http)> = const { OnceCell::new() };
}

fn with_apps(work: impl FnOnce(&Http, &Http)) {
    APPS.with(|apps| {
        let (read, write) = apps.get_or_init(|| {
            let root = std::env::temp_dir().join(format!("rheo-fuzz-{}", std::process::id()));
            std::fs::create_dir_all(root.join("d")).unwrap();
            std::fs::write(root.join("f"), (0..200).collect::<Vec<u8>>()).unwrap();
            let http = |is_writable| {
                let config = HttpConfig { writable: is_writable, ..HttpConfig::new(&root) };
                Http::new(config, Arc::new(VirtualClock::default())).unwrap()
            };
            (http(false), http(true))
        });
        work(read, write);
    });
}

/// Pieces of a body are one body, however it was cut.
fn note(seen: &mut Vec<String>, request: HttpRequest) {
    let HttpRequest::Piece(piece) = request else {
        return seen.push(format!("{request:?}"));
    };
    let bytes: String = piece.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    match seen.last_mut().filter(|last| last.starts_with("body ") && !last.ends_with('.')) {
        Some(last) => last.push_str(&bytes),
        None => seen.push(format!("body {bytes}")),
    }
    if piece.is_last() && let Some(last) = seen.last_mut() {
        last.push('.');
    }
}

/// Replies follow each other: a status line, fields, and as many bytes as they say.
fn assert_replies(mut said: &[u8]) {
    while !said.is_empty() {
        let head = said.windows(4).position(|four| four == b"\r\n\r\n").expect("a head has an end");
        let (text, rest) = (std::str::from_utf8(&said[..head]).expect("text"), &said[head + 4..]);
        assert!(text.starts_with("HTTP/1.1 ") && !text.contains('\0'), "{text:?}");
        let is_whole = |line: &str| !line.contains(['\r', '\n']) && line.contains(": ");
        assert!(text.split("\r\n").skip(1).all(is_whole), "{text:?}");
        let has_date = text.starts_with("HTTP/1.1 100 ") || text.contains("\r\nDate: ");
        assert!(has_date, "{text:?}");
        let length = text.split("\r\n").find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
        // A reply to HEAD says how long the body would be.
        let has_body = rest.len() >= length && !rest.starts_with(b"HTTP/1.1 ");
        said = if has_body { &rest[length..] } else { rest };
    }
}

fuzz_target!(|input: (Vec<u16>, &[u8])| {
    let (places, bytes) = input;
    with_apps(|read, write| {
        assert_eq!(requests(write, bytes, &places, note), requests(write, bytes, &[], note));
        let (first, second) = bytes
            .split_at(places.first().map_or(0, |place| usize::from(*place) % (bytes.len() + 1)));
        let rehearsal = rehearse(read, &[bytes]);
        assert_eq!(rehearse(read, &[first, second]).said, rehearsal.said);
        assert_replies(&rehearsal.said);
    });
});
