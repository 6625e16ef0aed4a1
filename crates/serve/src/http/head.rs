//! The head of a request.

use super::conditions::Conditions;
use super::method::Method;

/// The longest head.
const LONGEST: usize = 16 << 10;
/// Header fields at most.
const FIELDS: usize = 64;

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(u64),
    /// It comes in chunks.
    Chunked,
}

/// A request without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub(super) method: Method,
    /// The path, decoded, without its query. It starts with a slash. Empty where the method is not served.
    pub(super) path: String,
    pub(super) range: Option<String>,
    /// The conditions, if there are any.
    pub(super) conditions: Option<Box<Conditions>>,
    /// Whether the body is a part of a file (`Content-Range`).
    pub(super) is_partial: bool,
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
    /// A transfer coding other than `chunked`.
    Coding,
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
            Some("POST" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH") => Method::Other,
            _ => Method::Unknown,
        };
        let path = match method {
            Method::Get | Method::Head | Method::Put => {
                request.path.and_then(path_of).and_then(decode).ok_or(HeadError::Bad)?
            }
            // Their targets have other forms, too.
            Method::Other | Method::Unknown => String::new(),
        };
        let is_old = request.version == Some(0);
        let mut head = Head {
            method,
            path,
            range: None,
            conditions: None,
            is_partial: false,
            body: BodyLength::Known(0),
            closes: is_old,
            expects_continue: false,
            is_old,
        };
        let (mut hosts, mut length, mut coding) = (0, None, None);
        let (mut has_close, mut has_keep_alive) = (false, false);
        for field in request.headers.iter() {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            // What is not looked at may have any bytes (RFC 9110, section 5.5).
            let text = || match std::str::from_utf8(field.value) {
                Ok(text) => Ok(text.trim_matches([' ', '\t'])),
                Err(_) => Err(HeadError::Bad),
            };
            if is("host") {
                hosts += 1;
                if !is_host(text()?) {
                    return Err(HeadError::Bad);
                }
            } else if is("content-length") {
                let text = text()?;
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse::<u64>().ok().filter(|_| is_number);
                // Two that differ are how requests are smuggled (RFC 9112, section 6.3).
                if number.is_none() || length.is_some() && length != number {
                    return Err(HeadError::Bad);
                }
                length = number;
            } else if is("transfer-encoding") {
                extend(&mut coding, text()?);
            } else if is("connection") {
                let text = text()?;
                let mut words = text.split(',').map(str::trim);
                has_close |= words.clone().any(|word| word.eq_ignore_ascii_case("close"));
                has_keep_alive |= words.any(|word| word.eq_ignore_ascii_case("keep-alive"));
            } else if is("range") {
                extend(&mut head.range, text()?);
            } else if is("content-range") {
                head.is_partial = true;
            } else if is("expect") {
                // Not of HTTP/1.0 (RFC 9110, section 10.1.1).
                head.expects_continue = !is_old && text()?.eq_ignore_ascii_case("100-continue");
            } else if field.name.len() > 3 && field.name[..3].eq_ignore_ascii_case("if-") {
                let conditions = head.conditions.get_or_insert_default();
                let condition = match &field.name[3..] {
                    name if name.eq_ignore_ascii_case("match") => &mut conditions.if_match,
                    name if name.eq_ignore_ascii_case("none-match") => {
                        &mut conditions.if_none_match
                    }
                    name if name.eq_ignore_ascii_case("modified-since") => {
                        &mut conditions.if_modified_since
                    }
                    name if name.eq_ignore_ascii_case("unmodified-since") => {
                        &mut conditions.if_unmodified_since
                    }
                    name if name.eq_ignore_ascii_case("range") => &mut conditions.if_range,
                    _ => continue,
                };
                extend(condition, text()?);
            }
        }
        // RFC 9112, section 3.2.
        if hosts > 1 || hosts == 0 && !is_old {
            return Err(HeadError::Bad);
        }
        head.closes = has_close || is_old && !has_keep_alive;
        head.body = match (length, coding) {
            // Both, and chunks of HTTP/1.0, are how requests are smuggled (RFC 9112, sections 6.1 and 6.3).
            (Some(_), Some(_)) => return Err(HeadError::Bad),
            (None, Some(_)) if is_old => return Err(HeadError::Bad),
            (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => BodyLength::Chunked,
            (None, Some(coding)) => return Err(refused_coding(&coding)),
            (length, None) => BodyLength::Known(length.unwrap_or(0)),
        };
        Ok((head, len))
    }
}

/// Appends a field that may be repeated (RFC 9110, section 5.3).
fn extend(field: &mut Option<String>, text: &str) {
    match field {
        Some(field) => *field = format!("{field}, {text}"),
        None => *field = Some(text.to_owned()),
    }
}

/// Why transfer codings that are not `chunked` alone are refused: without it as the last one, and once, the end of the body is unknown
/// (RFC 9112, section 6.3); others are not implemented (section 6.1).
fn refused_coding(codings: &str) -> HeadError {
    let is_chunked = |coding: &str| coding.trim().eq_ignore_ascii_case("chunked");
    let mut codings = codings.rsplit(',');
    match codings.next().is_some_and(is_chunked) && !codings.any(is_chunked) {
        true => HeadError::Coding,
        false => HeadError::Bad,
    }
}

/// Whether this is a host, with a port or without (RFC 3986, section 3.2.2), or none (RFC 9112, section 3.2).
fn is_host(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:[]".contains(&byte);
    text.bytes().all(is_allowed)
}

/// The path of a target, with its query: of the origin form, and of the absolute form (RFC 9112, section 3.2), whose host is as
/// good as any other.
fn path_of(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let (scheme, rest) = target.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    (is_http && !authority.is_empty() && is_host(authority)).then_some(path)
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
    let path = match target.split(['?', '#']).next()? {
        "" => "/",
        path => path,
    };
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
        let head =
            parse("GET /a%20b/c?x=1 HTTP/1.1\r\nHost: x\r\nRange: bytes=1-2\r\n\r\n").unwrap();
        assert_eq!((head.method, &head.path[..]), (Method::Get, "/a b/c"));
        assert_eq!((head.range.as_deref(), head.closes), (Some("bytes=1-2"), false));
        let head = parse("PUT /x HTTP/1.0\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!((head.body, head.closes), (BodyLength::Known(5), true));
        let head = parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").unwrap();
        assert!(!head.closes);
        let head =
            parse("GET / HTTP/1.1\r\nHost:\r\nConnection: x, CLOSE\r\nConnection: y\r\n\r\n");
        assert!(head.unwrap().closes);
    }

    /// RFC 9112, 3.2.2: a server accepts the absolute form. RFC 9110, 7.1: the host may be any.
    #[test]
    fn a_target_may_have_the_absolute_form() {
        for (target, path) in [
            ("http://a.example/x%20y?q=/z", "/x y"),
            ("HTTPS://[2001:db8::1]:8080/x", "/x"),
            ("http://a.example", "/"),
            ("http://a.example?q", "/"),
            ("/http://a", "/http://a"),
        ] {
            let head = parse(&format!("GET {target} HTTP/1.1\r\nHost: b\r\n\r\n"));
            assert_eq!(head.map(|head| head.path).as_deref(), Ok(path), "{target}");
        }
        for target in ["x", "*", "ftp://a/x", "http:///x", "http://u@a/x", "http:/x", "a:80"] {
            let head = parse(&format!("GET {target} HTTP/1.1\r\nHost: b\r\n\r\n"));
            assert_eq!(head, Err(HeadError::Bad), "{target}");
        }
    }

    /// RFC 9112, 3.2: 400 to HTTP/1.1 without a host, to more than one, and to a wrong one.
    #[test]
    fn a_request_has_one_host() {
        for (fields, is_right) in [
            ("Host: a\r\n", true),
            ("Host: [::1]:80\r\n", true),
            ("Host:\r\n", true),
            ("", false),
            ("Host: a\r\nHost: a\r\n", false),
            ("Host: a b\r\n", false),
            ("Host: a/b\r\n", false),
            ("Host: u@a\r\n", false),
        ] {
            let head = parse(&format!("GET / HTTP/1.1\r\n{fields}\r\n"));
            assert_eq!(head.is_ok(), is_right, "{fields:?}: {head:?}");
        }
        assert!(parse("GET / HTTP/1.0\r\n\r\n").is_ok());
        assert_eq!(parse("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), Err(HeadError::Bad));
    }

    /// RFC 9112, 6.1 and 6.3.
    #[test]
    fn the_length_of_a_body_is_certain_or_the_request_is_refused() {
        let body = |fields: &str| {
            parse(&format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")).map(|head| head.body)
        };
        assert_eq!(body("Transfer-Encoding: Chunked"), Ok(BodyLength::Chunked));
        assert_eq!(body("Content-Length: 7\r\nContent-Length: 7"), Ok(BodyLength::Known(7)));
        for (fields, error) in [
            ("Content-Length: +5", HeadError::Bad),
            ("Content-Length: ", HeadError::Bad),
            ("Content-Length: 5, 5", HeadError::Bad),
            ("Content-Length: 5\r\nContent-Length: 6", HeadError::Bad),
            ("Content-Length: 99999999999999999999", HeadError::Bad),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked", HeadError::Bad),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", HeadError::Bad),
            ("Transfer-Encoding: chunked, gzip", HeadError::Bad),
            ("Transfer-Encoding: identity", HeadError::Bad),
            ("Transfer-Encoding: xchunked", HeadError::Bad),
            ("Transfer-Encoding:", HeadError::Bad),
            ("Transfer-Encoding: gzip, chunked", HeadError::Coding),
        ] {
            assert_eq!(body(fields), Err(error), "{fields}");
        }
        let old = "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(old), Err(HeadError::Bad));
    }

    /// RFC 9110, 5.3: repeated fields are a list; 5.5: values may have any bytes where nobody looks at them.
    #[test]
    fn fields_are_lists_and_others_are_left_alone() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nCookie: \xff\r\nIf-None-Match: \"a\"\r\nif-none-match: \"b\"\r\n\r\n";
        let (head, _) = Head::parse(text, &mut Progress::default()).unwrap();
        let conditions = head.conditions.unwrap();
        assert_eq!(conditions.if_none_match.as_deref(), Some("\"a\", \"b\""));
        assert_eq!(conditions.if_match, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, error) in [
            ("GET / HTTP/1.1\r\n", HeadError::Partial),
            ("GET / HTTP/3.1\r\n\r\n", HeadError::Version),
            ("GET\0/ HTTP/1.1\r\n\r\n", HeadError::Bad),
            ("GET /%0d%0aX:%20y HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Bad),
            ("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", HeadError::Bad),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", HeadError::Bad),
            ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", HeadError::Bad),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(LONGEST));
        assert_eq!(parse(&long), Err(HeadError::TooLong));
        let head = |fields: usize| {
            format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(fields - 1))
        };
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
            "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n",
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
        let text = format!("{}GET / HTTP/1.0\r\n{fields}\r\n", "\r\n".repeat(100)).into_bytes();
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
