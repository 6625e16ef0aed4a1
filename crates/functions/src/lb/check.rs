//! Active health checks: backends are asked from time to time, and those that do not answer as they should
//! get no more clients. No input or output and no clock: a local service of the network
//! asks it what to send, and passes on what came.
//!
//! A backend counts as down after `fall` checks in a row that fail, and as up after `rise` that succeed.
//! Before its first check it counts as up.

mod event;
mod http;
mod local_service;
mod probe;
mod target;
#[cfg(test)]
mod tests;

pub use event::{Failure, HealthEvent};
pub use http::{HttpCheck, LONGEST_REQUEST, StatusRange};
pub use local_service::{HealthChecks, NoSource};

use std::time::Duration;

/// How the backends of a service are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckConfig {
    /// What is asked of them.
    pub kind: CheckKind,
    /// The port that is asked, where it is not the one that clients get to.
    pub port: Option<u16>,
    /// From one check of a backend to the next; it varies by a tenth, so that checks spread.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Checks in a row that must succeed until a backend that is down counts as up; at least 1.
    pub rise: u32,
    /// Checks in a row that must fail until a backend that is up counts as down; at least 1.
    pub fall: u32,
}

/// What is asked of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// An echo (RFC 792, RFC 4443).
    Icmp,
    /// To accept a connection, which is reset at once (RFC 9293).
    Tcp,
    /// To answer a request with an expected status (RFC 9112).
    Http(HttpCheck),
}

impl CheckConfig {
    /// A check of this kind, every five seconds, for a second, with two to rise and three to fall.
    pub fn new(kind: CheckKind) -> CheckConfig {
        CheckConfig {
            kind,
            port: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 3,
        }
    }
}
