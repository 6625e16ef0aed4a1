//! Why a server cannot be measured.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// Why a server cannot be measured, or not any more.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A socket cannot be had.
    #[error("cannot {task}: {source}")]
    Socket {
        /// What was to be done.
        task: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The server does not accept a connection.
    #[error("cannot connect to {server}: {source} ({open} of {wanted} connections are open)")]
    Connect {
        /// The server.
        server: SocketAddr,
        /// Why not.
        source: io::Error,
        /// Connections that are open.
        open: usize,
        /// Connections that were wanted.
        wanted: usize,
    },
    /// No port is left that leads to a queue.
    #[error(
        "no source port is left that leads to queue {queue} of {server}: ask for fewer connections"
    )]
    Ports {
        /// The server.
        server: SocketAddr,
        /// The queue.
        queue: usize,
    },
    /// The server ends every connection before it answers anything.
    #[error("{server} closes each connection without an answer: is `{protocol}` its protocol?")]
    Closed {
        /// The server.
        server: SocketAddr,
        /// The protocol that was spoken.
        protocol: &'static str,
    },
    /// The server answers, but not in the protocol.
    #[error("{server} does not speak `{protocol}`: {what}")]
    Garbage {
        /// The server.
        server: SocketAddr,
        /// The protocol that was spoken.
        protocol: &'static str,
        /// What is wrong with what it said.
        what: &'static str,
    },
    /// All connections are gone, and none can be opened.
    #[error("{server} has had no connection for {for_how_long:?}: {reason}")]
    Gone {
        /// The server.
        server: SocketAddr,
        /// Since when.
        for_how_long: Duration,
        /// What happened to the last.
        reason: String,
    },
    /// The client did not reach the rate against a sink in its own process.
    #[error(
        "this client cannot offer {asked:.0} requests/s here: to a sink in this process it sent {offered:.0}/s. Ask for less, or give \
         it more cores"
    )]
    Floor {
        /// The rate asked for.
        asked: f64,
        /// The rate reached.
        offered: f64,
    },
}
