//! A service beside the kernel's own TCP, on the same virtual cable and with the same client.
//!
//! Each station is a pair of namespaces with a cable between them. The client is the kernel's TCP in a thread of this process; the
//! server is a thread of this process with sockets of the kernel and `epoll`, or `rheo serve echo`. All stations are set up before
//! anything is measured, and measured in turn, so that changes of the machine's speed affect all of them. Counted is what all
//! processors do: on a virtual cable either side does a part of the other's work. What the client takes is in the figures of both.

mod client;
mod epoll_server;
mod idle;
mod peer;
mod program_time;
mod row;
mod station;
#[cfg(test)]
mod tests;
mod usage;

pub use idle::{IdleBench, IdleRow};
pub use peer::Peer;
pub use row::PeerRow;

use std::path::PathBuf;
use std::time::Duration;

use crate::live::LiveError;
use crate::testbed::{Cores, on_core};
use client::ClientPace;
use row::PeerMeasurement;
use station::Station;
use usage::{Usage, UsageWindow};

/// Requests under way.
const UNDER_WAY: usize = 64;
/// What precedes the first window of each station: every connection has made some requests.
const WARM_UP: Duration = Duration::from_millis(300);

/// Measures peers side by side.
#[derive(Clone, Debug)]
pub struct PeersBench {
    /// The command `rheo` that is measured.
    pub rheo: PathBuf,
    /// Connections to each peer.
    pub connections: u32,
    /// Windows measured of each station.
    pub windows: usize,
    /// The length of a window.
    pub window: Duration,
}

impl PeersBench {
    /// Measures these peers, each at two stations, of which the difference is chance.
    ///
    /// # Errors
    /// [`LiveError`] when something is missing on the machine, or a peer does not answer.
    pub fn run(&self, peers: &[Peer]) -> Result<Vec<PeerRow>, LiveError> {
        let cores = cores()?;
        on_core(cores.first(), || {
            let mut stations = Vec::new();
            for peer in peers.iter().chain(peers) {
                stations.push(Station::build(*peer, self.connections, &self.rheo, cores.last())?);
            }
            for station in &mut stations {
                station.client.run(ClientPace::Saturated { under_way: UNDER_WAY }, WARM_UP)?;
            }
            let mut windows = vec![Vec::with_capacity(self.windows); stations.len()];
            for _ in 0..self.windows {
                for (station, windows) in stations.iter_mut().zip(&mut windows) {
                    windows.push(self.window(station)?);
                }
            }
            let mut programs = Vec::new();
            for station in stations.iter_mut().take(peers.len()) {
                programs.push(self.program_ns(station)?);
            }
            let mut send_calls = Vec::new();
            for station in stations {
                send_calls.push(station.stop()?);
            }
            let again = windows.split_off(peers.len());
            let measured: Vec<PeerMeasurement> = (windows.into_iter().zip(again))
                .zip(programs.into_iter().zip(send_calls))
                .map(|((first, again), (program_ns, send_calls_per_packet))| PeerMeasurement {
                    first,
                    again,
                    program_ns,
                    send_calls_per_packet,
                })
                .collect();
            let epoll = peers.iter().position(|peer| *peer == Peer::Epoll);
            let epoll = epoll.map(|at| measured[at].clone());
            let row = |(peer, measured): (&Peer, PeerMeasurement)| {
                PeerRow::new(*peer, self.connections, &measured, epoll.as_ref())
            };
            Ok(peers.iter().zip(measured).map(row).collect())
        })
    }

    fn window(&self, station: &mut Station) -> Result<UsageWindow, LiveError> {
        let before = Usage::now(&station.tasks())?;
        let pace = ClientPace::Saturated { under_way: UNDER_WAY };
        let replies = station.client.run(pace, self.window)?.replies;
        Ok(Usage::now(&station.tasks())?.since(&before, replies))
    }

    /// What the kernel's account of XDP programs has for a request, which makes every run of one slower: not in a window.
    fn program_ns(&self, station: &mut Station) -> Result<f64, LiveError> {
        let meter = program_time::ProgramTimeMeter::start()?;
        let pace = ClientPace::Saturated { under_way: UNDER_WAY };
        let replies = station.client.run(pace, self.window)?.replies;
        Ok(meter.nanos()? as f64 / replies.max(1) as f64)
    }
}

/// The cores of client and server, which are the first and the last.
fn cores() -> Result<Cores, LiveError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LiveError::NotRoot);
    }
    Ok(Cores::available()?)
}
