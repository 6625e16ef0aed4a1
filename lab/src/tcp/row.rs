//! What a measurement came to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Clients alone, whose packets are turned round.
    Harness,
    /// Requests on connections that stay.
    Requests,
    /// A request on each connection, which is opened for it and closed behind it.
    Connections,
    /// Replies of a mebibyte; figures are those of a segment of 1,448 bytes.
    Bulk,
}

impl Kind {
    /// The name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Harness => "harness",
            Kind::Requests => "requests",
            Kind::Connections => "connections",
            Kind::Bulk => "bulk",
        }
    }
}

/// A row. Times are nanoseconds of a lane per request, or per segment in a row of bulk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What is measured.
    pub kind: Kind,
    /// The device.
    pub device: String,
    /// Lanes.
    pub lanes: usize,
    /// Connections that are open, or as many as take turns to be.
    pub connections: u32,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a reply.
    pub reply_bytes: u32,
    /// Requests per second of all lanes, clients' time left out.
    pub requests_per_second: f64,
    /// From one request of a lane to the next, clients' time included.
    pub ns_per_request: f64,
    /// The cost: inside the service.
    pub process_ns: f64,
    /// The clients' time.
    pub generator_ns: f64,
    /// From one request to the next of the harness.
    pub harness_ns: f64,
    /// By how much the process has grown, for each connection.
    pub bytes_per_connection: f64,
    /// Allocations per request.
    pub allocations: f64,
    /// Segments that the service gets, and sends, per request.
    pub segments: [f64; 2],
    /// The least and the largest cost of a window.
    pub process_range: [f64; 2],
    /// The rate of all lanes by that of as many processes with one lane each at the same time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of_processes: Option<f64>,
    /// Where the true median of that ratio lies with a confidence of 95 %, or its least and largest value of fewer than six.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of_processes_range: Option<[f64; 2]>,
}

/// The heading of a table of rows.
pub fn heading() -> String {
    format!(
        "{:<12} {:>5} {:>11} {:>10} {:>8} {:>10} {:>12} {:>10} {:>8} {:>11} {:>8} {:>9}",
        "kind",
        "lanes",
        "connections",
        "request/s",
        "ns/req",
        "process ns",
        "generator ns",
        "harness ns",
        "bytes/c",
        "allocations",
        "segments",
        "processes"
    )
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [taken, sent] = self.segments;
        write!(
            f,
            "{:<12} {:>5} {:>11} {:>10.0} {:>8.0} {:>10.0} {:>12.0} {:>10.0} {:>8.0} {:>11.4} {:>8} {:>9}",
            self.kind.name(),
            self.lanes,
            self.connections,
            self.requests_per_second,
            self.ns_per_request,
            self.process_ns,
            self.generator_ns,
            self.harness_ns,
            self.bytes_per_connection,
            self.allocations,
            format!("{taken:.1}/{sent:.1}"),
            self.of_processes.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
        )
    }
}
