//! The thread that serves HTTP. It shares no lock with the lanes, has no privileges, and bounds how many clients it serves, how long
//! each may take, and how often lanes are asked.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rheostat_observe::openmetrics::{self, Format, Snapshot};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

use super::HttpListener;
use super::feed::{Feed, LISTENERS, Listening, Pace};
use super::patience::Patience;
use super::policy::{Answer, Asked, Refusal};
use crate::control::{Answers, Depth};

/// Clients served at the same time, listeners included; others wait until one has gone.
const CLIENTS: usize = LISTENERS + 32;
/// How long a client may take to send a request, or be silent between two.
const REQUEST: Duration = Duration::from_secs(10);
/// How long a client that does not listen is served at most: one that does not read its reply keeps its place no longer.
const VISIT: Duration = Duration::from_secs(60);
/// How old a page may be when it is given once more: whatever clients do, lanes are asked no oftener.
const FRESH: Duration = Duration::from_millis(100);
/// The longest head of a request, in bytes.
const HEAD: usize = 16 << 10;

/// Everything that the page may do: load its own files, and follow its own feed.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// HTTP of a run in service. Dropping it ends all connections.
#[derive(Debug)]
pub(crate) struct HttpServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves the metrics and the live page of `instance`.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(
        listener: HttpListener,
        instance: Arc<dyn Answers>,
    ) -> io::Result<HttpServer> {
        HttpServer::start_at(listener, instance, Pace::USUAL)
    }

    fn start_at(
        listener: HttpListener,
        instance: Arc<dyn Answers>,
        pace: Pace,
    ) -> io::Result<HttpServer> {
        let (stop, stopped) = oneshot::channel();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).thread_name("rheo-http");
        let runtime = runtime.build()?;
        let guard = runtime.enter();
        let accepting = TcpListener::from_std(listener.listener)?;
        drop(guard);
        let feed = Arc::new(Feed::new(instance.clone(), pace));
        let last = Mutex::default();
        let site = Arc::new(Site { instance, feed: feed.clone(), names: listener.names, last });
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(accepting, site) => {}
                    () = feed.run() => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name("rheo-http".into()).spawn(serve)?;
        Ok(HttpServer { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is served.
struct Site {
    instance: Arc<dyn Answers>,
    feed: Arc<Feed>,
    names: Vec<String>,
    last: Mutex<Option<(Instant, Snapshot)>>,
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    let places = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: others may have some again soon.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let site = site.clone();
        tokio::spawn(async move {
            let patience = Patience::new(VISIT);
            tokio::select! {
                // The client has gone, or was too slow: the error cannot be reported to it.
                _ = converse(stream, site, patience.clone()) => {}
                () = patience.is_over() => {}
            }
            drop(place);
        });
    }
}

async fn converse(
    stream: TcpStream,
    site: Arc<Site>,
    patience: Patience,
) -> Result<(), hyper::Error> {
    let reply = service_fn(|request| {
        let (site, patience) = (site.clone(), patience.clone());
        async move { Ok::<_, Infallible>(site.reply(&request, patience).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), reply)
        .await
}

impl Site {
    async fn reply(
        self: &Arc<Site>,
        request: &Request<Incoming>,
        patience: Patience,
    ) -> Response<Reply> {
        let header = |name: HeaderName| request.headers().get(name)?.to_str().ok();
        let asked = Asked {
            method: request.method().as_str(),
            path: request.uri().path(),
            host: request.uri().authority().map(|host| host.as_str()).or_else(|| header(HOST)),
            accept: header(ACCEPT),
        };
        match asked.answer(&self.names) {
            Answer::Metrics(format) => {
                let site = self.clone();
                match spawn_blocking(move || site.page(format)).await {
                    Ok(page) => reply(200, format.content_type(), page),
                    Err(_) => reply(500, PLAIN, "the metrics could not be read\n"),
                }
            }
            Answer::Asset(asset) => reply(200, asset.kind, asset.text),
            Answer::Config => reply(200, PLAIN, self.instance.config()),
            // The head alone, which lasts no longer than others.
            Answer::Events if request.method() == Method::HEAD => reply(200, EVENTS, ""),
            Answer::Events => match self.feed.listen(patience) {
                Some(listening) => reply_with(200, EVENTS, Either::Right(listening)),
                None => refuse(Refusal::Listeners),
            },
            Answer::Refused(refusal) => refuse(refusal),
        }
    }

    /// The page of metrics, from the last snapshot while it is fresh.
    fn page(&self, format: Format) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = match last.take() {
            Some((taken, snapshot)) if taken.elapsed() < FRESH => (taken, snapshot),
            _ => (Instant::now(), self.instance.snapshot(Depth::Functions)),
        };
        let page = openmetrics::encode(snapshot.1.clone(), format);
        *last = Some(snapshot);
        page
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";
const EVENTS: &str = "text/event-stream";

/// The body of a reply: whole, or one that goes on.
type Reply = Either<Full<Bytes>, Listening>;

fn refuse(refusal: Refusal) -> Response<Reply> {
    let (status, text) = refusal.reply();
    let mut reply = reply(status, PLAIN, text);
    let mut insert =
        |name, value| reply.headers_mut().insert(name, HeaderValue::from_static(value));
    match refusal {
        Refusal::Method => {
            insert(ALLOW, "GET, HEAD");
        }
        Refusal::Listeners => {
            // The place is another's.
            insert(CONNECTION, "close");
            insert(RETRY_AFTER, "5");
        }
        Refusal::Path | Refusal::Host => {}
    }
    reply
}

fn reply(status: u16, kind: &'static str, text: impl Into<Bytes>) -> Response<Reply> {
    reply_with(status, kind, Either::Left(Full::new(text.into())))
}

fn reply_with(status: u16, kind: &'static str, body: Reply) -> Response<Reply> {
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).expect("only known statuses come here");
    let headers: &mut HeaderMap = reply.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

#[cfg(test)]
mod tests;
