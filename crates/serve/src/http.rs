//! Files of a directory over HTTP/1.1 (RFC 9110, 9112): `GET` and `HEAD` with ranges and conditions, and, where that is permitted,
//! `PUT`. Connections are kept, and requests may follow each other without waiting for replies.
//!
//! Names are resolved beneath the directory by the kernel (`openat2`), so that neither `..` nor a symbolic link leads out of it.
//! Each worker keeps files for a second; reading one that is not in memory holds up the lane. The time comes from the caller.

mod body;
mod cache;
mod chunked;
mod conditions;
mod date;
mod head;
mod method;
mod mime;
mod range;
mod reply;
mod settings;
mod status;
mod tree;
mod upload;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{ClockSource, LaneId, Time};

use self::body::Body;
pub use self::body::BodyPiece;
use self::cache::{FileCache, ServedFile};
use self::conditions::Outcome;
pub use self::head::Head;
use self::head::{BodyLength, HeadError, Progress};
use self::method::Method;
use self::range::{Range, RangeOutcome};
pub use self::reply::HttpReply;
use self::reply::{DateField, Envelope, Persistence};
pub use self::settings::{HttpConfig, registration};
use self::status::Status;
use self::tree::Tree;
pub use self::upload::Upload;
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// The longest body of a request that has no use for one.
const SKIPPED: u64 = 64 << 10;
/// Uploads under way at most: each has an open file.
const UPLOADS: usize = 256;

/// Serves a directory.
pub struct Http {
    tree: Tree,
    config: HttpConfig,
    /// Since 1970.
    clock: Arc<dyn ClockSource>,
    /// Uploads that may begin.
    permits: Arc<AtomicUsize>,
    /// Held while conditions are evaluated and a file gets its name, so that no other upload comes between.
    finishing: Mutex<()>,
    /// Uploads that are finished: what workers know of files is from before, if they were fewer.
    uploads: AtomicU64,
}

/// What is known of a connection: how much of an unfinished head has been looked at, and a body under way, if there is one.
#[derive(Debug, Default)]
pub struct HttpConn {
    head: Progress,
    body: Option<Body>,
}

/// The files that a worker keeps, and the date.
#[derive(Debug)]
pub struct HttpWorker {
    files: FileCache,
    date: DateField,
}

/// A request.
#[derive(Debug)]
pub enum HttpRequest {
    /// A file, or what is known of it.
    Read(Head),
    /// An upload begins. One without a body is complete.
    Begin {
        /// Its head.
        head: Head,
        /// Where the body goes.
        upload: Arc<Upload>,
        /// Whether there is no body.
        is_empty: bool,
    },
    /// A piece of a body.
    Piece(BodyPiece),
}

impl Http {
    /// Serves a directory. `clock` shows the time since 1970, such as [`WallClock`](rheostat_base::WallClock).
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn new(config: HttpConfig, clock: Arc<dyn ClockSource>) -> io::Result<Http> {
        let tree = Tree::open(&config.root)?;
        let (permits, finishing) = (Arc::new(UPLOADS.into()), Mutex::default());
        Ok(Http { tree, config, clock, permits, finishing, uploads: AtomicU64::new(0) })
    }

    fn read(&self, worker: &mut HttpWorker, head: &Head) -> HttpReply {
        let now = self.clock.now();
        let HttpWorker { files, date } = worker;
        let envelope = Envelope::of(head, seconds(now), date.at(now));
        if !self.permits_name(&head.path) {
            return HttpReply::of_status(Status::FORBIDDEN, "", &envelope);
        }
        // Acquire: pairs with the Release in `finish`, behind which the file has its name.
        let uploads = self.uploads.load(Ordering::Acquire);
        match files.find(&self.tree, &head.path, now, uploads) {
            Ok(Some(file)) => deliver(head, &file, &envelope),
            Ok(None) => {
                let location = format!("Location: {}\r\n", location(&head.path));
                HttpReply::of_status(Status::MOVED, &location, &envelope)
            }
            Err(error) => HttpReply::of_status(Status::of(&error), "", &envelope),
        }
    }

    fn begin(
        &self,
        worker: &mut HttpWorker,
        head: &mut Head,
        upload: &Upload,
        is_empty: bool,
    ) -> HttpReply {
        let now = self.clock.now();
        let envelope = Envelope::of(head, seconds(now), worker.date.at(now)).closing();
        if !self.permits_name(&head.path) {
            return HttpReply::of_status(Status::FORBIDDEN, "", &envelope);
        }
        let conditions = head.conditions.take();
        match upload.begin(&self.tree, &self.permits, &head.path, conditions, envelope.now) {
            Ok(()) if is_empty => self.finish(worker, upload, head.closes),
            Ok(()) if head.expects_continue => HttpReply::proceed(),
            Ok(()) => HttpReply::none(),
            Err(status) => HttpReply::of_status(status, "", &envelope),
        }
    }

    fn go_on(&self, worker: &mut HttpWorker, piece: &BodyPiece) -> HttpReply {
        let Some(upload) = &piece.upload else { return HttpReply::none() };
        match upload.write(&piece.bytes) {
            Ok(()) if piece.is_last => self.finish(worker, upload, piece.closes),
            Ok(()) => HttpReply::none(),
            Err(status) => self.refusal(status),
        }
    }

    fn finish(&self, worker: &mut HttpWorker, upload: &Upload, closes: bool) -> HttpReply {
        let now = self.clock.now();
        let one = self.finishing.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = upload.finish(seconds(now));
        drop(one);
        self.uploads.fetch_add(1, Ordering::Release);
        let persistence = if closes { Persistence::Close } else { Persistence::Usual };
        let date = worker.date.at(now);
        let envelope = Envelope { now: seconds(now), date, persistence, has_body: true };
        match outcome {
            Ok(true) => HttpReply::of_status(Status::CREATED, "", &envelope),
            Ok(false) => HttpReply::of_status(Status::OK, "", &envelope),
            Err(status) => HttpReply::of_status(status, "", &envelope.closing()),
        }
    }

    /// The reply to what is not carried out: the connection ends behind it.
    fn refusal(&self, status: Status) -> HttpReply {
        self.refusal_with(status, "")
    }

    fn refusal_with(&self, status: Status, fields: &str) -> HttpReply {
        let now = self.clock.now();
        let date = date::format(seconds(now));
        let persistence = Persistence::Close;
        let envelope = Envelope { now: seconds(now), date: &date, persistence, has_body: true };
        HttpReply::of_status(status, fields, &envelope)
    }

    /// Whether a path may be looked at: no part of it begins with a dot, but for those that the kernel resolves, and none is the
    /// name of an upload that is not complete.
    fn permits_name(&self, path: &str) -> bool {
        let is_hidden = |name: &str| match name {
            "." | ".." | ".well-known" => false,
            name => {
                name.starts_with('.') && !self.config.dotfiles
                    || name.starts_with(upload::UNFINISHED)
            }
        };
        !path.split('/').any(is_hidden)
    }

    /// The next piece of the body under way.
    fn parse_body(
        &self,
        conn: &mut HttpConn,
        bytes: &[u8],
    ) -> Option<Parsed<HttpRequest, HttpReply>> {
        let body = conn.body.as_mut()?;
        let taken = body.take(bytes, self.clock.now());
        if !taken.as_ref().is_ok_and(|(piece, _)| !piece.is_last) {
            conn.body = None;
        }
        Some(match taken {
            Ok((piece, len)) => {
                Parsed::Request { request: HttpRequest::Piece(piece), len, class: 1 }
            }
            Err(status) => Parsed::Refuse(self.refusal(status)),
        })
    }
}

impl Application for Http {
    /// A request sees what those before it have put (RFC 9112, 9.3.2).
    const SERIAL: bool = true;
    type Conn = HttpConn;
    type Worker = HttpWorker;
    type Request = HttpRequest;
    type Reply = HttpReply;

    fn worker(&self, _: LaneId) -> HttpWorker {
        let files = FileCache::new(self.config.cache_time, self.config.cache_memory);
        HttpWorker { files, date: DateField::default() }
    }

    fn accept(&self, _: SocketAddr) -> HttpConn {
        HttpConn::default()
    }

    fn parse(&self, conn: &mut HttpConn, bytes: &[u8]) -> Parsed<HttpRequest, HttpReply> {
        if let Some(parsed) = self.parse_body(conn, bytes) {
            return parsed;
        }
        let refuse = |status| Parsed::Refuse(self.refusal(status));
        let (mut head, len) = match Head::parse(bytes, &mut conn.head) {
            Ok(found) => found,
            Err(HeadError::Partial) => return Parsed::Need(0),
            Err(HeadError::Bad) => return refuse(Status::BAD_REQUEST),
            Err(HeadError::TooLong) => return refuse(Status::HEAD_TOO_LONG),
            Err(HeadError::Version) => return refuse(Status::VERSION),
            Err(HeadError::Coding) => return refuse(Status::NOT_IMPLEMENTED),
        };
        let (length, is_writable) = (head.body, self.config.writable);
        let (upload, longest) = match head.method {
            Method::Get | Method::Head => (None, SKIPPED),
            // A part of a file is not put (RFC 9110, section 14.5).
            Method::Put if is_writable && head.is_partial => return refuse(Status::BAD_REQUEST),
            Method::Put if is_writable => {
                head.closes |= head.is_old;
                (Some(Arc::new(Upload::default())), self.config.longest_upload)
            }
            Method::Put | Method::Other => {
                let allow = if is_writable { "GET, HEAD, PUT" } else { "GET, HEAD" };
                let allow = format!("Allow: {allow}\r\n");
                return Parsed::Refuse(self.refusal_with(Status::NOT_ALLOWED, &allow));
            }
            Method::Unknown => return refuse(Status::NOT_IMPLEMENTED),
        };
        let now = match length {
            BodyLength::Known(0) => Time::ZERO,
            _ => self.clock.now(),
        };
        match Body::new(length, upload.clone(), longest, now, head.closes) {
            Ok(body) => conn.body = body,
            Err(status) => return refuse(status),
        }
        match upload {
            // The client may send the body or not, as no interim reply was sent (RFC 9110, section 10.1.1).
            None if conn.body.is_some() && head.expects_continue => head.closes = true,
            _ => {}
        }
        let request = match upload {
            None => HttpRequest::Read(head),
            Some(upload) => HttpRequest::Begin { head, upload, is_empty: conn.body.is_none() },
        };
        let class = u8::from(!matches!(request, HttpRequest::Read(_)));
        Parsed::Request { request, len, class }
    }

    fn handle(
        &self,
        worker: &mut HttpWorker,
        request: HttpRequest,
    ) -> Handled<HttpRequest, HttpReply> {
        Handled::Done(match request {
            HttpRequest::Read(head) => self.read(worker, &head),
            HttpRequest::Begin { mut head, upload, is_empty } => {
                self.begin(worker, &mut head, &upload, is_empty)
            }
            HttpRequest::Piece(piece) => self.go_on(worker, &piece),
        })
    }

    fn encode(
        &self,
        conn: &mut HttpConn,
        reply: &mut HttpReply,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded {
        let encoded = reply.write(out);
        if encoded == Encoded::Close {
            conn.body = None;
        }
        encoded
    }

    /// The head of a request is late (RFC 9110, section 15.5.9).
    fn time_out(&self, _: &mut HttpConn) -> Option<HttpReply> {
        Some(self.refusal(Status::TIMEOUT))
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The reply with a file, or the part of it that was asked for, if the conditions hold.
fn deliver(head: &Head, file: &Arc<ServedFile>, envelope: &Envelope<'_>) -> HttpReply {
    let (validators, now) = (&file.validators, envelope.now);
    let conditions = head.conditions.as_deref();
    match conditions.map(|all| all.evaluate(head.method, Some(validators), now)) {
        None | Some(Outcome::Proceed) => {}
        Some(Outcome::NotModified) => return HttpReply::not_modified(file, envelope),
        Some(Outcome::Failed) => return HttpReply::of_status(Status::FAILED, "", envelope),
    }
    // Ranges are for GET only (RFC 9110, section 14.2).
    let range = head.range.as_deref().filter(|_| {
        head.method == Method::Get && conditions.is_none_or(|all| all.permit_range(validators, now))
    });
    let len = file.version.len;
    match range.map_or(RangeOutcome::Whole, |range| Range::parse(range, len)) {
        RangeOutcome::Whole => HttpReply::of_file(file, None, envelope),
        RangeOutcome::Part(part) => HttpReply::of_file(file, Some(part), envelope),
        RangeOutcome::Unsatisfiable => {
            let field = format!("Content-Range: bytes */{len}\r\n");
            HttpReply::of_status(Status::UNSATISFIABLE, &field, envelope)
        }
    }
}

/// The path of a directory as a reference, with its slash. One slash begins it: with two, the next part would be another host.
fn location(path: &str) -> String {
    let mut text = String::from("/");
    for byte in path.trim_start_matches('/').bytes() {
        match byte {
            // RFC 3986, sections 2.3 and 3.3.
            b'/' | b'-' | b'.' | b'_' | b'~' => text.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            byte => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text + "/"
}

fn seconds(now: Time) -> i64 {
    (now.as_nanos() / 1_000_000_000) as i64
}
