//! As much of HTTP as a check needs (RFC 9112): one request, and the status of the answer.

use std::net::IpAddr;

use super::event::Failure;

/// Bytes of a request at most, so that it fits into one segment anywhere (RFC 8200, section 5: 1,280 bytes
/// less headers).
pub const LONGEST_REQUEST: usize = 1_200;

/// `HTTP/1.1 200`: what of the answer counts.
const STATUS_LINE: usize = 12;

/// A request to a web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpCheck {
    /// What is asked for, such as `/health`.
    pub path: String,
    /// The host in the request; without one, the backend's address.
    pub host: Option<String>,
    /// The statuses that are good.
    pub expect: Vec<StatusRange>,
}

/// Statuses from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl HttpCheck {
    /// A request for `path` that any success answers.
    pub fn new(path: &str) -> HttpCheck {
        let success = StatusRange { low: 200, high: 299 };
        HttpCheck { path: path.to_owned(), host: None, expect: vec![success] }
    }

    /// The request (RFC 9112, sections 3 and 9.6).
    pub fn request(&self, address: IpAddr) -> Vec<u8> {
        let host = match (&self.host, address) {
            (Some(host), _) => host.clone(),
            (None, IpAddr::V4(v4)) => v4.to_string(),
            (None, IpAddr::V6(v6)) => format!("[{v6}]"),
        };
        let path = &self.path;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: rheostat\r\nConnection: close\r\n\r\n"
        )
        .into_bytes()
    }

    /// Judges the first bytes of an answer; `None` while too few are there.
    pub(super) fn judge(&self, answer: &[u8]) -> Option<Result<(), Failure>> {
        let pattern = b"HTTP/1.";
        let known = answer.len().min(pattern.len());
        if answer[..known] != pattern[..known] {
            return Some(Err(Failure::NotHttp));
        }
        let line = answer.first_chunk::<STATUS_LINE>()?;
        let [.., minor, space, a, b, c] = *line;
        let digits = [a, b, c].map(|digit| char::from(digit).to_digit(10));
        let (true, b' ', [Some(a), Some(b), Some(c)]) = (minor.is_ascii_digit(), space, digits)
        else {
            return Some(Err(Failure::NotHttp));
        };
        let status = (100 * a + 10 * b + c) as u16;
        let is_good = self.expect.iter().any(|range| (range.low..=range.high).contains(&status));
        Some(if is_good { Ok(()) } else { Err(Failure::Status(status)) })
    }

    /// Bytes of an answer that are worth keeping.
    pub(super) const KEPT: usize = STATUS_LINE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_soon_as_it_is_there() {
        let check = HttpCheck {
            expect: vec![StatusRange { low: 200, high: 204 }, StatusRange { low: 301, high: 301 }],
            ..HttpCheck::new("/")
        };
        for (answer, expected) in [
            (&b""[..], None),
            (b"HT", None),
            (b"HTTP/1.1 20", None),
            (b"HTTP/1.1 200 OK\r\n", Some(Ok(()))),
            (b"HTTP/1.0 301", Some(Ok(()))),
            (b"HTTP/1.1 205", Some(Err(Failure::Status(205)))),
            (b"HTTP/1.1 503 no", Some(Err(Failure::Status(503)))),
            (b"SSH-2.0-", Some(Err(Failure::NotHttp))),
            (b"HTTP/1.1 2x0", Some(Err(Failure::NotHttp))),
            (b"HTTP/1.x 200", Some(Err(Failure::NotHttp))),
            (b"HTTP/1.1\t200", Some(Err(Failure::NotHttp))),
        ] {
            assert_eq!(check.judge(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn the_request_names_the_host_it_is_for() {
        let text = |check: &HttpCheck, address: &str| {
            String::from_utf8(check.request(address.parse().unwrap())).unwrap()
        };
        let check = HttpCheck::new("/health");
        assert!(text(&check, "fd00::1").starts_with("GET /health HTTP/1.1\r\nHost: [fd00::1]\r\n"));
        let named = HttpCheck { host: Some("www.example".into()), ..check };
        let request = text(&named, "10.0.0.1");
        assert!(request.contains("Host: www.example\r\n") && request.ends_with("\r\n\r\n"));
    }
}
