//! What a service needs of this machine, looked at before it starts.

use std::sync::Arc;

use rheostat_control::Config;
use rheostat_control::config::ServeConfig;
use rheostat_ip::Network;
use rheostat_serve::ServeError;
use rheostat_serve::registry::{ApplicationError, Making};
use rheostat_state::FlowHasher;
use rheostat_steer::SteeringError;
use thiserror::Error;

use super::assembly;
use super::beside_kernel::{self, BesideKernelError};
use crate::assemble;

/// What a service cannot have on this machine.
#[derive(Debug, Error)]
pub(crate) enum ServiceError {
    #[error("{0}")]
    BesideKernel(#[from] BesideKernelError),
    #[error("{0}")]
    Application(#[from] ApplicationError),
    #[error("{0}")]
    Steering(#[from] SteeringError),
    #[error("{0}")]
    Serve(#[from] ServeError),
}

/// Checks what a service in so many lanes needs of this machine: what its application needs, its addresses and
/// ports beside the kernel, and the ports it connects from.
///
/// # Errors
/// [`ServiceError`] names what it cannot have.
pub(crate) fn check(
    config: &Config,
    serve: &ServeConfig,
    network: Network,
    lanes: usize,
) -> Result<(), ServiceError> {
    beside_kernel::own_ports(config)?;
    serve.application.check()?;
    if serve.application.facts().opens.is_some() {
        let program = serve.application.make(&Making::default())?.program;
        let steering = assembly::steering(config, &mut assemble::randomness(config.run.seed))?;
        let (listeners, limits, network) = (serve.listeners(), serve.limits(), Arc::new(network));
        let server = program.over_lanes(listeners, limits, network, lanes, &[0; 16])?;
        // Which shard has which port does not depend on the secret of the flow hash.
        let hasher = FlowHasher::new([0; FlowHasher::SEED_WORDS]);
        server.connecting(Arc::new(steering), hasher, serve.outgoing())?;
    }
    Ok(())
}
