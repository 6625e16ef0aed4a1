//! The head of a request.

/// The longest head. One that comes in pieces is read from its start with each: at worst 16 KiB a piece, some microseconds.
const LONGEST: usize = 16 << 10;
/// Header fields at most.
const FIELDS: usize = 64;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Put,
    Other,
}

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(u64),
    /// It comes in chunks.
    Unknown,
}

/// A request without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub(super) method: Method,
    /// The path, decoded, without its query. It starts with a slash.
    pub(super) path: String,
    pub(super) range: Option<String>,
    pub(super) body: BodyLength,
    /// Whether the connection ends behind the reply.
    pub(super) closes: bool,
    pub(super) expects_continue: bool,
    /// HTTP/1.0, where a connection that stays is to be confirmed (RFC 9112, appendix C.2.2).
    pub(super) is_old: bool,
}

/// Why there is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    /// More is to come.
    Partial,
    /// It makes no sense.
    Bad,
    TooLong,
    Version,
}

impl Head {
    /// Reads a head, and returns how many bytes it takes.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Head, usize), HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let len = match request.parse(&bytes[..bytes.len().min(LONGEST)]) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if bytes.len() >= LONGEST => {
                return Err(HeadError::TooLong);
            }
            Ok(httparse::Status::Partial) => return Err(HeadError::Partial),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooLong),
            Err(httparse::Error::Version) => return Err(HeadError::Version),
            Err(_) => return Err(HeadError::Bad),
        };
        let method = match request.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("PUT") => Method::Put,
            _ => Method::Other,
        };
        let path = request.path.and_then(decode).ok_or(HeadError::Bad)?;
        let is_old = request.version == Some(0);
        let mut head = Head {
            method,
            path,
            range: None,
            body: BodyLength::Known(0),
            closes: is_old,
            expects_continue: false,
            is_old,
        };
        let mut has_length = false;
        for field in request.headers.iter() {
            let value = std::str::from_utf8(field.value).map_err(|_| HeadError::Bad)?.trim();
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| is_number).ok_or(HeadError::Bad)?;
                // Two that differ are how requests are smuggled (RFC 9112, section 6.3).
                if has_length && head.body != BodyLength::Known(length) {
                    return Err(HeadError::Bad);
                }
                (has_length, head.body) = (true, BodyLength::Known(length));
            } else if is("transfer-encoding") {
                head.body = BodyLength::Unknown;
            } else if is("connection") {
                let words = value.split(',').map(str::trim);
                let has =
                    |wanted: &str| words.clone().any(|word| word.eq_ignore_ascii_case(wanted));
                head.closes = has("close") || is_old && !has("keep-alive");
            } else if is("range") {
                head.range = Some(value.to_owned());
            } else if is("expect") {
                head.expects_continue = value.eq_ignore_ascii_case("100-continue");
            }
        }
        if has_length && head.body == BodyLength::Unknown {
            return Err(HeadError::Bad);
        }
        Ok((head, len))
    }
}

/// A path without its query, with its escapes decoded (RFC 3986, section 2.1).
fn decode(target: &str) -> Option<String> {
    let path = target.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        };
        // No control characters: they end up in header fields.
        if byte < b' ' || byte == 0x7f {
            return None;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Head, HeadError> {
        Head::parse(text.as_bytes()).map(|(head, len)| {
            assert_eq!(len, text.len());
            head
        })
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = parse("GET /a%20b/c?x=1 HTTP/1.1\r\nRange: bytes=1-2\r\n\r\n").unwrap();
        assert_eq!((head.method, &head.path[..]), (Method::Get, "/a b/c"));
        assert_eq!((head.range.as_deref(), head.closes), (Some("bytes=1-2"), false));
        let head = parse("PUT /x HTTP/1.0\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!((head.body, head.closes), (BodyLength::Known(5), true));
        let head = parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").unwrap();
        assert!(!head.closes);
        let head = parse("GET / HTTP/1.1\r\nConnection: x, CLOSE\r\n\r\n").unwrap();
        assert!(head.closes);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, error) in [
            ("GET / HTTP/1.1\r\n", HeadError::Partial),
            ("GET / HTTP/3.1\r\n\r\n", HeadError::Version),
            ("GET\0/ HTTP/1.1\r\n\r\n", HeadError::Bad),
            ("GET x HTTP/1.1\r\n\r\n", HeadError::Bad),
            ("GET /%0d%0aX:%20y HTTP/1.1\r\n\r\n", HeadError::Bad),
            ("GET /%zz HTTP/1.1\r\n\r\n", HeadError::Bad),
            ("PUT / HTTP/1.1\r\nContent-Length: +5\r\n\r\n", HeadError::Bad),
            ("PUT / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", HeadError::Bad),
            (
                "PUT / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                HeadError::Bad,
            ),
        ] {
            assert_eq!(Head::parse(text.as_bytes()), Err(error), "{text:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(LONGEST));
        assert_eq!(Head::parse(long.as_bytes()), Err(HeadError::TooLong));
    }
}
