//! HTTP/1.1, as far as GET needs it (RFC 9112). A server that speaks HTTP/1.0 ends the connection behind each reply.

mod chunked_body;

use std::net::SocketAddr;

use httparse::{EMPTY_HEADER, Response, Status};

use self::chunked_body::ChunkedBody;
use super::{Progress, Reply};

/// What is known of a reply that is not whole yet.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpReading(Option<ChunkedBody>);

/// Bytes of a head at most.
const LONGEST_HEAD: usize = 64 << 10;
/// Fields of a head at most.
const FIELDS: usize = 128;
/// Interim replies before a final one at most.
const INTERIM: usize = 16;
const PADDING: &str = "X-Padding: ";

/// Whether text can be the target of a request.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A request, filled up to `size` bytes where it is shorter.
pub(super) fn request(path: &str, server: SocketAddr, size: u32) -> Vec<u8> {
    let mut text = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: rheo\r\n");
    let missing = (size as usize).saturating_sub(text.len() + 2);
    if let Some(filling) = missing.checked_sub(PADDING.len() + 2) {
        text += &format!("{PADDING}{}\r\n", "x".repeat(filling));
    }
    text += "\r\n";
    text.into_bytes()
}

/// How the end of a body is found.
enum Body {
    Length(usize),
    Chunks,
    UntilClose,
}

/// What stands at the beginning of some bytes.
enum HeadField {
    /// An interim reply of so many bytes: the final one follows.
    Interim(usize),
    /// A final reply with a head of so many bytes, and a body in chunks.
    Chunked(usize, Reply),
    /// A final reply, or none.
    Final(Progress),
}

/// Reads a reply. `reading` is what this has made of fewer bytes of the same reply, or new.
pub(super) fn parse(bytes: &[u8], ended: bool, reading: &mut HttpReading) -> Progress {
    if let Some(body) = &mut reading.0 {
        return body.advance(bytes);
    }
    let mut at = 0;
    for _ in 0..=INTERIM {
        match find(&bytes[at..], ended) {
            HeadField::Interim(len) => at += len,
            HeadField::Chunked(head, reply) => {
                let body = reading.0.insert(ChunkedBody::behind(at + head, reply));
                return body.advance(bytes);
            }
            HeadField::Final(Progress::Need(needed)) => {
                return Progress::Need(at.saturating_add(needed));
            }
            HeadField::Final(Progress::Whole(len, reply)) => {
                return Progress::Whole(at + len, reply);
            }
            HeadField::Final(garbage) => return garbage,
        }
    }
    Progress::Garbage("too many interim replies precede a reply")
}

fn find(bytes: &[u8], ended: bool) -> HeadField {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut response = Response::new(&mut fields);
    let head = match response.parse(bytes) {
        Ok(Status::Complete(head)) => head,
        Ok(Status::Partial) if bytes.len() < LONGEST_HEAD => {
            return HeadField::Final(Progress::Need(bytes.len() + 1));
        }
        Ok(Status::Partial) => {
            return HeadField::Final(Progress::Garbage("the head of a reply is too long"));
        }
        Err(_) => return HeadField::Final(Progress::Garbage("it is no reply of HTTP")),
    };
    let code = response.code.unwrap_or(0);
    match (100..200).contains(&code) && code != 101 {
        true => HeadField::Interim(head),
        false => end(&response, code, (head, bytes), ended),
    }
}

/// Where a final reply ends whose head has `head` of `bytes`.
fn end(
    response: &Response<'_, '_>,
    code: u16,
    (head, bytes): (usize, &[u8]),
    ended: bool,
) -> HeadField {
    let field = |name: &str| {
        let found = response.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        found.filter_map(|field| std::str::from_utf8(field.value).ok()).next_back()
    };
    let has = |text: Option<&str>, word: &str| {
        text.is_some_and(|text| text.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    };
    let connection = field("connection");
    let is_old = response.version == Some(0);
    let mut closes = has(connection, "close") || (is_old && !has(connection, "keep-alive"));
    let body = match (field("transfer-encoding"), field("content-length")) {
        _ if matches!(code, 204 | 304) => Body::Length(0),
        (Some(_), _) if has(field("transfer-encoding"), "chunked") => Body::Chunks,
        (_, Some(length)) => match length.trim().parse() {
            Ok(length) => Body::Length(length),
            Err(_) => {
                return HeadField::Final(Progress::Garbage("the length of a reply is no number"));
            }
        },
        _ => Body::UntilClose,
    };
    closes |= matches!(body, Body::UntilClose);
    let reply = Reply { is_error: code >= 400, closes, ..Reply::default() };
    let len = match body {
        Body::Length(len) => head.saturating_add(len),
        Body::Chunks => return HeadField::Chunked(head, reply),
        Body::UntilClose if ended => bytes.len(),
        Body::UntilClose => bytes.len() + 1,
    };
    HeadField::Final(match bytes.len() < len {
        true => Progress::Need(len),
        false => Progress::Whole(len, reply),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], ended: bool) -> Progress {
        super::parse(bytes, ended, &mut HttpReading::default())
    }

    fn whole(reply: &str) -> Reply {
        let bytes = format!("{reply}HTTP/1.1 200 OK\r\n").into_bytes();
        for cut in 0..reply.len() {
            let progress = parse(&bytes[..cut], false);
            assert!(
                matches!(progress, Progress::Need(needed) if needed > cut),
                "{cut}: {progress:?}"
            );
        }
        // Byte by byte, with what is known of those before.
        let mut reading = HttpReading::default();
        for cut in 0..reply.len() {
            let progress = super::parse(&bytes[..cut], false, &mut reading);
            assert!(matches!(progress, Progress::Need(needed) if needed > cut), "{cut}");
        }
        assert_eq!(super::parse(&bytes, false, &mut reading), parse(&bytes, false));
        match parse(&bytes, false) {
            Progress::Whole(len, found) if len == reply.len() => found,
            other => panic!("{reply:?}: {other:?}"),
        }
    }

    #[test]
    fn replies_end_by_their_length_or_last_chunk() {
        let plain = whole("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(plain, Reply::default());
        let chunked =
            "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
        assert_eq!(whole(chunked), Reply { is_error: true, ..Reply::default() });
        assert!(whole("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").closes);
        assert!(
            !whole("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n").closes
        );
        assert!(whole("HTTP/1.1 204 None\r\nConnection: close\r\n\r\n").closes);
        let behind_a_hint = format!("HTTP/1.1 103 Hints\r\n\r\n{chunked}");
        assert_eq!(whole(&behind_a_hint), Reply { is_error: true, ..Reply::default() });
        whole("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }

    #[test]
    fn a_reply_without_a_length_ends_with_its_connection() {
        let bytes = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(parse(bytes, false), Progress::Need(bytes.len() + 1));
        let reply = Reply { closes: true, ..Reply::default() };
        assert_eq!(parse(bytes, true), Progress::Whole(bytes.len(), reply));
    }

    #[test]
    fn what_is_no_reply_is_garbage() {
        for wrong in [
            "+OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        ] {
            assert!(matches!(parse(wrong.as_bytes(), false), Progress::Garbage(_)), "{wrong:?}");
        }
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100_000);
        assert!(matches!(parse(interim.as_bytes(), false), Progress::Garbage(_)));
        let long =
            format!("{}HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", &interim[..50], usize::MAX);
        assert_eq!(parse(long.as_bytes(), false), Progress::Need(usize::MAX));
        let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        assert!(matches!(parse(endless.as_bytes(), false), Progress::Need(_)));
    }
}
