//! What a service needs of this machine, looked at before it starts.

use std::io;
use std::sync::Arc;

use rheostat_control::Config;
use rheostat_control::config::{ServeConfig, ServiceConfig};
use rheostat_ip::Network;
use rheostat_serve::relay::Relay;
use rheostat_serve::work::buffer::BufferError;
use rheostat_serve::{ServeError, TcpServer};
use rheostat_state::FlowHasher;
use rheostat_steer::SteeringError;
use thiserror::Error;

use super::beside_kernel::{self, BesideKernelError};
use super::{assembly, serve_files, targets, work};
use crate::assemble;

/// What a service cannot have on this machine.
#[derive(Debug, Error)]
pub(crate) enum ServiceError {
    #[error("{0}")]
    BesideKernel(#[from] BesideKernelError),
    #[error("cannot serve `{root}`: {source}")]
    Root { root: String, source: io::Error },
    #[error("--buffer: {0}")]
    Buffer(#[from] BufferError),
    #[error("cannot relay to `{text}`: {reason}")]
    Target { text: String, reason: String },
    #[error("{0}")]
    Steering(#[from] SteeringError),
    #[error("{0}")]
    Serve(#[from] ServeError),
}

/// Checks what a service in so many lanes needs of this machine: its directory or its buffer, its addresses and ports beside the
/// kernel, and what a relay connects to and from.
///
/// # Errors
/// [`ServiceError`] names what it cannot have.
pub(crate) fn check(
    config: &Config,
    serve: &ServeConfig,
    network: Network,
    lanes: usize,
) -> Result<(), ServiceError> {
    beside_kernel::prepare(&mut config.clone())?;
    match &serve.service {
        ServiceConfig::Http(http) => serve_files(http).map(drop),
        ServiceConfig::Work(config) => Ok(work::buffer_bytes(config).map(drop)?),
        ServiceConfig::Resp { .. } | ServiceConfig::Echo => Ok(()),
        ServiceConfig::Relay { to, .. } => {
            let (handler, network) = (Relay::new(targets(to)?), Arc::new(network));
            let steering = assembly::steering(config, &mut assemble::randomness(config.run.seed))?;
            let (listeners, limits) = (serve.listeners(), serve.limits);
            let server =
                TcpServer::with_handler(handler, listeners, limits, network, lanes, &[0; 16])?;
            // Which shard has which port does not depend on the secret of the flow hash.
            server.connecting(
                Arc::new(steering),
                FlowHasher::new([0; FlowHasher::SEED_WORDS]),
                serve.outgoing(),
            )?;
            Ok(())
        }
    }
}
