//! The thread that serves HTTP. It shares no lock with the lanes, has no privileges, and bounds how many clients it serves, how long
//! each may take, and how often lanes are asked.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rheostat_observe::openmetrics::{self, Format, Snapshot};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;

use super::HttpListener;
use super::policy::{Answer, Asked, Refusal};
use crate::control::Answers;

/// Clients served at the same time; others wait until one has gone.
const CLIENTS: usize = 32;
/// How long a client may take to send a request, or be silent between two.
const REQUEST: Duration = Duration::from_secs(10);
/// How long a client is served at most: one that does not read its reply keeps its place no longer.
const CONNECTION: Duration = Duration::from_secs(60);
/// How old a page may be when it is given once more: whatever clients do, lanes are asked no oftener.
const FRESH: Duration = Duration::from_millis(100);
/// The longest head of a request, in bytes.
const HEAD: usize = 16 << 10;

const INDEX: &str = "<!doctype html><html lang=\"en\"><title>rheo</title><p><a href=\"/metrics\">metrics</a></html>\n";

/// HTTP of a run in service. Dropping it ends all connections.
#[derive(Debug)]
pub(crate) struct HttpServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves the metrics of `instance`.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(
        listener: HttpListener,
        instance: Arc<dyn Answers>,
    ) -> io::Result<HttpServer> {
        let (stop, stopped) = oneshot::channel();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).thread_name("rheo-http");
        let runtime = runtime.build()?;
        let guard = runtime.enter();
        let accepting = TcpListener::from_std(listener.listener)?;
        drop(guard);
        let site = Arc::new(Site { instance, names: listener.names, last: Mutex::default() });
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(accepting, site) => {}
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
            // The client has gone, or was too slow: the error cannot be reported to it.
            let _ = tokio::time::timeout(CONNECTION, converse(stream, site)).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, site: Arc<Site>) -> Result<(), hyper::Error> {
    let reply = service_fn(|request| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(site.reply(&request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), reply)
        .await
}

impl Site {
    async fn reply(self: &Arc<Site>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
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
                    Err(_) => reply(500, PLAIN, "the metrics could not be read\n".to_owned()),
                }
            }
            Answer::Index => reply(200, "text/html; charset=utf-8", INDEX.to_owned()),
            Answer::Refused(refusal) => {
                let (status, text) = refusal.reply();
                let mut reply = reply(status, PLAIN, text.to_owned());
                if refusal == Refusal::Method {
                    reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                }
                reply
            }
        }
    }

    /// The page of metrics, from the last snapshot while it is fresh.
    fn page(&self, format: Format) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = match last.take() {
            Some((taken, snapshot)) if taken.elapsed() < FRESH => (taken, snapshot),
            _ => (Instant::now(), self.instance.snapshot()),
        };
        let page = openmetrics::encode(snapshot.1.clone(), format);
        *last = Some(snapshot);
        page
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn reply(status: u16, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = StatusCode::from_u16(status).expect("only known statuses come here");
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    reply
}

#[cfg(test)]
mod tests;
