//! What a measurement came to.

use rheostat_measure::record::{Column, TableRow};
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// Clients alone, whose packets are turned round.
    Harness,
    /// Requests on connections that stay.
    Requests,
    /// A request on each connection, which is opened for it and closed behind it.
    Connections,
    /// Replies of a mebibyte; figures are those of a segment of 1,448 bytes.
    Bulk,
}

impl RequestKind {
    /// The name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Harness => "harness",
            RequestKind::Requests => "requests",
            RequestKind::Connections => "connections",
            RequestKind::Bulk => "bulk",
        }
    }
}

/// A row. Times are nanoseconds of a lane per request, or per segment in a row of bulk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpRow {
    /// What is measured.
    pub kind: RequestKind,
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

impl TableRow for TcpRow {
    const COLUMNS: &'static [Column<TcpRow>] = &[
        Column::name("kind", 12, |row| row.kind.name()),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::count("connections", 11, |row| row.connections.into()),
        Column::number("request/s", 10, 0, |row| row.requests_per_second),
        Column::number("ns/req", 8, 0, |row| row.ns_per_request),
        Column::number("process ns", 10, 0, |row| row.process_ns),
        Column::number("generator ns", 12, 0, |row| row.generator_ns),
        Column::number("harness ns", 10, 0, |row| row.harness_ns),
        Column::number("bytes/c", 8, 0, |row| row.bytes_per_connection),
        Column::number("allocations", 11, 4, |row| row.allocations),
        Column::text("segments", 8, |row| {
            let [taken, sent] = row.segments;
            format!("{taken:.1}/{sent:.1}")
        }),
        Column::known("processes", 9, 2, |row| row.of_processes),
    ];
}
