//! Clients of a service over TCP at the far end of a simulated link, in real time: a source that answers.
//!
//! ```text
//!            poll ──► what clients have to say, and new requests ──► frames ──► lane
//! Pace ──► request of a connection chosen uniformly
//!            send ◄── replies: checked, acknowledged, followed by the next request ◄── lane
//! ```
//!
//! A client keeps 88 bytes and follows TCP as far as a link that loses nothing asks for: it opens, sends requests within the
//! window that it is offered, takes replies in order, acknowledges them with its next request or after a delay, and closes. What a
//! lane drops is noticed after 300 ms and sent again. Every byte of a request is a function of the connection and of its place in
//! the stream, so a reply that repeats its request can be checked.
//!
//! There are no descriptors: a request waits with its client until the lane has room in its burst. Clients are kept by bucket of
//! the indirection table, each bucket behind a lock that only the lane uses which has the bucket, so that a table can be
//! rewritten while they talk. A frame is made when it is received, by the table in force then: the fence of a rewrite has passed
//! when the rewrite returns.
//!
//! The time that queues spend here is counted ([`ClientCounters::ticks`]), so that a measurement can leave it out.

mod client;
mod counters;
mod device;
pub mod frame;
mod pattern;
mod population;
mod queue;
mod side;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::time::Duration;

use rheostat_base::DeviceId;

pub use counters::{ClientCounters, ClientTotals};
pub use device::Clients;
pub use pattern::fill as fill_pattern;

/// Clients, and what they do.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientsConfig {
    /// The device's name.
    pub name: String,
    /// The device's number.
    pub device: DeviceId,
    /// Receive queues.
    pub queues: usize,
    /// The link addresses of the clients' router and of the server.
    pub macs: [[u8; 6]; 2],
    /// Where the service is.
    pub server: (Ipv4Addr, u16),
    /// The first of the clients' addresses, each of which has up to [`ClientsConfig::PORTS`] connections.
    pub first_address: Ipv4Addr,
    /// Connections.
    pub connections: u32,
    /// Bytes of a request.
    pub request: u32,
    /// What comes back.
    pub reply: Reply,
    /// When requests are made.
    pub pace: Pace,
    /// After how many requests a client closes its connection, to open another with its next request; never without.
    pub requests_per_connection: Option<u32>,
    /// How long an acknowledgement waits for a request to go with.
    pub ack_delay: Duration,
    /// From when a packet is sent until its client says something about it.
    pub delay: Duration,
    /// What connections and times are drawn from.
    pub seed: u64,
}

impl ClientsConfig {
    /// Connections of one address.
    pub const PORTS: u32 = 60_000;

    /// Clients of `server`, behind one queue, that send requests of 128 bytes and get them back, one at a time.
    pub fn new(device: DeviceId, server: (Ipv4Addr, u16), connections: u32) -> ClientsConfig {
        ClientsConfig {
            name: "sim".into(),
            device,
            queues: 1,
            macs: [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]],
            server,
            first_address: Ipv4Addr::new(10, 1, 0, 1),
            connections,
            request: 128,
            reply: Reply::Same,
            pace: Pace::Saturated { under_way: 64 },
            requests_per_connection: None,
            ack_delay: Duration::from_millis(40),
            delay: Duration::ZERO,
            seed: 1,
        }
    }
}

/// What comes back for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The same bytes.
    Same,
    /// So many bytes, whatever they are.
    Bytes(u32),
}

/// When requests are made. Each is of a connection chosen uniformly among those of a queue that wait for nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as fewer than so many are under way in a queue: as many as a lane takes.
    Saturated {
        /// Requests under way.
        under_way: u32,
    },
    /// At random, so many per second in a queue on average, whether or not earlier ones were answered. One that finds no connection
    /// that waits for nothing is made late, and its latency counts from when it was due.
    Poisson {
        /// Requests per second and queue.
        per_second: f64,
    },
}
