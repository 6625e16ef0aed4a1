//! A server and a client with a cable between them.
//!
//! ```text
//! client  eth ────── eth  server
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use rheostat_base::CoreId;

use super::client::PeerClient;
use super::epoll_server::EpollServer;
use super::peer::Peer;
use super::usage::Tasks;
use crate::live::LiveError;
use crate::testbed::{Namespace, NamespaceEnd, RheoProcess, TestbedError, lay, on_core};

/// The interface of either end.
const INTERFACE: &str = "eth";
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), 7);

/// A peer with a client of its own.
pub(super) struct Station {
    pub(super) client: PeerClient,
    // Before the namespaces it is in.
    server: Server,
    _near: Namespace,
    _far: Namespace,
}

enum Server {
    Epoll(EpollServer),
    Serve(RheoProcess),
}

impl Station {
    /// Connects so many connections to a server on this core.
    pub(super) fn build(
        peer: Peer,
        connections: u32,
        rheo: &Path,
        core: CoreId,
    ) -> Result<Station, LiveError> {
        let (near, far) = (Namespace::new("client")?, Namespace::new("server")?);
        // Offloads of the kernel's sockets stay as Linux has them. A socket that receives frames gets them whole only without.
        let without: &[&str] = match peer {
            Peer::Epoll => &[],
            Peer::Serve { .. } => &["tx", "tso", "gso", "gro"],
        };
        let [near_end, far_end] = [&near, &far].map(|namespace| NamespaceEnd {
            namespace,
            interface: INTERFACE,
            mac: None,
            without,
        });
        lay(near_end, far_end)?;
        near.ip(&format!("addr add 10.9.0.2/24 dev {INTERFACE}"))?;
        let server = match peer {
            Peer::Epoll => {
                far.ip(&format!("addr add 10.9.0.1/24 dev {INTERFACE}"))?;
                let listener = far.enter(|| TcpListener::bind(SERVER))?;
                let listener =
                    listener.map_err(|error| LiveError::Socket { task: "listen", error })?;
                Server::Epoll(EpollServer::start(listener, core)?)
            }
            Peer::Serve { device, polling } => {
                let serving = on_core(core, || serve(&far, rheo, device, polling, connections));
                Server::Serve(serving?)
            }
        };
        let client = near.enter(|| PeerClient::connect(SERVER, connections))??;
        Ok(Station { client, server, _near: near, _far: far })
    }

    /// Where the server runs.
    pub(super) fn tasks(&self) -> Tasks {
        match &self.server {
            Server::Epoll(server) => Tasks::Thread(server.thread()),
            Server::Serve(process) => Tasks::Process(process.id()),
        }
    }

    /// Ends the server, and returns how many system calls a service made for a packet that it sent.
    ///
    /// # Errors
    /// [`TestbedError::Rheo`] when an invariant of the service did not hold.
    pub(super) fn stop(self) -> Result<Option<f64>, LiveError> {
        drop(self.client);
        match self.server {
            Server::Epoll(server) => server.stop().map(|()| None),
            Server::Serve(process) => Ok(send_calls_per_packet(&process.stop()?)),
        }
    }
}

/// What the summary of a service has of its system calls.
fn send_calls_per_packet(output: &str) -> Option<f64> {
    let summary: serde_json::Value = serde_json::from_str(output.lines().last()?).ok()?;
    let count = |name: &str| summary[name].as_f64();
    Some(count("send_calls")? / count("packets_sent")?.max(1.0))
}

/// `rheo serve echo`, with one lane.
fn serve(
    namespace: &Namespace,
    rheo: &Path,
    device: &str,
    polling: &str,
    connections: u32,
) -> Result<RheoProcess, TestbedError> {
    let limit = (connections + 1_024).to_string();
    let device = format!("lan={device}:{INTERFACE}");
    let address = format!("{}/24", SERVER.ip());
    let port = SERVER.port().to_string();
    let arguments = ["serve", "echo", "--device", &device, "--address", &address, "--port", &port]
        .into_iter()
        .chain(["--lanes", "1", "--polling", polling, "--connections", &limit, "--json"])
        .map(String::from)
        .collect();
    let mut process = RheoProcess::start(namespace, rheo, |_| Ok(arguments))?;
    process.wait_until(|process| process.output().contains("listening"))?;
    Ok(process)
}
