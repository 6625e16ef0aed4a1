//! The threads that answer clients. They share no lock with the lanes: a client that is slow, silent or
//! gone costs the run nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rheostat_observe::control::{self, Reply, Request};
use rheostat_observe::live_page::EventLog;
use rheostat_observe::openmetrics::Snapshot;
use rheostat_run::RunView;
use rustix::net::{Shutdown, shutdown};

use super::peer::Peer;
use super::socket::ControlSocket;

/// Clients served at the same time.
const CLIENTS: usize = 16;

/// A running instance, as clients of the control socket see it.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Answers a request.
    ///
    /// # Errors
    /// When the client has gone, or does not read.
    fn answer(&self, request: Request, peer: &mut Peer) -> io::Result<()>;

    /// The state of the run now.
    fn snapshot(&self, depth: Depth) -> Snapshot;

    /// The configuration that it goes by, as text.
    fn config(&self) -> String;

    /// Its events.
    fn events(&self) -> &EventLog;

    /// Its lanes and devices, if it has any.
    fn view(&self) -> Option<&Arc<RunView>>;
}

/// The parts of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The counters that any thread can read. No lane notices.
    Counters,
    /// Those of functions as well, which lanes are asked for.
    Functions,
}

/// The control socket of a run in service. Dropping it ends all conversations and removes the socket.
#[derive(Debug)]
pub(crate) struct Server {
    socket: Arc<ControlSocket>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers clients that connect to `socket` about `instance`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(socket: ControlSocket, instance: Arc<dyn Answers>) -> io::Result<Server> {
        let socket = Arc::new(socket);
        let over = Arc::new(AtomicBool::new(false));
        let (listening, ended) = (socket.clone(), over.clone());
        let accept = move || accept(&listening, &instance, &ended);
        let thread = thread::Builder::new().name("rheo-control".into()).spawn(accept)?;
        Ok(Server { socket, over, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = shutdown(self.socket.listener(), Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(socket: &ControlSocket, instance: &Arc<dyn Answers>, over: &Arc<AtomicBool>) {
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let Ok((stream, _)) = socket.listener().accept() else {
            // Out of descriptors, say: others may have some again soon.
            thread::sleep(std::time::Duration::from_millis(20));
            continue;
        };
        clients.retain(|client| !client.is_finished());
        let Ok(peer) = Peer::new(stream, over.clone()) else { continue };
        let busy = clients.len() >= CLIENTS;
        let instance = instance.clone();
        let client = move || {
            // The client has closed or does not read: the error cannot be reported to it.
            let _ = converse(peer, &*instance, busy);
        };
        let client = thread::Builder::new().name("rheo-client".into()).spawn(client);
        clients.extend(client);
    }
    for client in clients {
        let _ = client.join();
    }
}

fn converse(mut peer: Peer, instance: &dyn Answers, busy: bool) -> io::Result<()> {
    if busy {
        let message = format!("{CLIENTS} clients are being served already: try again later");
        return peer.send(&Reply::Error { message });
    }
    if !peer.is_entitled() {
        let message = "only the owner of this instance and root may ask".to_owned();
        return peer.send(&Reply::Error { message });
    }
    while let Some(line) = peer.next_line()? {
        match control::parse(&line) {
            Ok(request) => {
                note(&request, &peer);
                instance.answer(request, &mut peer)?;
            }
            Err(reply) => peer.send(&reply)?,
        }
    }
    Ok(())
}

/// Logs a request: one that changes something at info.
fn note(request: &Request, peer: &Peer) {
    let Some((user, process)) = peer.user_and_process() else { return };
    let changed = match request {
        Request::Stop => "stop".to_owned(),
        Request::Keep => "keep".to_owned(),
        Request::Reload(_) => "reload".to_owned(),
        Request::DeleteFlows(flows) => format!("delete flows {flows:?}"),
        Request::Backend { service, backend, health } => {
            format!("backend {service} {backend} {health}")
        }
        Request::Table { device, entries, shuffle } if entries.is_some() || shuffle.is_some() => {
            format!("table {device} rewritten")
        }
        _ => {
            tracing::debug!(target: "control", user, process, "request {request:?}");
            return;
        }
    };
    tracing::info!(target: "control", user, process, "request: {changed}");
}

#[cfg(test)]
mod tests;
