//! What a peer costs.

use rheostat_measure::quantiles::{Sorted, median};
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::UNDER_WAY;
use super::client::REQUEST;
use super::peer::Peer;
use super::usage::UsageWindow;

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
pub(super) struct PeerMeasurement {
    pub(super) first: Vec<UsageWindow>,
    pub(super) again: Vec<UsageWindow>,
    pub(super) program_ns: f64,
    pub(super) send_calls_per_packet: Option<f64>,
}

impl PeerMeasurement {
    fn windows(&self) -> impl Iterator<Item = &UsageWindow> {
        self.first.iter().chain(&self.again)
    }

    fn median(&self, value: impl Fn(&UsageWindow) -> f64) -> f64 {
        median(self.windows().map(value))
    }
}

impl PeerRow {
    pub(super) fn new(
        peer: Peer,
        connections: u32,
        measured: &PeerMeasurement,
        epoll: Option<&PeerMeasurement>,
    ) -> PeerRow {
        let range = Sorted::of(measured.windows().map(cost)).range();
        let [first, again] =
            [&measured.first, &measured.again].map(|windows| median(windows.iter().map(cost)));
        let ratios = epoll.filter(|_| peer != Peer::Epoll).map(|epoll| {
            let rounds = measured.windows().zip(epoll.windows());
            median(rounds.map(|(window, epoll)| cost(window) / cost(epoll)))
        });
        let sum = |at: usize| measured.windows().map(|window| window.samples[at]).sum::<f64>();
        let user = sum(0) / (sum(0) + sum(1)).max(1.0);
        let server = measured.median(|window| per(window, window.server));
        let known = |window: &UsageWindow| window.client + window.server;
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
            cpu_ns_range: range.unwrap_or_default().map(to_thousandths),
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
fn cost(window: &UsageWindow) -> f64 {
    per(window, window.cpu.busy)
}

/// Seconds of a window as nanoseconds per request.
fn per(window: &UsageWindow, seconds: f64) -> f64 {
    1e9 * seconds / window.replies.max(1) as f64
}

impl TableRow for PeerRow {
    const COLUMNS: &'static [Column<PeerRow>] = &[
        Column::name("peer", 6, |row| &row.peer),
        Column::name("device", 10, |row| &row.device),
        Column::name("polling", 10, |row| &row.polling),
        Column::count("connections", 11, |row| row.connections.into()),
        Column::number("request/s", 10, 0, |row| row.requests_per_second),
        Column::number("cpu ns/req", 10, 0, |row| row.cpu_ns_per_request),
        Column::known("of epoll", 8, 2, |row| row.of_epoll),
        Column::number("A/A", 8, 2, |row| row.aa_spread),
        Column::number("client ns", 9, 0, |row| row.client_ns),
        Column::number("server user", 11, 0, |row| row.server_user_ns),
        Column::number("server system", 13, 0, |row| row.server_system_ns),
        Column::number("other ns", 8, 0, |row| row.other_ns),
        Column::number("program ns", 10, 0, |row| row.program_ns),
        Column::known("calls", 6, 2, |row| row.send_calls_per_packet),
    ];
}
