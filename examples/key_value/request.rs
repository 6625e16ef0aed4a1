//! What clients ask and are answered: a line of text in a datagram, without a line end.
//!
//! | request | answer |
//! |---|---|
//! | `7 SET key value` | `7 STORED digest` |
//! | `7 GET key` | `7 VALUE digest value`, or `7 NONE` |
//! | `7 DEL key` | `7 DELETED`, or `7 NONE` |
//!
//! The number is the client's, to tell answers apart. The digest is that of the value. What cannot be
//! understood is answered by `7 ERROR` and the reason; by number zero, if there was none.

use std::fmt;
use std::str;

use thiserror::Error;

/// Bytes of a key at most.
const LONGEST_KEY: usize = 64;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) number: u32,
    pub(crate) key: String,
    pub(crate) command: Command,
}

/// What is to be done with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Set(String),
    Get,
    Delete,
}

/// The answer to a request that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{number} ERROR {reason}")]
pub(crate) struct Refusal {
    number: u32,
    reason: BadRequest,
}

/// Why a request is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BadRequest {
    #[error("a request is text in UTF-8")]
    NotText,
    #[error("a request starts with a number of up to 32 bits")]
    Number,
    #[error("the number is followed by SET, GET or DEL")]
    Command,
    #[error("the command is followed by a key of 1 to {LONGEST_KEY} bytes")]
    Key,
    #[error("SET takes a key and a value, the others a key alone")]
    Value,
}

impl Request {
    /// Understands the data of a datagram.
    pub(crate) fn parse(data: &[u8]) -> Result<Request, Refusal> {
        let refusal = |number, reason| Refusal { number, reason };
        let text = str::from_utf8(data).map_err(|_| refusal(0, BadRequest::NotText))?;
        let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = number.parse().map_err(|_| refusal(0, BadRequest::Number))?;
        let (key, command) = Command::parse(rest).map_err(|reason| refusal(number, reason))?;
        Ok(Request { number, key, command })
    }
}

impl Command {
    /// A command with its key.
    fn parse(text: &str) -> Result<(String, Command), BadRequest> {
        let mut words = text.splitn(3, ' ');
        let (command, key, value) = (words.next(), words.next(), words.next());
        if !matches!(command, Some("SET" | "GET" | "DEL")) {
            return Err(BadRequest::Command);
        }
        let key =
            key.filter(|key| (1..=LONGEST_KEY).contains(&key.len())).ok_or(BadRequest::Key)?;
        let command = match (command, value) {
            (Some("SET"), Some(value)) => Command::Set(value.to_owned()),
            (Some("GET"), None) => Command::Get,
            (Some("DEL"), None) => Command::Delete,
            _ => return Err(BadRequest::Value),
        };
        Ok((key.to_owned(), command))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { number, key, command } = self;
        match command {
            Command::Set(value) => write!(f, "{number} SET {key} {value}"),
            Command::Get => write!(f, "{number} GET {key}"),
            Command::Delete => write!(f, "{number} DEL {key}"),
        }
    }
}

#[test]
fn requests_are_what_they_are_written_as() {
    let request = |number, key: &str, command| Request { number, key: key.into(), command };
    for request in [
        request(0, "a", Command::Set("some value".into())),
        request(1, "a", Command::Set(String::new())),
        request(u32::MAX, "k", Command::Get),
        request(7, &"k".repeat(LONGEST_KEY), Command::Delete),
    ] {
        assert_eq!(Request::parse(request.to_string().as_bytes()), Ok(request));
    }
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let long = format!("1 GET {}", "k".repeat(LONGEST_KEY + 1));
    for (data, number, reason) in [
        (&b"1 GET \xff"[..], 0, BadRequest::NotText),
        (b"", 0, BadRequest::Number),
        (b"-1 GET a", 0, BadRequest::Number),
        (b"1", 1, BadRequest::Command),
        (b"2 PUT a b", 2, BadRequest::Command),
        (b"3 GET", 3, BadRequest::Key),
        (b"4 SET  value", 4, BadRequest::Key),
        (long.as_bytes(), 1, BadRequest::Key),
        (b"5 SET a", 5, BadRequest::Value),
        (b"6 DEL a b", 6, BadRequest::Value),
    ] {
        let refusal = Refusal { number, reason };
        assert_eq!(Request::parse(data), Err(refusal), "{}", data.escape_ascii());
    }
    let refusal = Request::parse(b"6 DEL a b").unwrap_err().to_string();
    assert_eq!(refusal, "6 ERROR SET takes a key and a value, the others a key alone");
}
