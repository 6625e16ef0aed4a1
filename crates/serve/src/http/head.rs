//! The head of a request.

/// The longest head.
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

/// How far a head that comes in pieces has been looked at: its next bytes are looked at from there, not from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Where the first line begins that is not whole. Those before it make sense.
    at: usize,
    /// Up to where there is no end of that line.
    searched: usize,
    /// Lines before it, empty ones ahead of the request not counted.
    lines: usize,
}

impl Head {
    /// Reads a head, and returns how many bytes it takes. `progress` is that of an earlier call with fewer bytes of the same head,
    /// or none. Each byte is looked at three times at most, in however many pieces a head comes.
    pub(super) fn parse(bytes: &[u8], progress: &mut Progress) -> Result<(Head, usize), HeadError> {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        // Most heads come in one piece.
        if *progress == Progress::default()
            && let Ok(found) = Head::read(bytes)
        {
            return Ok(found);
        }
        let end = progress.go_on(bytes, |_| {})?;
        *progress = Progress::default();
        Head::read(&bytes[..end])
    }

    /// Reads a head that is whole.
    fn read(bytes: &[u8]) -> Result<(Head, usize), HeadError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let len = whole(request.parse(bytes))?.ok_or(HeadError::Partial)?;
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

impl Progress {
    /// Looks at a head up to its end, which is returned. Shows what is looked at.
    fn go_on(&mut self, bytes: &[u8], mut show: impl FnMut(&[u8])) -> Result<usize, HeadError> {
        while let Some(place) = bytes[self.searched..].iter().position(is_notable) {
            let end = self.searched + place + 1;
            show(&bytes[self.searched..end]);
            if bytes[end - 1] != b'\n' {
                return Err(HeadError::Bad);
            }
            let line = &bytes[self.at..end];
            (self.at, self.searched) = (end, end);
            let is_empty = matches!(line, b"\n" | b"\r\n");
            match self.lines {
                0 if is_empty => continue,
                _ if is_empty => return Ok(end),
                0 => whole(httparse::Request::new(&mut []).parse(line)).map(|_| ())?,
                lines if lines > FIELDS => return Err(HeadError::TooLong),
                _ => {
                    let mut field = [httparse::EMPTY_HEADER];
                    whole(httparse::parse_headers(line, &mut field)).map(|_| ())?;
                }
            }
            show(line);
            self.lines += 1;
        }
        show(&bytes[self.searched..]);
        self.searched = bytes.len();
        Err(if bytes.len() < LONGEST { HeadError::Partial } else { HeadError::TooLong })
    }
}

/// Whether this is the end of a line, or a byte that no line may have: what is no HTTP is told by it before a line ends.
fn is_notable(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\r')
}

/// What was found, if all of it is there.
fn whole<T>(result: httparse::Result<T>) -> Result<Option<T>, HeadError> {
    match result {
        Ok(httparse::Status::Complete(found)) => Ok(Some(found)),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(HeadError::TooLong),
        Err(httparse::Error::Version) => Err(HeadError::Version),
        Err(_) => Err(HeadError::Bad),
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
        Head::parse(text.as_bytes(), &mut Progress::default()).map(|(head, len)| {
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
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(LONGEST));
        assert_eq!(parse(&long), Err(HeadError::TooLong));
        let head = |fields: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(fields));
        assert_eq!(parse(&head(FIELDS + 1)), Err(HeadError::TooLong));
        assert!(parse(&head(FIELDS)).is_ok());
    }

    /// What comes of a text that arrives in pieces of `len` bytes, and where it was known.
    fn parse_in_pieces(text: &[u8], len: usize) -> Result<(Head, usize), HeadError> {
        let mut progress = Progress::default();
        for end in (len..text.len()).step_by(len) {
            match Head::parse(&text[..end], &mut progress) {
                Err(HeadError::Partial) => {}
                other => return other,
            }
        }
        Head::parse(text, &mut progress)
    }

    #[test]
    fn it_does_not_matter_how_a_head_is_cut() {
        for text in [
            "GET / HTTP/1.1\r\nRange: bytes=1-2\r\n\r\n",
            "\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/3.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
            "\r\r\nGET / HTTP/1.1\r\n\r\n",
            "GET x HTTP/1.1\r\n\r\n",
            "GET / HTTP/3.1\0\r\n",
        ] {
            for len in 1..text.len() {
                let expected = Head::parse(text.as_bytes(), &mut Progress::default());
                assert_eq!(parse_in_pieces(text.as_bytes(), len), expected, "{text:?} by {len}");
            }
        }
    }

    #[test]
    fn what_was_looked_at_is_not_looked_at_again() {
        let fields = format!("Name: {}\r\n", "x".repeat(240)).repeat(FIELDS);
        let text = format!("{}GET / HTTP/1.1\r\n{fields}\r\n", "\r\n".repeat(100)).into_bytes();
        let (mut progress, mut looked_at) = (Progress::default(), 0);
        for len in 1..=text.len() {
            let outcome = progress.go_on(&text[..len], |bytes| looked_at += bytes.len());
            let expected = if len < text.len() { Err(HeadError::Partial) } else { Ok(len) };
            assert_eq!(outcome, expected);
        }
        // Each byte when it comes, and once more with its line. From the start each time it would be 130 million.
        assert!((text.len()..=2 * text.len()).contains(&looked_at), "{looked_at}");
        assert!(parse_in_pieces(&text, 1).is_ok());
        let mut progress = Progress::default();
        assert!(Head::parse(&text[..300], &mut progress).is_err());
        assert!(Head::parse(&text, &mut progress).is_ok());
        assert_eq!(progress, Progress::default(), "for the next head");
    }
}
