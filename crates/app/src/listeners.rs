//! Where a running instance is observed and controlled: at its control socket, and over HTTP.

use std::io;
use std::sync::Arc;

use rheostat_control::config::ObserveConfig;
use rheostat_kernel::privileges::Identity;
use thiserror::Error;

use crate::control::{Answers, ControlSocket, Server, SocketError};
use crate::http::{HttpError, HttpListener, HttpServer};
use crate::interrupt::HangupThread;

/// Why an instance cannot be observed.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    #[error("{0}")]
    Socket(#[from] SocketError),
    #[error("{0}")]
    Http(#[from] HttpError),
}

/// The listeners of an instance that does not run yet.
#[derive(Debug)]
pub(crate) struct Listeners {
    socket: Option<ControlSocket>,
    http: Option<HttpListener>,
}

/// The listeners of a running instance. Dropping it ends all conversations.
#[derive(Debug)]
pub(crate) struct Observers {
    _socket: Option<Server>,
    _http: Option<HttpServer>,
    _hangups: Option<HangupThread>,
}

impl Observers {
    /// The same with what SIGHUP does.
    #[must_use]
    pub(crate) fn with_hangups(self, hangups: Option<HangupThread>) -> Observers {
        Observers { _hangups: hangups, ..self }
    }
}

impl Listeners {
    /// Listens where the configuration has it; the control socket is the user's that the process becomes.
    ///
    /// # Errors
    /// [`ListenError`] names who listens there already.
    pub(crate) fn open(
        observe: &ObserveConfig,
        identity: Option<Identity>,
    ) -> Result<Listeners, ListenError> {
        let socket = observe.control.as_deref().map(ControlSocket::bind).transpose()?;
        if let (Some(socket), Some(identity)) = (&socket, identity) {
            socket.give_to(identity)?;
        }
        let bind = |address| HttpListener::bind(address, &observe.http_names);
        let http = observe.http.map(bind).transpose()?;
        if let Some(address) = http.as_ref().and_then(|http| http.address().ok()) {
            tracing::info!(
                target: "observe",
                "live page at http://{address}/, metrics at http://{address}/metrics"
            );
        }
        if let Some(address) = observe.http.filter(|address| !address.ip().is_loopback()) {
            tracing::warn!(
                target: "observe",
                "everyone who reaches {address} can read the metrics, the configuration and addresses of flows of this \
                 instance, without a password; 127.0.0.1 and [::1] are reached from this machine alone"
            );
        }
        Ok(Listeners { socket, http })
    }

    /// Whether there can be such listeners, as far as can be seen without keeping them.
    ///
    /// # Errors
    /// As [`Listeners::open`].
    pub(crate) fn check(observe: &ObserveConfig) -> Result<(), ListenError> {
        observe.control.as_deref().map_or(Ok(()), ControlSocket::check)?;
        observe.http.map(|address| HttpListener::bind(address, &[])).transpose()?;
        Ok(())
    }

    /// Answers clients about `instance`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(self, instance: impl Answers) -> io::Result<Observers> {
        let instance: Arc<dyn Answers> = Arc::new(instance);
        let socket = self.socket.map(|socket| Server::start(socket, instance.clone()));
        let http = self.http.map(|http| HttpServer::start(http, instance));
        Ok(Observers { _socket: socket.transpose()?, _http: http.transpose()?, _hangups: None })
    }
}
