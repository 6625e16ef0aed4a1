//! What a service needs of this machine, looked at before it starts.

use std::sync::Arc;

use rheostat_control::Config;
use rheostat_control::config::{ServeConfig, ServiceConfig};
use rheostat_ip::Network;
use rheostat_serve::TcpServer;
use rheostat_serve::relay::Relay;
use rheostat_state::FlowHasher;

use super::{assembly, beside_kernel, serve_files, targets, work};
use crate::assemble;
use crate::failure::Failure;

/// Checks what a service in so many lanes needs of this machine: its directory or its buffer, its addresses and ports beside the
/// kernel, and what a relay connects to and from.
///
/// # Errors
/// [`Failure`] names what it cannot have.
pub(crate) fn check(
    config: &Config,
    serve: &ServeConfig,
    network: Network,
    lanes: usize,
) -> Result<(), Failure> {
    beside_kernel::prepare(&mut config.clone())?;
    match &serve.service {
        ServiceConfig::Http(http) => serve_files(http).map(drop),
        ServiceConfig::Work(config) => work::buffer_bytes(config).map(drop),
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
