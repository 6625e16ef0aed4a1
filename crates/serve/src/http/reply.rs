//! Replies.

use std::fmt::Write as _;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rheostat_base::Time;

use super::cache::{Content, ServedFile};
use super::date;
use super::head::Head;
use super::method::Method;
use super::range::Range;
use super::status::Status;
use crate::application::{Encoded, ReplyBuffer};

/// What is left of a reply to be written.
#[derive(Debug, Default)]
pub struct HttpReply {
    /// Everything but the file.
    text: Vec<u8>,
    body: Option<FilePart>,
    closes: bool,
}

/// A part of a file.
#[derive(Debug)]
struct FilePart {
    file: Arc<ServedFile>,
    at: u64,
    left: u64,
}

/// What becomes of the connection behind a reply, as the reply states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persistence {
    Close,
    /// The connection stays open, which the reply states for HTTP/1.0 (RFC 9112, appendix C.2.2).
    KeepAlive,
    /// It stays.
    Usual,
}

/// The second that the last reply of a worker was made in, and its name.
#[derive(Debug, Default)]
pub(super) struct DateField {
    second: u64,
    text: String,
}

impl DateField {
    /// The value of `Date` at `now`, since 1970.
    pub(super) fn at(&mut self, now: Time) -> &str {
        let second = now.as_nanos() / 1_000_000_000;
        if self.text.is_empty() || second != self.second {
            (self.second, self.text) = (second, date::format(second as i64));
        }
        &self.text
    }
}

impl HttpReply {
    /// No reply is due.
    pub(super) fn none() -> HttpReply {
        HttpReply::default()
    }

    /// The client may go on with its body.
    pub(super) fn proceed() -> HttpReply {
        let text = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
        HttpReply { text, ..HttpReply::default() }
    }

    /// A reply with these header fields, each with its end of line. Its body is its reason, but for success.
    pub(super) fn of_status(status: Status, fields: &str, envelope: &Envelope<'_>) -> HttpReply {
        let Status(code, reason) = status;
        let mut text = envelope.start(status);
        text += fields;
        match code {
            200..300 => text += "Content-Length: 0\r\n\r\n",
            _ => {
                let len = reason.len() + 1;
                let _ = write!(text, "Content-Type: text/plain\r\nContent-Length: {len}\r\n\r\n");
                if envelope.has_body {
                    let _ = writeln!(text, "{reason}");
                }
            }
        }
        HttpReply { text: text.into_bytes(), body: None, closes: envelope.closes() }
    }

    /// The client has this version (RFC 9110, section 15.4.5).
    pub(super) fn not_modified(file: &ServedFile, envelope: &Envelope<'_>) -> HttpReply {
        let mut text = envelope.start(Status::NOT_MODIFIED);
        put_validators(&mut text, file, envelope);
        text += "\r\n";
        HttpReply { text: text.into_bytes(), body: None, closes: envelope.closes() }
    }

    /// A file, or a part of it.
    pub(super) fn of_file(
        file: &Arc<ServedFile>,
        part: Option<Range>,
        envelope: &Envelope<'_>,
    ) -> HttpReply {
        let len = file.version.len;
        let status = if part.is_some() { Status::PARTIAL } else { Status::OK };
        let mut text = envelope.start(status);
        if let Some(Range { start, len: part }) = part {
            let last = start + part - 1;
            let _ = write!(text, "Content-Range: bytes {start}-{last}/{len}\r\n");
        }
        let Range { start, len } = part.unwrap_or(Range { start: 0, len });
        let _ = write!(text, "Content-Type: {}\r\nContent-Length: {len}\r\n", file.mime);
        put_validators(&mut text, file, envelope);
        text += "Accept-Ranges: bytes\r\n\r\n";
        let is_wanted = envelope.has_body && len > 0;
        let body = is_wanted.then(|| FilePart { file: file.clone(), at: start, left: len });
        HttpReply { text: text.into_bytes(), body, closes: envelope.closes() }
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(&std::mem::take(&mut self.text));
        let rest = match &mut self.body {
            Some(part) => part.write(out),
            None => Encoded::Done,
        };
        match rest {
            Encoded::Done if self.closes => Encoded::Close,
            rest => rest,
        }
    }
}

impl FilePart {
    fn write(&mut self, out: &mut ReplyBuffer<'_>) -> Encoded {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.room());
        let written = match &self.file.content {
            Content::Memory(bytes) => {
                let start = self.at as usize;
                out.put(&bytes[start..start + most]);
                Ok(most)
            }
            Content::File(file) => out.fill(most, |bytes| file.read_at(bytes, self.at)),
        };
        match written {
            // The file has become shorter.
            Ok(0) if most > 0 => return Encoded::Abort,
            Err(_) => return Encoded::Abort,
            Ok(written) => {
                (self.at, self.left) = (self.at + written as u64, self.left - written as u64)
            }
        }
        if self.left > 0 { Encoded::More } else { Encoded::Done }
    }
}

/// What a reply has besides its status and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a> {
    /// Seconds since 1970.
    pub(super) now: i64,
    /// The same, as the value of `Date`.
    pub(super) date: &'a str,
    pub(super) persistence: Persistence,
    /// Whether the content is sent: not to `HEAD`.
    pub(super) has_body: bool,
}

impl<'a> Envelope<'a> {
    /// That of a reply to a request with this head.
    pub(super) fn of(head: &Head, now: i64, date: &'a str) -> Envelope<'a> {
        let persistence = match (head.closes, head.is_old) {
            (true, _) => Persistence::Close,
            (false, true) => Persistence::KeepAlive,
            (false, false) => Persistence::Usual,
        };
        Envelope { now, date, persistence, has_body: head.method != Method::Head }
    }

    /// The same, and the connection ends behind it.
    pub(super) fn closing(self) -> Envelope<'a> {
        Envelope { persistence: Persistence::Close, ..self }
    }

    fn closes(&self) -> bool {
        self.persistence == Persistence::Close
    }

    /// The status line and the first header fields.
    fn start(&self, Status(code, reason): Status) -> String {
        let mut text = String::with_capacity(384);
        let date = self.date;
        let _ = write!(text, "HTTP/1.1 {code} {reason}\r\nServer: rheo\r\nDate: {date}\r\n");
        text += match self.persistence {
            Persistence::Close => "Connection: close\r\n",
            Persistence::KeepAlive => "Connection: keep-alive\r\n",
            Persistence::Usual => "",
        };
        text
    }
}

fn put_validators(text: &mut String, file: &ServedFile, envelope: &Envelope<'_>) {
    // Never later than the reply (RFC 9110, section 8.8.2.1).
    let modified = match file.validators.modified > envelope.now {
        true => envelope.date,
        false => &file.last_modified,
    };
    let weak = if file.validators.is_strong { "" } else { "W/" };
    let tag = &file.validators.tag;
    let _ = write!(text, "Last-Modified: {modified}\r\nETag: {weak}{tag}\r\n");
}
