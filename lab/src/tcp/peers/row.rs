//! What a peer costs.

use std::fmt;

use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::UNDER_WAY;
use super::client::REQUEST;
use super::peer::Peer;
use super::usage::Window;

/// A peer. Times are nanoseconds per request, medians of windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerRow {
    /// `epoll`, or `serve`.
    pub peer: String,
    /// `kernel`, or the kind of the service's device.
    pub device: String,
    /// How it waits for packets.
    pub polling: String,
    /// Connections.
    pub connections: u32,
    /// Requests under way.
    pub under_way: u32,
    /// Bytes of a request, and of a reply.
    pub request_bytes: u32,
    /// Replies.
    pub requests_per_second: f64,
    /// What all processors do, the client included.
    pub cpu_ns_per_request: f64,
    /// The least and the largest of a window.
    pub cpu_ns_range: [f64; 2],
    /// The larger median of the two stations by the smaller.
    pub aa_spread: f64,
    /// The cost by that of `epoll` in the same round.
    pub of_epoll: Option<f64>,
    /// The client's thread. On a virtual cable this has much of the way to the server, and of its work in the kernel.
    pub client_ns: f64,
    /// The server outside of the kernel: for a service, device, lane, TCP and application.
    pub server_user_ns: f64,
    /// The server in the kernel: system calls, and much of the way to the client.
    pub server_system_ns: f64,
    /// Everything else that ran.
    pub other_ns: f64,
    /// The service's XDP program, which runs on the client's time; with the cost of the kernel's account of it.
    pub program_ns: f64,
    /// System calls that the service made to send, by packets that it sent, from its start to its end.
    #[serde(default)]
    pub send_calls_per_packet: Option<f64>,
    /// The share of processor time that the hypervisor took.
    pub stolen: f64,
}

/// The windows of the two stations of a peer.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) first: Vec<Window>,
    pub(super) again: Vec<Window>,
    pub(super) program_ns: f64,
    pub(super) send_calls_per_packet: Option<f64>,
}

impl Measured {
    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.first.iter().chain(&self.again)
    }

    fn median(&self, value: impl Fn(&Window) -> f64) -> f64 {
        median(self.windows().map(value))
    }
}

impl PeerRow {
    /// The heading of a table of rows.
    pub fn heading() -> String {
        format!(
            "{:<6} {:<10} {:<10} {:>11} {:>10} {:>10} {:>8} {:>8} {:>9} {:>11} {:>13} {:>8} {:>10} {:>6}",
            "peer",
            "device",
            "polling",
            "connections",
            "request/s",
            "cpu ns/req",
            "of epoll",
            "A/A",
            "client ns",
            "server user",
            "server system",
            "other ns",
            "program ns",
            "calls"
        )
    }

    pub(super) fn new(
        peer: Peer,
        connections: u32,
        measured: &Measured,
        epoll: Option<&Measured>,
    ) -> PeerRow {
        let mut costs: Vec<f64> = measured.windows().map(cost).collect();
        costs.sort_by(f64::total_cmp);
        let [first, again] =
            [&measured.first, &measured.again].map(|windows| median(windows.iter().map(cost)));
        let ratios = epoll.filter(|_| peer != Peer::Epoll).map(|epoll| {
            let rounds = measured.windows().zip(epoll.windows());
            median(rounds.map(|(window, epoll)| cost(window) / cost(epoll)))
        });
        let sum = |at: usize| measured.windows().map(|window| window.samples[at]).sum::<f64>();
        let user = sum(0) / (sum(0) + sum(1)).max(1.0);
        let server = measured.median(|window| per(window, window.server));
        let known = |window: &Window| window.client + window.server;
        PeerRow {
            peer: peer.name().into(),
            device: peer.device().into(),
            polling: peer.polling().into(),
            connections,
            under_way: UNDER_WAY as u32,
            request_bytes: REQUEST as u32,
            requests_per_second: measured
                .median(|window| (window.replies as f64 / window.cpu.elapsed).round()),
            cpu_ns_per_request: to_thousandths(measured.median(cost)),
            cpu_ns_range: [costs[0], costs[costs.len() - 1]].map(to_thousandths),
            aa_spread: to_thousandths(first.max(again) / first.min(again)),
            of_epoll: ratios.map(to_thousandths),
            client_ns: to_thousandths(measured.median(|window| per(window, window.client))),
            server_user_ns: to_thousandths(server * user),
            server_system_ns: to_thousandths(server * (1.0 - user)),
            other_ns: to_thousandths(
                measured.median(|window| per(window, window.cpu.busy - known(window))),
            ),
            program_ns: to_thousandths(measured.program_ns),
            send_calls_per_packet: measured.send_calls_per_packet.map(to_thousandths),
            stolen: to_thousandths(
                measured.median(|window| window.cpu.stolen / window.cpu.elapsed),
            ),
        }
    }
}

/// What all processors did for a request.
fn cost(window: &Window) -> f64 {
    per(window, window.cpu.busy)
}

/// Seconds of a window as nanoseconds per request.
fn per(window: &Window, seconds: f64) -> f64 {
    1e9 * seconds / window.replies.max(1) as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for PeerRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {:<10} {:<10} {:>11} {:>10.0} {:>10.0} {:>8} {:>8.2} {:>9.0} {:>11.0} {:>13.0} {:>8.0} {:>10.0} {:>6}",
            self.peer,
            self.device,
            self.polling,
            self.connections,
            self.requests_per_second,
            self.cpu_ns_per_request,
            self.of_epoll.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
            self.aa_spread,
            self.client_ns,
            self.server_user_ns,
            self.server_system_ns,
            self.other_ns,
            self.program_ns,
            self.send_calls_per_packet.map_or_else(|| "-".into(), |calls| format!("{calls:.2}"))
        )
    }
}
