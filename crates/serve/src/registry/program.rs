//! An application that was made, and what it runs over.

use std::sync::Arc;

use rheostat_base::CoreId;
use rheostat_ip::Network;
use thiserror::Error;

use crate::application::Application;
use crate::config::{ListenerConfig, ServeConfig};
use crate::handler::Handler;
use crate::host::{Host, HostError, RunningHost};
use crate::server::{ServeError, TcpServer};

/// Why an application cannot be made, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ApplicationError(pub String);

/// The surroundings in which an application is made.
#[derive(Clone, Debug, Default)]
pub struct Making {
    /// The cores on which requests are handled.
    pub cores: Vec<CoreId>,
}

/// An application, and its part of the summary.
pub struct MadeApplication {
    /// The application.
    pub program: Program,
    /// Its part of the summary, if it has one.
    pub report: Option<Box<dyn ApplicationReport>>,
}

impl From<Program> for MadeApplication {
    fn from(program: Program) -> MadeApplication {
        MadeApplication { program, report: None }
    }
}

/// An application's part of the summary of a run.
pub trait ApplicationReport: Send {
    /// Lines for people, each with its end.
    fn text(&self) -> String;

    /// One JSON value, for the key that has the application's name.
    fn json(&self) -> String;
}

/// An application of any type, before it runs.
pub struct Program(Box<dyn AnyProgram>);

impl Program {
    /// An application with requests.
    pub fn requests(app: impl Application) -> Program {
        Program(Box::new(Requests(app)))
    }

    /// An application that takes events of its connections.
    pub fn events(handler: impl Handler) -> Program {
        Program(Box::new(OfEvents(handler)))
    }

    /// Runs it in `lanes` lanes, over TCP of rheostat.
    ///
    /// # Errors
    /// As [`TcpServer::new`].
    pub fn over_lanes(
        self,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        self.0.over_lanes(listeners, limits, network, lanes, secret)
    }

    /// Runs it over TCP of the kernel, at listeners that are open.
    ///
    /// # Errors
    /// [`HostError`] when a thread cannot be started, or the application has no requests.
    pub fn over_kernel(self, host: Host) -> Result<RunningHost, HostError> {
        self.0.over_kernel(host)
    }
}

trait AnyProgram: Send {
    fn over_lanes(
        self: Box<Self>,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError>;

    fn over_kernel(self: Box<Self>, host: Host) -> Result<RunningHost, HostError>;
}

struct Requests<A>(A);

impl<A: Application> AnyProgram for Requests<A> {
    fn over_lanes(
        self: Box<Self>,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        TcpServer::new(self.0, listeners, limits, network, lanes, secret)
    }

    fn over_kernel(self: Box<Self>, host: Host) -> Result<RunningHost, HostError> {
        host.start(self.0)
    }
}

struct OfEvents<H>(H);

impl<H: Handler> AnyProgram for OfEvents<H> {
    fn over_lanes(
        self: Box<Self>,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        network: Arc<Network>,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Result<TcpServer, ServeError> {
        TcpServer::with_handler(self.0, listeners, limits, network, lanes, secret)
    }

    fn over_kernel(self: Box<Self>, _: Host) -> Result<RunningHost, HostError> {
        Err(HostError::NoRequests)
    }
}
