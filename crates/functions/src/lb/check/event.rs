//! What checks find out.

use std::net::IpAddr;

use rheostat_base::Time;
use thiserror::Error;

/// Why a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// Nothing came in time.
    #[error("no answer in time")]
    Silent,
    /// The port is closed: the opening was answered with a reset.
    #[error("connection refused")]
    Refused,
    /// A router or the host itself says that the backend cannot be reached.
    #[error("unreachable, says an ICMP error (code {0})")]
    Unreachable(u8),
    /// The connection was reset before the answer.
    #[error("connection reset before the answer")]
    Reset,
    /// The connection was closed before the answer.
    #[error("connection closed before the answer")]
    Closed,
    /// The answer has another status than those expected.
    #[error("status {0}")]
    Status(u16),
    /// The answer is not that of a web server.
    #[error("the answer is not HTTP")]
    NotHttp,
}

/// A backend is up or down from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthEvent {
    /// When.
    pub time: Time,
    /// The service's place in the configuration.
    pub service: usize,
    /// Its name.
    pub service_name: String,
    /// The backend's place in its service.
    pub backend: usize,
    /// Its address.
    pub address: IpAddr,
    /// Why it is down; `None` when it is up.
    pub failure: Option<Failure>,
}

impl HealthEvent {
    /// Whether the backend is up.
    pub fn is_up(&self) -> bool {
        self.failure.is_none()
    }
}
