//! Files of a directory over HTTP/1.1 (RFC 9110, 9112): `GET` and `HEAD` with ranges, and, where that is permitted, `PUT`.
//! Connections are kept, and requests may follow each other without waiting for replies.
//!
//! Names are resolved beneath the directory by the kernel (`openat2`), so that neither `..` nor a symbolic link leads out of it.
//! Reading a file that is not in memory holds up the lane.

mod head;
mod mime;
mod range;
mod tree;
mod upload;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rheostat_base::LaneId;

use self::head::{BodyLength, Head, HeadError, Method, Progress};
use self::range::{Range, RangeOutcome};
use self::tree::{Found, Tree};
use self::upload::Upload;
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// Bytes of an upload that are one request.
const PIECE: usize = 64 << 10;

/// Serves a directory.
#[derive(Debug)]
pub struct Http {
    tree: Tree,
    is_writable: bool,
}

/// What is known of a connection: how much of an unfinished head has been looked at, and an upload under way, if there is one.
#[derive(Debug, Default)]
pub struct HttpConn {
    head: Progress,
    /// Bytes of the body that are still to come, and where they go.
    body: Option<(u64, Arc<Upload>)>,
    /// Whether the connection ends behind the reply to the upload.
    closes: bool,
}

/// A request.
#[derive(Debug)]
pub enum HttpRequest {
    /// A file, or what is known of it.
    Read(Head),
    /// An upload begins.
    Begin(Head, Arc<Upload>),
    /// A piece of an upload: its bytes, whether they are the last, and whether the connection ends with it.
    Piece {
        /// Where it goes.
        upload: Arc<Upload>,
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether it is the last.
        is_last: bool,
        /// Whether the connection ends behind the reply.
        closes: bool,
    },
}

/// What is left of a reply to be written.
#[derive(Debug, Default)]
pub struct HttpReply {
    /// Everything but the file.
    text: Vec<u8>,
    file: Option<Piece>,
    closes: bool,
}

/// A part of a file.
#[derive(Debug)]
struct Piece {
    file: File,
    at: u64,
    left: u64,
}

impl Http {
    /// Serves the files beneath `root`. With `is_writable`, clients may put files there.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn new(root: &Path, is_writable: bool) -> io::Result<Http> {
        Ok(Http { tree: Tree::open(root)?, is_writable })
    }

    fn read(&self, head: &Head) -> HttpReply {
        let reply = match self.tree.find(&head.path) {
            Ok(Found::File(file, len)) => deliver(head, file, len),
            Ok(Found::Directory) => {
                let location = format!("Location: {}/\r\n", head.path);
                HttpReply::status(301, "Moved Permanently", &location, head)
            }
            Err(error) => HttpReply::of_error(&error, head),
        };
        let mut reply = HttpReply { closes: head.closes, ..reply };
        if head.is_old && !head.closes {
            reply.insert("Connection: keep-alive\r\n");
        }
        reply
    }

    fn begin(&self, head: &Head, upload: &Upload) -> HttpReply {
        match upload.begin(&self.tree, &head.path) {
            Ok(()) if head.expects_continue => HttpReply {
                text: b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(),
                ..HttpReply::default()
            },
            Ok(()) => HttpReply::default(),
            Err(error) => HttpReply { closes: true, ..HttpReply::of_error(&error, head) },
        }
    }
}

impl Application for Http {
    /// A request sees what those before it have put (RFC 9112, 9.3.2).
    const SERIAL: bool = true;
    type Conn = HttpConn;
    type Worker = ();
    type Request = HttpRequest;
    type Reply = HttpReply;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) -> HttpConn {
        HttpConn::default()
    }

    fn parse(&self, conn: &mut HttpConn, bytes: &[u8]) -> Parsed<HttpRequest, HttpReply> {
        if let Some((left, upload)) = conn.body.take() {
            let len = bytes.len().min(PIECE).min(usize::try_from(left).unwrap_or(usize::MAX));
            let (left, closes) = (left - len as u64, conn.closes);
            let request = HttpRequest::Piece {
                upload: upload.clone(),
                bytes: bytes[..len].to_vec(),
                is_last: left == 0,
                closes,
            };
            conn.body = (left > 0).then_some((left, upload));
            return Parsed::Request { request, len, class: 1 };
        }
        let (head, len) = match Head::parse(bytes, &mut conn.head) {
            Ok(found) => found,
            Err(HeadError::Partial) => return Parsed::Need(0),
            Err(HeadError::Bad) => return Parsed::Refuse(HttpReply::refusal(400, "Bad Request")),
            Err(HeadError::TooLong) => {
                let reason = "Request Header Fields Too Large";
                return Parsed::Refuse(HttpReply::refusal(431, reason));
            }
            Err(HeadError::Version) => {
                let reason = "HTTP Version Not Supported";
                return Parsed::Refuse(HttpReply::refusal(505, reason));
            }
        };
        match (head.method, head.body) {
            (Method::Get | Method::Head, BodyLength::Known(0)) => {
                Parsed::Request { request: HttpRequest::Read(head), len, class: 0 }
            }
            (Method::Put, BodyLength::Known(length)) if self.is_writable => {
                let upload = Arc::new(Upload::new());
                conn.closes = head.closes || head.is_old;
                if length > 0 {
                    conn.body = Some((length, upload.clone()));
                }
                let request = match length {
                    0 => HttpRequest::Piece {
                        upload: Arc::new(Upload::empty(head.path)),
                        bytes: Vec::new(),
                        is_last: true,
                        closes: head.closes || head.is_old,
                    },
                    _ => HttpRequest::Begin(head, upload),
                };
                Parsed::Request { request, len, class: 1 }
            }
            (Method::Put, BodyLength::Unknown) if self.is_writable => {
                Parsed::Refuse(HttpReply::refusal(411, "Length Required"))
            }
            // Bodies where none belongs are not skipped.
            (Method::Get | Method::Head, _) => {
                Parsed::Refuse(HttpReply::refusal(413, "Content Too Large"))
            }
            (Method::Put | Method::Other, _) => {
                let allow = if self.is_writable { "GET, HEAD, PUT" } else { "GET, HEAD" };
                let mut reply = HttpReply::of_text(405, "Method Not Allowed", "", true);
                reply.insert(&format!("Allow: {allow}\r\n"));
                Parsed::Refuse(reply)
            }
        }
    }

    fn handle(&self, (): &mut (), request: HttpRequest) -> Handled<HttpRequest, HttpReply> {
        Handled::Done(match request {
            HttpRequest::Read(head) => self.read(&head),
            HttpRequest::Begin(head, upload) => self.begin(&head, &upload),
            HttpRequest::Piece { upload, bytes, is_last, closes } => {
                match upload.write(&self.tree, &bytes, is_last) {
                    Ok(None) => HttpReply::default(),
                    Ok(Some(is_new)) => {
                        let (code, reason) = if is_new { (201, "Created") } else { (200, "OK") };
                        HttpReply::of_text(code, reason, "", closes)
                    }
                    Err(error) => HttpReply::of_text_error(&error, true),
                }
            }
        })
    }

    fn encode(
        &self,
        conn: &mut HttpConn,
        reply: &mut HttpReply,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded {
        out.put(&std::mem::take(&mut reply.text));
        if let Some(piece) = &mut reply.file {
            let most = usize::try_from(piece.left).unwrap_or(usize::MAX);
            match out.fill(most, |bytes| piece.file.read_at(bytes, piece.at)) {
                // The file has become shorter.
                Ok(0) if piece.left > 0 && out.room() > 0 => return Encoded::Abort,
                Ok(read) => {
                    piece.at += read as u64;
                    piece.left -= read as u64;
                }
                Err(_) => return Encoded::Abort,
            }
            if piece.left > 0 {
                return Encoded::More;
            }
        }
        if reply.closes {
            conn.body = None;
            return Encoded::Close;
        }
        Encoded::Done
    }
}

/// The reply with a file of `len` bytes, or the part of it that was asked for.
fn deliver(head: &Head, file: File, len: u64) -> HttpReply {
    let (code, reason, range) =
        match head.range.as_deref().map_or(RangeOutcome::Whole, |text| Range::parse(text, len)) {
            RangeOutcome::Whole => (200, "OK", Range { start: 0, len }),
            RangeOutcome::Part(range) => (206, "Partial Content", range),
            RangeOutcome::Unsatisfiable => {
                let field = format!("Content-Range: bytes */{len}\r\n");
                return HttpReply::status(416, "Range Not Satisfiable", &field, head);
            }
        };
    let mut fields = format!(
        "Content-Type: {}\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\n",
        mime::of(&head.path),
        range.len
    );
    if code == 206 {
        let last = range.start + range.len - 1;
        fields += &format!("Content-Range: bytes {}-{last}/{len}\r\n", range.start);
    }
    let text = start(code, reason, &fields, head.closes);
    let is_wanted = head.method == Method::Get && range.len > 0;
    let file = is_wanted.then_some(Piece { file, at: range.start, left: range.len });
    HttpReply { text, file, closes: head.closes }
}

/// The status line and the header fields.
fn start(code: u16, reason: &str, fields: &str, closes: bool) -> Vec<u8> {
    let end = if closes { "Connection: close\r\n\r\n" } else { "\r\n" };
    format!("HTTP/1.1 {code} {reason}\r\nServer: rheo\r\n{fields}{end}").into_bytes()
}

impl HttpReply {
    /// A reply without a file, which says what it means. `head` is the request's.
    fn status(code: u16, reason: &str, fields: &str, head: &Head) -> HttpReply {
        let mut reply = HttpReply::of_text(code, reason, &format!("{reason}\n"), head.closes);
        if head.method == Method::Head {
            reply.text.truncate(reply.text.len() - reason.len() - 1);
        }
        reply.insert(fields);
        reply
    }

    fn of_text(code: u16, reason: &str, body: &str, closes: bool) -> HttpReply {
        let fields = format!("Content-Type: text/plain\r\nContent-Length: {}\r\n", body.len());
        let mut text = start(code, reason, &fields, closes);
        text.extend_from_slice(body.as_bytes());
        HttpReply { text, file: None, closes }
    }

    /// Adds header fields behind the status line.
    fn insert(&mut self, fields: &str) {
        let line = self.text.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.text.splice(line..line, fields.bytes());
    }

    /// The reply to what cannot be understood: the connection ends behind it.
    fn refusal(code: u16, reason: &str) -> HttpReply {
        HttpReply::of_text(code, reason, &format!("{reason}\n"), true)
    }

    fn of_error(error: &io::Error, head: &Head) -> HttpReply {
        let (code, reason) = status_of(error);
        HttpReply::status(code, reason, "", head)
    }

    fn of_text_error(error: &io::Error, closes: bool) -> HttpReply {
        let (code, reason) = status_of(error);
        HttpReply::of_text(code, reason, &format!("{reason}\n"), closes)
    }
}

fn status_of(error: &io::Error) -> (u16, &'static str) {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (404, "Not Found"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => (403, "Forbidden"),
        io::ErrorKind::IsADirectory => (409, "Conflict"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (507, "Insufficient Storage"),
        _ => (500, "Internal Server Error"),
    }
}
